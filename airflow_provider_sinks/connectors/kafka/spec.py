"""A sink whose target is a Kafka topic: its part of the spec."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from pydantic import Field, model_validator

from airflow_provider_sinks.connectors.kafka.creation import CreateTopic, progress_topic
from airflow_provider_sinks.connectors.kafka.rules import PROGRESS_PREFIX, RULES
from airflow_provider_sinks.connectors.kafka.target import KafkaTargetChoice
from airflow_provider_sinks.connectors.kafka.topic_options import Config, Count, Replication
from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.errors import JobFailedError
from airflow_provider_sinks.core.evolution import OPTION
from airflow_provider_sinks.core.redefinition.bearing import Bearing
from airflow_provider_sinks.core.schemas.subjects import Part as PartOfRecord
from airflow_provider_sinks.core.spec.fields import TOPIC_PATTERN, SinkName, TopicName
from airflow_provider_sinks.core.spec.parts import (
    DeadLetterPart,
    Format,
    Part,
)
from airflow_provider_sinks.core.spec.rules import Rule
from airflow_provider_sinks.core.spec.sink import SinkSpec, Writers


class DeadLetter(DeadLetterPart):
    """The topic for records that do not parse, on the target's connection. Its name is the short form."""

    short_form = TOPIC_PATTERN

    topic: TopicName
    partitions: Count = 1
    replication_factor: Replication | None = None
    config: Config = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        return {"topic": value} if isinstance(value, str) else value


class Progress(Part):
    """The compacted topic with the sink's progress, beside the target. Its name is the short form."""

    short_form = TOPIC_PATTERN

    topic: TopicName | None = None
    replication_factor: Replication | None = None

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        return {"topic": value} if isinstance(value, str) else value


class KafkaSink(SinkSpec):
    """A sink into a Kafka topic."""

    right_target: ClassVar[Any] = "a/c"
    dead_letter_example: ClassVar[str] = "{topic: ...}"
    instead: ClassVar[Mapping[str, str]] = {OPTION: "the schemas of a topic follow by auto_register"}
    bearings: ClassVar[Mapping[str, Bearing]] = {
        "target.kafka.connection": Bearing.PLACE,
        "target.kafka.topic": Bearing.OUTPUT,
        "target.kafka.key": Bearing.KEY,
        "target.kafka.format": Bearing.FORM,
        "target.kafka.key_format": Bearing.FORM,
        "target.kafka.value": Bearing.ROWS,
        "target.kafka.registry": Bearing.IDS,
        "target.kafka.schema": Bearing.REGISTERED,
        "target.kafka.key_schema": Bearing.REGISTERED,
        "target.kafka.record": Bearing.REGISTERED,
        "target.kafka.subjects": Bearing.REGISTERED,
        "target.kafka.auto_register": Bearing.RUN,
        "target.kafka.envelope": Bearing.FORM,
        "target.kafka.tombstones": Bearing.ROWS,
        "target.kafka.deletes": Bearing.ROWS,
        "target.kafka.compact_epoch": Bearing.ROWS,
        "target.kafka.schemas_enable": Bearing.FORM,
        "target.kafka.key_in_value": Bearing.ROWS,
        "target.kafka.headers": Bearing.ROWS,
        "target.kafka.timestamp": Bearing.ROWS,
        "target.kafka.timestamp.column": Bearing.ROWS,
        "target.kafka.partition_by": Bearing.KEY,
        "target.kafka.partitions": Bearing.MAKING,
        "target.kafka.replication_factor": Bearing.MAKING,
        "target.kafka.config": Bearing.MAKING,
        "target.kafka.compression": Bearing.RUN,
        "dead_letter.topic": Bearing.LETTERS,
        "dead_letter.partitions": Bearing.MAKING,
        "dead_letter.replication_factor": Bearing.MAKING,
        "dead_letter.config": Bearing.MAKING,
        "progress.topic": Bearing.PROGRESS,
        "progress.replication_factor": Bearing.MAKING,
        "transactional_id_prefix": Bearing.RUN,
    }

    target: KafkaTargetChoice
    dead_letter: DeadLetter | None = None
    progress: Progress = Progress()
    transactional_id_prefix: SinkName = "sinks"

    @classmethod
    def completed(cls, data: Mapping[str, Any]) -> dict[str, Any]:
        """Write a target in its source's format where it names none."""
        source = _kafka_options(data.get("source"), Format.BYTES)
        target = _kafka_options(data.get("target"), None)
        if target is None or source is None or "format" in target or source.get("format") not in list(Format):
            return dict(data)
        if Format(source["format"]).is_registered and "registry" not in source:
            return dict(data)
        registry = {"registry": source["registry"]} if Format(source["format"]).is_registered else {}
        return {**data, "target": {"kafka": {**registry, **target, "format": source["format"]}}}

    @property
    def target_rules(self) -> tuple[Rule, ...]:
        """The rules between the options of the target and the rest of the sink."""
        return RULES

    @property
    def writer_mode(self) -> Writers:
        """Who writes: one writer where it leaves out all but the newest row of each key of an epoch."""
        return Writers.SINGLE if self.target.kafka.compact_epoch else super().writer_mode

    @property
    def replaces_by_key(self) -> bool:
        """Whether a row replaces by its key, whatever the topic keeps."""
        return self.target.kafka.replaces

    @property
    def keeps_one_row_of_a_key(self) -> bool:
        """Whether a row replaces by its key, or a null takes it away: by its options, or by compaction."""
        target = self.target.kafka
        is_compacted = "compact" in target.config.get("cleanup.policy", "")
        return self.replaces_by_key or target.deletes_rows or is_compacted

    @property
    def takes_whole_records(self) -> bool:
        """Whether the options of the target change neither keys nor values, and add nothing."""
        return self.target.kafka.takes_whole_records

    @property
    def reads_headers(self) -> bool:
        """Whether the source's headers are read: for what is set aside, or because they go through."""
        return super().reads_headers or self.target.kafka.passes_headers

    @property
    def letters_to_read(self) -> Mapping[str, str] | None:
        """The topic of the dead letters, on the target's connection."""
        if self.dead_letter is None:
            return None
        return {"connection": self.target.kafka.connection, "topic": self.dead_letter.topic}

    @property
    def target_registries(self) -> tuple[str, ...]:
        """The connection of the registry that has schemas of keys or values."""
        target = self.target.kafka
        return (target.registry,) if target.registry is not None and target.registered_parts else ()

    @property
    def registered_formats(self) -> frozenset[Format]:
        """Those of the source, and of the target's keys and values."""
        target = self.target.kafka
        return super().registered_formats | {target.format_of(part) for part in target.registered_parts}

    def record_name(self, part: PartOfRecord) -> str:
        """Return the full name of a record that is made of the query's types.

        Readers of Debezium's envelope know it by its name.
        """
        whole = self.record
        if part is PartOfRecord.KEY:
            return f"{whole}_key"
        return f"{whole}.Envelope" if self.target.kafka.is_debezium else whole

    @property
    def record(self) -> str:
        """The full name of what a row is, resolved."""
        named = self.target.kafka.record or f"sinks.{re.sub('[^A-Za-z0-9_]', '_', self.first_name)}"
        first = named.rpartition(".")[2][:1]
        return named if not first.isdigit() else f"sinks._{named.rpartition('.')[2]}"

    @property
    def first_name(self) -> str:
        """The name of the sink; of a replay, that of the sink whose dead letters it replays."""
        return self.name if self.replay is None else self.replay.sink

    @property
    def progress_topic(self) -> str:
        """The name of the progress topic, resolved."""
        return self.progress.topic or f"{PROGRESS_PREFIX}{self.name}"

    @property
    def progress_is_shared(self) -> bool:
        """Other sinks may have records in a progress topic that the spec names."""
        return self.progress.topic is not None

    @property
    def resources(self) -> dict[Role, str]:
        """The names of the sink's own topics."""
        named = {Role.DATA: self.target.kafka.topic, Role.PROGRESS: self.progress_topic}
        return named | ({Role.DEAD_LETTER: self.dead_letter.topic} if self.dead_letter else {})

    def creations(self) -> dict[Role, CreateTopic]:
        """Return how each of them is made."""
        target, dead = self.target.kafka, self.dead_letter
        copies = target.replication_factor
        made = {
            Role.PROGRESS: progress_topic(self.progress_topic, self.progress.replication_factor),
            Role.DATA: CreateTopic(Role.DATA, target.topic, target.partitions, copies, dict(target.config)),
        }
        if dead is not None:
            made[Role.DEAD_LETTER] = CreateTopic(
                Role.DEAD_LETTER, dead.topic, dead.partitions, dead.replication_factor, dict(dead.config)
            )
        return made

    def shown(self) -> dict[str, str | None]:
        """Return what of the target a person sees beside its name."""
        return {
            "progress_topic": self.progress_topic,
            "dead_letter_topic": self.dead_letter.topic if self.dead_letter else None,
            "transactional_ids": f"{self.transactional_id_prefix}.{self.name}.*",
        }

    def told(self) -> Iterator[str]:
        """Give the lines about the target on the page of its DAG."""
        target = self.target.kafka
        kind = f", {target.written_as}" if target.replaces else ""
        yield f"- target: topic `{target.topic}` of connection `{target.connection}`{kind}"
        if self.dead_letter is not None:
            yield f"- records that do not parse: topic `{self.dead_letter.topic}`, in the same transactions"
        yield f"- progress: topic `{self.progress_topic}`, in the same transactions as the rows"


def kafka_sink(spec: SinkSpec) -> KafkaSink:
    """Return a sink as what its target makes it."""
    if not isinstance(spec, KafkaSink):
        raise JobFailedError(f'sink "{spec.name}" has no Kafka target')
    return spec


def kafka_target_on(spec: SinkSpec | None, conn_id: str) -> KafkaSink | None:
    """Return a sink whose target is on this connection; ``None`` for any other."""
    if isinstance(spec, KafkaSink) and spec.target.kafka.connection == conn_id:
        return spec
    return None


def _kafka_options(part: Any, short: Format | None) -> dict[str, Any] | None:
    if isinstance(part, str) and "/" in part:
        connection, _, topic = part.rpartition("/")
        return {"connection": connection, "topic": topic, **({"format": short} if short else {})}
    if isinstance(part, Mapping) and set(part) == {"kafka"} and isinstance(part["kafka"], Mapping):
        return dict(part["kafka"])
    return None
