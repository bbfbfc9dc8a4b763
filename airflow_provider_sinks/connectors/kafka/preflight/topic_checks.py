"""The topics of a sink: whether they can be seen, and are made so that a sink can work with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from airflow_provider_sinks.connectors.kafka.creation import CreateTopic
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.kafka.preflight.right_checks import Held, Operation
from airflow_provider_sinks.connectors.kafka.record_size import CLIENT_LIMIT, CLIENT_LIMIT_BYTES, TOPIC_LIMIT
from airflow_provider_sinks.connectors.kafka.spec import kafka_sink, kafka_target_on
from airflow_provider_sinks.connectors.kafka.time_limits import (
    AFTER,
    BEFORE,
    LOG_APPEND_TIME,
    TIME_TYPE,
    TimeLimits,
    time_limits,
)
from airflow_provider_sinks.connectors.kafka.topic_facts import LOST_LETTERS, POLICY, grant, is_compacted
from airflow_provider_sinks.core.checks.check import Check, Checks, Family
from airflow_provider_sinks.core.decision.facts import Existence, Role
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.core.wording import count

MIN_IN_SYNC = "min.insync.replicas"
DEFAULT_COPIES = "default.replication.factor"


@dataclass(frozen=True)
class SinkTopic:
    """A topic of a sink on one cluster, and what it is to the sink.

    :param creation: how the sink makes it; ``None`` for a source, which is not its own.
    """

    name: str
    roles: tuple[Role, ...]
    creation: CreateTopic | None

    @property
    def title(self) -> str:
        """What it is called in a report."""
        return f'{" and ".join(self.roles)} "{self.name}"'


@dataclass(frozen=True)
class TopicSurvey:
    """What was seen of a topic.

    :param operations: what the user may do with it; ``None`` where the broker does not say.
    :param in_sync: the copies in sync of the partition that has fewest.
    :param leaderless: partitions without a leader.
    :param config: as the broker applies it; ``None`` where it is hidden, or the topic missing.
    :param may_describe_config: the right to see it.
    :param may_create: the right to make it, where it is not there.
    :param not_creatable: why the broker would not make it as the sink wants it.
    """

    name: str
    existence: Existence
    reason: str = ""
    topic_id: str = ""
    partitions: int = 0
    replication_factor: int = 0
    in_sync: int = 0
    leaderless: tuple[int, ...] = ()
    operations: frozenset[Operation] | None = None
    config: Mapping[str, str] | None = None
    may_describe_config: Held = Held.UNKNOWN
    may_create: Held = Held.NOT_NEEDED
    not_creatable: str = ""
    seconds: float = field(default=0.0, compare=False)


def sink_topics(spec: SinkSpec, conn_id: str) -> list[SinkTopic]:
    """Return the topics that a sink has on one connection."""
    roles: dict[str, list[Role]] = {}
    made: dict[str, CreateTopic] = {}
    if spec.source.kafka.connection == conn_id:
        roles.setdefault(spec.source.kafka.topic, []).append(Role.SOURCE)
    if (sink := kafka_target_on(spec, conn_id)) is not None:
        for role, creation in sink.creations().items():
            roles.setdefault(creation.name, []).append(role)
            made[creation.name] = creation
    return [SinkTopic(name, tuple(found), made.get(name)) for name, found in roles.items()]


def topic_checks(
    options: KafkaOptions,
    spec: SinkSpec,
    topics: Sequence[SinkTopic],
    seen: Mapping[str, TopicSurvey],
    defaults: Mapping[str, str],
) -> Iterator[Check]:
    """Judge the topics of a sink on one connection.

    :param seen: by name.
    :param defaults: what the broker gives new topics; empty where it is hidden.
    """
    checks = Checks(options.conn_id, Family.TOPICS)
    for topic in topics:
        survey = seen[topic.name]
        yield _visible(checks, topic, survey)
        if topic.creation is not None:
            config = _config(topic.creation, survey, defaults)
            yield _copies(checks, topic, survey, config)
            yield _policy(checks, options, spec, topic, config=config, survey=survey)
            if Role.DATA in topic.roles:
                yield _size(checks, options, topic, survey, config)
                yield from _times(checks, options, spec, topic, config=config, survey=survey)


def _visible(checks: Checks, topic: SinkTopic, survey: TopicSurvey) -> Check:
    name, seconds = topic.title, survey.seconds
    if survey.existence is Existence.UNKNOWN:
        return checks.unknown(name, f"cannot be seen: {survey.reason}", seconds=seconds)
    if survey.existence is Existence.MISSING:
        return _absent(checks, topic, survey)
    if survey.leaderless:
        detail = f"partitions without a leader: {', '.join(map(str, survey.leaderless))}"
        return checks.fails(name, detail, "Bring their brokers back.", seconds, retryable=True)
    may = ", ".join(sorted(survey.operations)) if survey.operations is not None else "not told"
    size = f"{count(survey.partitions, 'partition')}, replication factor {survey.replication_factor}"
    if Role.PROGRESS in topic.roles and survey.partitions != 1:
        hint = "Its order is the truth: name another progress topic, or none, and the sink makes its own."
        return checks.fails(name, f"has {size}; it must have one partition", hint, seconds)
    return checks.passes(name, f"{size}; operations: {may}", seconds)


def _absent(checks: Checks, topic: SinkTopic, survey: TopicSurvey) -> Check:
    if topic.creation is None:
        hint = "Create it; a sink makes its own topics, never its source."
        return checks.fails(topic.title, "does not exist", hint, survey.seconds, retryable=True)
    if survey.not_creatable:
        detail = f"does not exist, and the broker would not make it: {survey.not_creatable}"
        return checks.fails(
            topic.title, detail, "Correct the spec, or make the topic by hand.", survey.seconds
        )
    return checks.passes(
        topic.title, "does not exist yet; the job decides whether to make it", survey.seconds
    )


def _config(
    creation: CreateTopic, survey: TopicSurvey, defaults: Mapping[str, str]
) -> Mapping[str, str] | None:
    """Return the configuration that holds, or that would if the topic was made now; ``None`` if hidden."""
    if survey.existence is Existence.MISSING:
        return {**defaults, **creation.config}
    return survey.config


def _hidden(checks: Checks, name: str, survey: TopicSurvey) -> Check:
    """Say why a setting cannot be judged."""
    if survey.existence is Existence.UNKNOWN:
        return checks.skips(name, "the topic cannot be seen")
    if survey.existence is Existence.MISSING:
        return checks.unknown(
            name, "the spec leaves it to the broker, whose default is hidden from this user"
        )
    return checks.unknown(
        name, "hidden: this user may not describe the configuration; a sink does not need it"
    )


def _hidden_limit(checks: Checks, options: KafkaOptions, name: str, survey: TopicSurvey) -> Check:
    """Say that a limit of rows cannot be judged, and what lets a sink know it."""
    if survey.existence is not Existence.PRESENT:
        return _hidden(checks, name, survey)
    detail = (
        "hidden: this user may not describe the configuration; only the broker knows which rows it refuses"
    )
    hint = grant(survey.name, Operation.DESCRIBE_CONFIGS, options.bootstrap_servers)
    return checks.unknown(name, detail, hint)


def _copies(checks: Checks, topic: SinkTopic, survey: TopicSurvey, config: Mapping[str, str] | None) -> Check:
    name = f"{MIN_IN_SYNC} of {topic.title}"
    asked = topic.creation.replication_factor if topic.creation else None
    copies = survey.replication_factor or asked or int((config or {}).get(DEFAULT_COPIES, 0))
    if config is None or MIN_IN_SYNC not in config or not copies:
        return _hidden(checks, name, survey)
    least = int(config[MIN_IN_SYNC])
    if least > copies:
        hint = f"Lower {MIN_IN_SYNC}, or raise the replication factor: nothing can be written as it is."
        return checks.fails(name, f"is {least}, above the replication factor {copies}", hint)
    if survey.existence is Existence.PRESENT and survey.in_sync < least:
        detail = f"is {least}, but a partition has only {survey.in_sync} of {copies} copies in sync"
        return checks.fails(name, detail, "Bring the brokers back.", retryable=True)
    return checks.passes(name, f"{least}, with {count(copies, 'replica')}")


def _policy(
    checks: Checks,
    options: KafkaOptions,
    spec: SinkSpec,
    topic: SinkTopic,
    *,
    config: Mapping[str, str] | None,
    survey: TopicSurvey,
) -> Check:
    name = f"{POLICY} of {topic.title}"
    policy = (config or {}).get(POLICY, "delete" if survey.existence is Existence.MISSING else None)
    if policy is None and Role.PROGRESS in topic.roles:
        return _hidden(checks, name, survey)
    if policy is None:
        return _hidden_limit(checks, options, name, survey)
    if Role.PROGRESS in topic.roles and policy.strip() != "compact":
        hint = f"kafka-configs.sh --alter --topic {topic.name} --add-config {POLICY}=compact"
        return checks.fails(name, f"is {policy}: old progress would be deleted; it must be compact", hint)
    if Role.DEAD_LETTER in topic.roles and is_compacted(policy):
        hint = f"kafka-configs.sh --alter --topic {topic.name} --add-config {POLICY}=delete"
        return checks.fails(name, f"is {policy}: {LOST_LETTERS}", hint)
    if Role.DATA in topic.roles and is_compacted(policy):
        return _compacted(checks, spec, name, policy)
    return checks.passes(name, policy)


def _compacted(checks: Checks, spec: SinkSpec, name: str, policy: str) -> Check:
    """Judge whether the rows of a sink have keys as a compacted topic needs them."""
    target = kafka_sink(spec).target.kafka
    if not target.key:
        become = "stop the sink" if spec.dead_letter is None else "are set aside"
        detail = f"is {policy}, and the sink names no key: rows whose source record has none {become}"
        hint = "Name target.kafka.key, or set the policy to delete."
        return checks.unknown(name, detail, hint)
    if others := target.partition_columns_beside_key:
        detail = f"is {policy}, and partition_by names {', '.join(others)}, which the key does not have"
        hint = "Where that changes for a key, both rows stay: partition by the key."
        return checks.unknown(name, detail, hint)
    return checks.passes(name, policy)


def _size(
    checks: Checks,
    options: KafkaOptions,
    topic: SinkTopic,
    survey: TopicSurvey,
    config: Mapping[str, str] | None,
) -> Check:
    name = f"{TOPIC_LIMIT} of {topic.title}"
    if config is None or TOPIC_LIMIT not in config:
        return _hidden_limit(checks, options, name, survey)
    taken, given = int(config[TOPIC_LIMIT]), options.options.get(CLIENT_LIMIT)
    sent = int(given) if given else CLIENT_LIMIT_BYTES
    if taken >= sent:
        return checks.passes(name, f"{taken:,}")
    detail = f"is {taken:,}, and the connection sends up to {sent:,} (message.max.bytes)"
    hint = f"Raise {TOPIC_LIMIT} of the topic, or lower {CLIENT_LIMIT} of the connection."
    # What was set on purpose must fit; the client's own default only matters if a row is that large.
    return checks.fails(name, detail, hint) if given else checks.unknown(name, detail, hint)


def _times(
    checks: Checks,
    options: KafkaOptions,
    spec: SinkSpec,
    topic: SinkTopic,
    *,
    config: Mapping[str, str] | None,
    survey: TopicSurvey,
) -> Iterator[Check]:
    """Judge whether a topic keeps the times that a sink gives its messages."""
    if not kafka_sink(spec).target.kafka.has_time:
        return
    name = f"{TIME_TYPE} of {topic.title}"
    if config is None or TIME_TYPE not in config:
        yield _hidden_limit(checks, options, name, survey)
    elif config.get(TIME_TYPE) == LOG_APPEND_TIME:
        detail = f"is {LOG_APPEND_TIME}: the broker puts its own time in the place of target.kafka.timestamp"
        hint = f"kafka-configs.sh --alter --topic {topic.name} --add-config {TIME_TYPE}=CreateTime"
        yield checks.unknown(name, detail, hint)
    else:
        yield checks.passes(name, _told(time_limits(topic.name, config)))


def _told(limits: TimeLimits) -> str:
    bounds = ((AFTER, limits.after_ms), (BEFORE, limits.before_ms))
    said = [f"{name} {bound:,}" for name, bound in bounds if bound is not None]
    return ", ".join(["CreateTime", *said])
