"""Connections of type ``kafka``, of the source and of a target: how they are read, altered and judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_provider_sinks.connectors.connection_checks import (
    CheckedConnectionType,
    ConnectionChecks,
    Validation,
)
from airflow_provider_sinks.connectors.kafka import option_names
from airflow_provider_sinks.connectors.kafka.option_fields import Fields, placed, shown_key, unused, whole
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.core.connection.alterable import AlterableOptions

if TYPE_CHECKING:
    from airflow_provider_sinks.core.connection.fields import ConnectionFields
    from airflow_provider_sinks.core.connection.options import ConnectionOptions


class KafkaConnectionType(CheckedConnectionType):
    """Options stand in the extra, and what is secret in the password field (:mod:`.option_fields`)."""

    name = KafkaOptions.conn_type
    package = "airflow-provider-sinks[kafka]"
    alterable = AlterableOptions(
        columns=frozenset(),
        in_extra=frozenset(option_names.ALLOWED),
        aliases={**option_names.ALIASES, "login": "sasl.username", "password": "sasl.password"},
        secrets=option_names.SECRETS,
        harmless=option_names.HARMLESS | option_names.DROPPED,
        files=option_names.FILES,
        others=option_names.DROPPED,
        refused=option_names.refusal,
        addresses=option_names.ADDRESSES,
    )

    def read(self, fields: ConnectionFields) -> KafkaOptions:
        """Check all fields."""
        extra = fields.stored_extra()
        shown = shown_key(extra, fields.masked_words)
        problems = [shown] if shown else []
        options = KafkaOptions.from_connection_extra(self.whole_extra(fields), fields.conn_id, problems)
        dropped = sorted({*options.dropped, *unused(extra, fields.login, fields.password)})
        return replace(options, dropped=tuple(dropped))

    def restore(self, conn_id: str, given: Mapping[str, str]) -> KafkaOptions:
        """Check the options once more."""
        return KafkaOptions.from_connection_extra(given, conn_id)

    def whole_extra(self, fields: ConnectionFields) -> dict[str, Any]:
        """Return the extra with user and secret."""
        return whole(fields.stored_extra(), fields.login, fields.password)

    def placed(
        self, before: ConnectionFields, columns: Mapping[str, Any], extra: Mapping[str, Any]
    ) -> ConnectionFields:
        """Put each option where it stood, and a new secret into the password field."""
        fields = placed(extra, Fields(before.stored_extra(), before.login, before.password))
        own = {"login": fields.login, "password": fields.password, "extra": dict(fields.extra)}
        return replace(before, **{**columns, **own})

    def checks(self, validation: Validation, options: ConnectionOptions) -> ConnectionChecks:
        """Judge the way to the cluster, the cluster, and the topics and rights of a sink."""
        from airflow_provider_sinks.connectors.kafka.preflight.checks import kafka_checks

        if not isinstance(options, KafkaOptions):
            raise TypeError(options.conn_type)
        return (yield from kafka_checks(validation, options))


KAFKA = KafkaConnectionType()
