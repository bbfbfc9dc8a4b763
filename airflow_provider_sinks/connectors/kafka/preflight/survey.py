"""Looks at the topics of a sink and at a broker's settings, by librdkafka's admin API. Creates nothing."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation, ConfigResource, ResourceType, TopicDescription

from airflow_provider_sinks.connectors.kafka.client_failures import code_of, text_of
from airflow_provider_sinks.connectors.kafka.connection import KafkaConnection
from airflow_provider_sinks.connectors.kafka.creation import CreateTopic
from airflow_provider_sinks.connectors.kafka.preflight.right_checks import Held, Operation
from airflow_provider_sinks.connectors.kafka.preflight.topic_checks import SinkTopic, TopicSurvey
from airflow_provider_sinks.connectors.kafka.topics import spelled
from airflow_provider_sinks.core.decision.facts import Existence

_DENIED = frozenset({KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED})
_NOT_THERE = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.UNKNOWN_TOPIC_ID})
_NOT_AS_WANTED = frozenset(
    {
        KafkaError.INVALID_REPLICATION_FACTOR,
        KafkaError.INVALID_PARTITIONS,
        KafkaError.INVALID_CONFIG,
        KafkaError.POLICY_VIOLATION,
        KafkaError.TOPIC_EXCEPTION,
    }
)
_OPERATIONS = {
    AclOperation.READ: Operation.READ,
    AclOperation.WRITE: Operation.WRITE,
    AclOperation.CREATE: Operation.CREATE,
    AclOperation.DESCRIBE: Operation.DESCRIBE,
    AclOperation.DESCRIBE_CONFIGS: Operation.DESCRIBE_CONFIGS,
}


def survey_topics(connection: KafkaConnection, topics: Sequence[SinkTopic]) -> dict[str, TopicSurvey]:
    """Return what can be seen of topics, and whether those that are not there could be made.

    :raises SinkError: the cluster could not be asked.
    """
    begun, names = time.monotonic(), [topic.name for topic in topics]
    if not names:
        return {}
    seen = _describe(connection, names)
    listed = connection.listing().topics
    seen = {name: _confirmed(survey, name in listed) for name, survey in seen.items()}
    seen = _with_config(connection, seen)
    for topic in topics:
        if topic.creation is not None and seen[topic.name].existence is not Existence.PRESENT:
            seen[topic.name] = _creatable(connection, topic.creation, seen[topic.name])
    return {name: replace(survey, seconds=time.monotonic() - begun) for name, survey in seen.items()}


def broker_config(connection: KafkaConnection, broker: int) -> dict[str, str] | None:
    """Return the settings of a broker; ``None`` where this user may not see them.

    :raises SinkError: the cluster could not be asked.
    """
    resource = ConfigResource(ResourceType.BROKER, str(broker))
    found = connection.admin.describe_configs([resource], request_timeout=connection.timeout_seconds)
    try:
        return _values(connection.wait(found[resource], "describe a broker"))
    except KafkaException:
        return None


def _describe(connection: KafkaConnection, names: Sequence[str]) -> dict[str, TopicSurvey]:
    futures = connection.admin.describe_topics(
        TopicCollection(list(names)),
        include_authorized_operations=True,
        request_timeout=connection.timeout_seconds,
    )
    return {name: _described(connection, name, futures[name]) for name in names}


def _described(connection: KafkaConnection, name: str, future: Future[TopicDescription]) -> TopicSurvey:
    try:
        found = connection.wait(future, f'describe topic "{name}"')
    except KafkaException as error:
        existence = Existence.MISSING if code_of(error) in _NOT_THERE else Existence.UNKNOWN
        return TopicSurvey(name, existence, reason=text_of(error))
    told = found.authorized_operations
    return TopicSurvey(
        name,
        Existence.PRESENT,
        topic_id=spelled(str(found.topic_id)),
        partitions=len(found.partitions),
        replication_factor=max((len(partition.replicas) for partition in found.partitions), default=0),
        in_sync=min((len(partition.isr) for partition in found.partitions), default=0),
        leaderless=tuple(p.id for p in found.partitions if p.leader is None or p.leader.id < 0),
        operations=frozenset(_OPERATIONS[o] for o in told if o in _OPERATIONS) if told is not None else None,
    )


def _confirmed(survey: TopicSurvey, is_listed: bool) -> TopicSurvey:
    """Two questions must have one answer: what is just being made or deleted is *unknown*."""
    if survey.existence is not Existence.UNKNOWN and is_listed != (survey.existence is Existence.PRESENT):
        return TopicSurvey(survey.name, Existence.UNKNOWN, "it is just being made or deleted")
    return survey


def _with_config(connection: KafkaConnection, seen: Mapping[str, TopicSurvey]) -> dict[str, TopicSurvey]:
    """Ask for the configuration of all topics: the right to see it is judged before existence is."""
    resources = {name: ConfigResource(ResourceType.TOPIC, name) for name in seen}
    asked = list(resources.values())
    futures = connection.admin.describe_configs(asked, request_timeout=connection.timeout_seconds)
    return {name: _configured(connection, seen[name], futures[resources[name]]) for name in seen}


def _configured(connection: KafkaConnection, survey: TopicSurvey, future: Future[Any]) -> TopicSurvey:
    try:
        config = _values(connection.wait(future, "describe the configuration"))
    except KafkaException as error:
        code = code_of(error)
        held = Held.YES if code in _NOT_THERE else Held.NO if code in _DENIED else Held.UNKNOWN
        return replace(survey, may_describe_config=held)
    return replace(survey, config=config, may_describe_config=Held.YES)


def _values(config: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(entry.value) for name, entry in config.items() if entry.value is not None}


def _creatable(connection: KafkaConnection, wanted: CreateTopic, survey: TopicSurvey) -> TopicSurvey:
    """Ask whether a topic could be made: the broker judges all of it, and makes none."""
    try:
        connection.create_topic(wanted, f'say whether topic "{survey.name}" could be made', is_rehearsal=True)
    except KafkaException as error:
        code = code_of(error)
        if code in _DENIED:
            return replace(survey, may_create=Held.NO)
        if code in _NOT_AS_WANTED:
            return replace(survey, may_create=Held.YES, not_creatable=text_of(error))
        held = Held.YES if code == KafkaError.TOPIC_ALREADY_EXISTS else Held.UNKNOWN
        return replace(survey, may_create=held)
    return replace(survey, may_create=Held.YES)
