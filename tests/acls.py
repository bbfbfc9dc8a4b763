"""Grants rights on a broker, above all those that the documentation says a sink needs."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from airflow_provider_sinks.connectors.kafka.preflight.right_checks import (
    Kind,
    Operation,
    Right,
    needed_rights,
)
from airflow_provider_sinks.connectors.kafka.preflight.topic_checks import sink_topics
from airflow_provider_sinks.connectors.kafka.spec import kafka_sink
from airflow_provider_sinks.core.decision.facts import Existence
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.local.broker import KafkaBroker
from tests import administrator

_KINDS = {Kind.TOPIC: ResourceType.TOPIC, Kind.TRANSACTIONAL_ID: ResourceType.TRANSACTIONAL_ID}
_OPERATIONS = {
    Operation.READ: AclOperation.READ,
    Operation.WRITE: AclOperation.WRITE,
    Operation.CREATE: AclOperation.CREATE,
    Operation.DESCRIBE_CONFIGS: AclOperation.DESCRIBE_CONFIGS,
}


def least(spec: SinkSpec, conn_id: str, present: Collection[str]) -> list[Right]:
    """Return the rights that a sink needs, and no more.

    :param present: the topics that exist.
    """
    topics = sink_topics(spec, conn_id)
    existing = {t.name: Existence.PRESENT if t.name in present else Existence.MISSING for t in topics}
    prefix = f"{kafka_sink(spec).transactional_id_prefix}.{spec.name}."
    return list(needed_rights({t.name: t.roles for t in topics}, existing, prefix))


def grant(broker: KafkaBroker, user: str, rights: Iterable[Right]) -> None:
    """Grant rights to a user."""
    patterns = {True: ResourcePatternType.PREFIXED, False: ResourcePatternType.LITERAL}
    acls = [
        AclBinding(
            _KINDS[right.kind], right.name, patterns[right.prefix], f"User:{user}", "*",
            _OPERATIONS[right.operation], AclPermissionType.ALLOW,
        )
        for right in rights
    ]  # fmt: skip
    administrator.grant(AdminClient(broker.client_config()), acls)
