"""A sink whose target is a Kafka topic: its part of the spec, and the rules over it."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, StrictBool, model_validator

from airflow_provider_sinks.connectors.kafka.creation import CreateTopic, progress_topic
from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.errors import JobFailedError, Problem
from airflow_provider_sinks.core.schemas.avro import parse
from airflow_provider_sinks.core.schemas.avro_names import NAME
from airflow_provider_sinks.core.schemas.subjects import TOPIC_NAME, tells_parts_apart
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
    Source,
    Target,
    address,
)
from airflow_provider_sinks.core.spec.problems import UnfitError, UnfitPartsError
from airflow_provider_sinks.core.spec.rules import QUERY, REGISTRY_HINT, Rule, known_column, needs
from airflow_provider_sinks.core.spec.schema_options import (
    AutoRegister,
    DeclaredSchema,
    Naming,
    Registering,
    SchemaChoice,
    declared,
)
from airflow_provider_sinks.core.spec.sink import SinkSpec


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
        return _RULES

    @property
    def target_registries(self) -> tuple[str, ...]:
        """The connection of the registry that has schemas of keys or values."""
        target = self.target.kafka
        return (target.registry,) if target.registry is not None and target.registered_parts else ()

    def record_name(self, part: PartOfRecord) -> str:
        """Return the full name of a record that is made of the query's types."""
        named = self.target.kafka.record or f"sinks.{re.sub('[^A-Za-z0-9_]', '_', self.name)}"
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


def _key(spec: KafkaSink) -> Iterator[Problem]:
    plan = spec.readable_shape
    if plan is None or plan.problems or plan.row_wise or spec.target.kafka.key:
        return
    what = "a stateful query needs one" if plan.stateful else "a query that is not row-wise needs one"
    names = ", ".join(o.clause for o in plan.obstacles)
    hint = f"the source record's key cannot pass through {names}; name the columns of the key"
    yield Problem("target.kafka.key", f"is missing: {what}", hint)


def _value(spec: KafkaSink) -> Iterator[Problem]:
    kafka, where = spec.target.kafka, "target.kafka"
    if kafka.format in (Format.TEXT, Format.BYTES) and kafka.tombstones:
        what = f"is for format json: in {kafka.format} a null value is a tombstone"
        yield Problem(f"{where}.tombstones", what, "leave it out")
    elif kafka.tombstones and kafka.value is not None:
        yield Problem(
            f"{where}.tombstones", "does not go with value: a null value is a tombstone", "leave it out"
        )
    if kafka.value is not None and kafka.value in kafka.key:
        yield Problem(f"{where}.value", f"{kafka.value!r} is the key already")
    if len(set(kafka.key)) < len(kafka.key):
        yield Problem(f"{where}.key", "names a column twice")


def _output_columns(spec: KafkaSink) -> Iterator[Problem]:
    plan, kafka = spec.readable_shape, spec.target.kafka
    if plan is None or plan.problems or plan.unknown_columns or plan.columns is None:
        return
    for index, name in enumerate(kafka.key):
        yield from known_column(f"target.kafka.key[{index}]", name, plan.columns, "the output")
    if kafka.value is not None:
        yield from known_column("target.kafka.value", kafka.value, plan.columns, "the output")
    elif kafka.format in (Format.TEXT, Format.BYTES):
        values = [name for name in plan.columns if name not in kafka.key]
        if len(values) != 1:
            what = f"{kafka.format} needs one column for the value, but there are {len(values)}"
            names = f"of {', '.join(values)}" if values else "of the output"
            yield Problem("target.kafka.format", what, f"name one {names} by value")


def _registry(spec: KafkaSink) -> Iterator[Problem]:
    kafka, where = spec.target.kafka, "target.kafka"
    parts = kafka.registered_parts
    if parts and kafka.registry is None:
        yield Problem(f"{where}.registry", f"is missing: format {Format.AVRO} needs one", REGISTRY_HINT)
    elif kafka.registry is not None and not parts:
        what = f"does not go with format {kafka.format}"
        yield Problem(f"{where}.registry", what, f"leave it out; {Format.AVRO} uses one")
    if kafka.key_format is not None and not kafka.key:
        yield Problem(f"{where}.key_format", "is for a key made of columns", "name them by key")
    for part, option in ((PartOfRecord.KEY, "key_schema"), (PartOfRecord.VALUE, "schema")):
        if part not in parts and kafka.declared(part) is not None:
            yield Problem(f"{where}.{option}", f"is for a {part} in {Format.AVRO}", "leave it out")
        elif part in parts:
            yield from written_schema(f"{where}.{option}", kafka.declared(part))
    if len(parts) == 2 and not tells_parts_apart(kafka.naming):
        names = {(kafka.declared(part) or DeclaredSchema()).inline for part in parts}
        if len(names) == 1 and None not in names:
            yield Problem(
                f"{where}.subjects", "gives key and value one subject", "put {part} into the template"
            )


def written_schema(where: str, schema: DeclaredSchema | None) -> Iterator[Problem]:
    """Give what is wrong with a written schema; one that refers to others is read once they are known."""
    if schema is None or schema.inline is None or schema.references:
        return
    try:
        parse(schema.inline)
    except UnfitPartsError as unfit:
        for problem in unfit.problems:
            yield Problem(f"{where}: {problem.where}".rstrip(": "), problem.what, problem.hint)


def _topics(spec: KafkaSink) -> Iterator[Problem]:
    target, source = spec.target.kafka, spec.source.kafka
    named = [("source.kafka.topic", source.connection, source.topic)] if spec.replay is None else []
    named.append(("target.kafka.topic", target.connection, target.topic))
    if spec.dead_letter is not None:
        named.append(("dead_letter.topic", target.connection, spec.dead_letter.topic))
    named.append(("progress.topic", target.connection, spec.progress_topic))
    seen: dict[tuple[str, str], str] = {}
    for where, connection, topic in named:
        first = seen.setdefault((connection, topic), where)
        if first != where:
            yield Problem(where, f"{topic!r} is {first} already", "each of them needs a topic of its own")


_RULES: tuple[Rule, ...] = (
    (needs(*QUERY, "target", "writers"), _key),
    (needs("target"), _value),
    (needs("target"), _registry),
    (needs(*QUERY, "target"), _output_columns),
    (needs("name", "source", "target", "dead_letter", "progress"), _topics),
)
