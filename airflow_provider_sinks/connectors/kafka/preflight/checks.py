"""The checks of one Kafka connection: the way to it, the cluster, and what a sink needs there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from airflow_provider_sinks.clients.time_limit import within
from airflow_provider_sinks.connectors.connection_checks import ConnectionChecks, Validation
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.kafka.preflight import reach as kafka_reach
from airflow_provider_sinks.connectors.kafka.preflight.cluster_checks import (
    cluster_checks,
    transaction_checks,
)
from airflow_provider_sinks.connectors.kafka.preflight.identity_checks import identity_checks
from airflow_provider_sinks.connectors.kafka.preflight.right_checks import (
    RightsFacts,
    needed_rights,
    rights_checks,
)
from airflow_provider_sinks.connectors.kafka.preflight.topic_checks import (
    DEFAULT_COPIES,
    MIN_IN_SYNC,
    SinkTopic,
    TopicSurvey,
    sink_topics,
    topic_checks,
)
from airflow_provider_sinks.connectors.kafka.record_size import CLIENT_LIMIT, TOPIC_LIMIT
from airflow_provider_sinks.connectors.kafka.spec import KafkaSink, kafka_target_on
from airflow_provider_sinks.connectors.kafka.time_limits import AFTER, BEFORE, TIME_TYPE
from airflow_provider_sinks.connectors.kafka.topic_facts import POLICY
from airflow_provider_sinks.core.checks.check import Check, Checks, Family
from airflow_provider_sinks.core.checks.network import Stop, network_checks
from airflow_provider_sinks.core.progress.record import DRIVER, SINGLE_WRITER, partition_writer
from airflow_provider_sinks.core.spec.sink import Writers

_SURVEY_SECONDS = 30.0
_ANSWER_SECONDS = 8.0
_IDS_MAX = 32
"""How many transactional ids are asked for: ACLs name them by their prefix."""


def kafka_checks(validation: Validation, options: KafkaOptions) -> ConnectionChecks:
    """Judge one connection.

    :param options: with the text of PEM files in them.
    :return: the same options, once the cluster has let librdkafka in.
    :raises SinkError: it could not be asked any further.
    """
    conn_id, given = options.conn_id, options.options
    reach = kafka_reach.reach(options, validation.deadline)
    tls, user = kafka_reach.uses_tls(options), given.get("sasl.username", "")
    yield from network_checks(conn_id, reach.servers, kafka_reach.WAY, tls=tls, user=user)
    topics = sink_topics(validation.sink, conn_id) if validation.sink else []
    if reach.cluster is None:
        yield from _skipped(conn_id, topics, "the cluster was not reached")
        return None
    validation.clusters[conn_id] = reach.cluster.cluster_id
    brokers = len(reach.cluster.brokers)
    yield from cluster_checks(conn_id, reach.cluster.cluster_id, brokers, reach.advertised)
    if any(facts.stopped is Stop.FORBIDDEN for facts in reach.advertised):
        yield from _skipped(conn_id, topics, "clients would go to an address that is refused")
        return None
    seen = _limited(
        validation, lambda: _survey(options, topics, min(reach.cluster.brokers) if reach.cluster else 0)
    )
    yield Checks(conn_id, Family.CLUSTER).passes("client", "librdkafka is let in too")
    yield from _judged(validation, options, topics, seen, brokers)
    yield from _rights(validation, options, topics, seen, reach.open_server)
    return options


@dataclass(frozen=True)
class _Seen:
    topics: Mapping[str, TopicSurvey]
    config: Mapping[str, str] | None


def _survey(options: KafkaOptions, topics: list[SinkTopic], broker: int) -> _Seen:
    from airflow_provider_sinks.connectors.kafka.connection import KafkaConnection
    from airflow_provider_sinks.connectors.kafka.preflight.survey import broker_config, survey_topics

    with KafkaConnection(options, _ANSWER_SECONDS) as connection:
        connection.cluster_id()
        return _Seen(survey_topics(connection, topics), broker_config(connection, broker))


def _judged(
    validation: Validation, options: KafkaOptions, topics: list[SinkTopic], seen: _Seen, brokers: int
) -> Iterator[Check]:
    conn_id, sink = options.conn_id, validation.sink
    if sink is None:
        return
    if kafka_target_on(sink, conn_id) is not None:
        yield from transaction_checks(conn_id, sink.transaction_timeout, seen.config, brokers)
    if sink.source.kafka.connection == conn_id:
        validation.partitions = seen.topics[sink.source.kafka.topic].partitions
    yield from topic_checks(options, sink, topics, seen.topics, _defaults(seen.config))
    if (compared := validation.identity_checks(Checks(conn_id, Family.TOPICS))) is not None:
        yield from identity_checks(compared, topics, seen.topics, validation.clusters[conn_id])
        validation.compared |= {role for topic in topics for role in topic.roles}


def _rights(
    validation: Validation, options: KafkaOptions, topics: list[SinkTopic], seen: _Seen, server: str
) -> Iterator[Check]:
    if validation.sink is None:
        return
    from airflow_provider_sinks.connectors.kafka.preflight.rights import ask_rights

    ids = _ids(validation, kafka_target_on(validation.sink, options.conn_id))
    prefix = ids[0].removesuffix(DRIVER) if ids else ""
    existing = {name: survey.existence for name, survey in seen.topics.items()}
    rights = list(needed_rights({topic.name: topic.roles for topic in topics}, existing, prefix))
    facts = ask_rights(options, server, rights, seen.topics, ids, deadline=validation.deadline)
    yield from _timed(
        list(rights_checks(options.conn_id, rights, facts, options.bootstrap_servers, _principal(options))),
        facts,
    )


def _timed(checks: list[Check], facts: RightsFacts) -> Iterator[Check]:
    """Rights are asked for together; the first check tells how long that took."""
    yield from (
        replace(check, seconds=facts.seconds if place == 0 else 0.0) for place, check in enumerate(checks)
    )


def _ids(validation: Validation, sink: KafkaSink | None) -> list[str]:
    """Return the transactional ids that the sink uses: the driver's first, and its writers'."""
    from airflow_provider_sinks.connectors.kafka.transactions import transactional_id

    if sink is None:
        return []
    writers = [SINGLE_WRITER]
    if sink.writer_mode is Writers.PER_PARTITION:
        writers = [partition_writer(partition) for partition in range(max(validation.partitions, 1))]
    return [
        transactional_id(sink.transactional_id_prefix, sink.name, writer)
        for writer in [DRIVER, *writers[:_IDS_MAX]]
    ]


def _defaults(config: Mapping[str, str] | None) -> dict[str, str]:
    """Return what a broker gives to new topics, under the topics' names."""
    same = (MIN_IN_SYNC, DEFAULT_COPIES)
    others = {f"log.{name}": name for name in (TIME_TYPE, AFTER, BEFORE, POLICY)}
    names = {**dict(zip(same, same, strict=True)), **others, CLIENT_LIMIT: TOPIC_LIMIT}
    return {topic: config[broker] for broker, topic in names.items() if config and broker in config}


def _principal(options: KafkaOptions) -> str:
    user = options.options.get("sasl.username")
    if user is not None:
        return f"User:{user}"
    own = "ssl.key.pem" in options.options or "ssl.keystore.location" in options.options
    return "User:<name in its certificate>" if own else "User:ANONYMOUS"


def _skipped(conn_id: str, topics: list[SinkTopic], why: str) -> Iterator[Check]:
    yield Checks(conn_id, Family.CLUSTER).skips("cluster", why)
    yield from (Checks(conn_id, Family.TOPICS).skips(topic.title, why) for topic in topics)
    if topics:
        yield Checks(conn_id, Family.PERMISSIONS).skips("permissions", why)


def _limited(validation: Validation, action: Callable[[], _Seen]) -> _Seen:
    return within(validation.deadline.left(_SURVEY_SECONDS), action)
