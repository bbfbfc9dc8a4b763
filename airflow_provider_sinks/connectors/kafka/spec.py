"""A sink whose target is a Kafka topic: its part of the spec."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, StrictBool, model_validator

from airflow_provider_sinks.connectors.kafka.creation import CreateTopic, progress_topic
from airflow_provider_sinks.connectors.kafka.message_options import SOURCE, Headers, MessageTime, TimeColumn
from airflow_provider_sinks.connectors.kafka.rules import RULES
from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.errors import JobFailedError
from airflow_provider_sinks.core.schemas.avro_names import NAME
from airflow_provider_sinks.core.schemas.subjects import TOPIC_NAME
from airflow_provider_sinks.core.schemas.subjects import Part as PartOfRecord
from airflow_provider_sinks.core.spec.fields import (
    TOPIC_PATTERN,
    Columns,
    Config,
    ConnectionId,
    Count,
    Replication,
    SinkName,
    Text,
    TopicName,
)
from airflow_provider_sinks.core.spec.parts import (
    ConnectedTarget,
    DeadLetterPart,
    Format,
    Part,
    Target,
    address,
)
from airflow_provider_sinks.core.spec.problems import UnfitError
from airflow_provider_sinks.core.spec.rules import Rule
from airflow_provider_sinks.core.spec.schema_options import (
    AutoRegister,
    DeclaredSchema,
    Naming,
    Registering,
    SchemaChoice,
    declared,
)
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.core.spec.source import Source


def _record_name(value: str) -> str:
    if not all(NAME.fullmatch(part) for part in value.split(".")):
        raise UnfitError(f"{value!r} is no name in Avro", "letters, digits, _ and dots, such as shop.Order")
    return value


RecordName = Annotated[Text, AfterValidator(_record_name)]


class Compression(enum.StrEnum):
    """How the target's batches are compressed."""

    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


class KeyFormat(enum.StrEnum):
    """How a key is written whose schema a registry has; otherwise a column is text, and several are JSON."""

    AVRO = "avro"


class KafkaTarget(ConnectedTarget):
    """A Kafka topic to write."""

    topic: TopicName
    key: Columns = Field(
        default=(), description="columns of the key; none: the source record's key goes through"
    )
    format: Format = Format.JSON
    key_format: KeyFormat | None = None
    value: Text | None = None
    registry: ConnectionId | None = Field(
        default=None, description="id of an Airflow connection of type http to a schema registry"
    )
    schema_: SchemaChoice | None = Field(
        default=None, alias="schema", description="of the values; none: it is made of the query's types"
    )
    key_schema: SchemaChoice | None = None
    record: RecordName | None = Field(
        default=None, description="full name of the record that is made of the query's types"
    )
    subjects: Naming | None = None
    auto_register: Registering | None = None
    tombstones: StrictBool = False
    key_in_value: StrictBool | None = Field(
        default=None, description="false: the columns of the key are left out of a value of several columns"
    )
    headers: Headers | None = None
    timestamp: MessageTime | None = None
    partition_by: Columns | None = Field(
        default=None, description="columns that choose the partition in the place of the key"
    )
    partitions: Count | None = None
    replication_factor: Replication | None = None
    config: Config = Field(default_factory=dict)
    compression: Compression = Compression.LZ4

    @property
    def registered_parts(self) -> tuple[PartOfRecord, ...]:
        """Those of key and value whose schemas a registry has."""
        key = (PartOfRecord.KEY,) if self.key_format is not None else ()
        return (*key, PartOfRecord.VALUE) if self.format.is_registered else key

    @property
    def naming(self) -> str:
        """How subjects are named, resolved."""
        return self.subjects or TOPIC_NAME

    @property
    def registering(self) -> AutoRegister:
        """Whether a start registers what a subject has not yet, resolved."""
        return self.auto_register or AutoRegister.TRUE

    def value_columns(self, names: Sequence[str]) -> list[str]:
        """Return the columns that become a value of several columns.

        :param names: of the query's columns.
        """
        return [name for name in names if self.key_in_value is not False or name not in self.key]

    @property
    def passes_headers(self) -> bool:
        """Whether the source record's headers go through."""
        return self.headers == SOURCE

    @property
    def header_columns(self) -> Mapping[str, str]:
        """The columns that become headers, by the names of those."""
        return self.headers if isinstance(self.headers, Mapping) else {}

    @property
    def passes_time(self) -> bool:
        """Whether the source record's time goes through."""
        return self.timestamp == SOURCE

    @property
    def has_time(self) -> bool:
        """Whether messages have another time than that of their writing."""
        return self.passes_time or self.time_column is not None

    @property
    def time_column(self) -> str | None:
        """The column that has the time of a message, where there is one."""
        return self.timestamp.column if isinstance(self.timestamp, TimeColumn) else None

    @property
    def columns_beside(self) -> Iterator[tuple[str, str]]:
        """Each column that a message carries beside key and value, behind the option that names it."""
        yield from ((f"headers.{header}", column) for header, column in self.header_columns.items())
        if self.time_column is not None:
            yield "timestamp.column", self.time_column
        yield from ((f"partition_by[{index}]", name) for index, name in enumerate(self.partition_by or ()))

    def declared(self, part: PartOfRecord) -> DeclaredSchema | None:
        """Return the schema of a part, where the spec says which one it is."""
        return declared(self.key_schema if part is PartOfRecord.KEY else self.schema_)


class KafkaTargetChoice(Target):
    """Where rows go. ``connection/topic`` is its short form."""

    short_form = Source.short_form

    kafka: KafkaTarget

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        return address(value, "kafka", "topic")


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
    def reads_headers(self) -> bool:
        """Whether the source's headers are read: for what is set aside, or because they go through."""
        return super().reads_headers or self.target.kafka.passes_headers

    @property
    def target_registries(self) -> tuple[str, ...]:
        """The connection of the registry that has schemas of keys or values."""
        target = self.target.kafka
        return (target.registry,) if target.registry is not None and target.registered_parts else ()

    def record_name(self, part: PartOfRecord) -> str:
        """Return the full name of a record that is made of the query's types."""
        name = self.name if self.replay is None else self.replay.sink
        named = self.target.kafka.record or f"sinks.{re.sub('[^A-Za-z0-9_]', '_', name)}"
        first = named.rpartition(".")[2][:1]
        whole = named if not first.isdigit() else f"sinks._{named.rpartition('.')[2]}"
        return f"{whole}_key" if part is PartOfRecord.KEY else whole

    @property
    def progress_topic(self) -> str:
        """The name of the progress topic, resolved."""
        return self.progress.topic or f"_sinks-progress-{self.name}"

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
        yield f"- target: topic `{self.target.kafka.topic}` of connection `{self.target.kafka.connection}`"
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
