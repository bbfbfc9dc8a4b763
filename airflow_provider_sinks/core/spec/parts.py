"""The parts of a sink: source, lookups, target, trigger, and the topics beside them.

Each part knows what is right about its own options; what must hold between parts stands in ``rules.py``.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, ClassVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    model_serializer,
    model_validator,
)

from airflow_provider_sinks.core.dead_letters.limits import SetAsideLimits
from airflow_provider_sinks.core.errors import nearest
from airflow_provider_sinks.core.schemas.subjects import TOPIC_NAME
from airflow_provider_sinks.core.spec.durations import Duration, format_duration
from airflow_provider_sinks.core.spec.fields import (
    Columns,
    ConnectionId,
    SourceOptions,
    Start,
    TableName,
    Text,
    TopicName,
    no_longer_than,
    whole_number,
    within,
)
from airflow_provider_sinks.core.spec.problems import UnfitError
from airflow_provider_sinks.core.spec.schema_options import (
    DeclaredSchema,
    Naming,
    SchemaChoice,
    declared,
)

MEBIBYTE = 1024 * 1024
OFFSETS_MAX = 100_000_000
LOOKUP_BYTES_MAX = 8 * 1024 * MEBIBYTE
_REFRESH = "rows would be joined with a table that is a month old"
_EVERY = "leave trigger out, and give the DAG a schedule: a driver would wait for days"


class Format(enum.StrEnum):
    """How the bytes of a Kafka record are read or written."""

    JSON = "json"
    TEXT = "text"
    BYTES = "bytes"
    AVRO = "avro"

    @property
    def is_registered(self) -> bool:
        """Whether its schemas are kept in a registry."""
        return self is Format.AVRO


class Part(BaseModel):
    """What all parts share: frozen, and unknown options are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)
    short_form: ClassVar[str] = ""
    """The pattern of the text that may stand for this part, for the JSON Schema."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        whole: dict[str, Any] = handler.resolve_ref_schema(handler(core))
        if not cls.short_form:
            return whole
        named: dict[str, Any] = {key: whole.pop(key) for key in ("title", "description") if key in whole}
        return {**named, "anyOf": [{"type": "string", "pattern": cls.short_form}, whole]}


def address(value: Any, kind: str, second: str) -> Any:
    """Read the short form ``connection/topic``."""
    if not isinstance(value, str):
        return value
    connection, slash, name = value.rpartition("/")
    if not slash:
        raise UnfitError(f"{value!r} is no short form", f"write connection/{second}")
    return {kind: {"connection": connection, second: name}}


class Watermark(Part):
    """How late a row may come, by a column with its time."""

    column: Text
    delay: Annotated[Duration, no_longer_than(timedelta(days=365), "Spark keeps state for as long")]


class SourceKey(Part):
    """The key of a source record, as a column of the view ``source``."""

    column: Text = "key"
    format: Format = Format.BYTES
    schema_: SchemaChoice | None = Field(default=None, alias="schema")


class KafkaSource(Part):
    """A Kafka topic to read."""

    connection: ConnectionId
    topic: TopicName
    format: Format = Format.JSON
    schema_: SchemaChoice | None = Field(
        default=None,
        alias="schema",
        description="of JSON Spark DDL: viewtime long, userid string; of Avro the schema to read by",
    )
    key_as: SourceKey | None = None
    registry: ConnectionId | None = Field(
        default=None, description="id of an Airflow connection of type http to a schema registry"
    )
    subjects: Naming | None = None
    required: Columns | None = Field(
        default=None,
        description="columns that no value may lack or have null, as NOT NULL in the schema",
    )
    start: Start = "earliest"
    watermark: Watermark | None = None
    max_offsets_per_epoch: Annotated[
        int,
        Field(strict=True),
        within(1, OFFSETS_MAX, "an epoch must end within the transaction timeout"),
        whole_number(1, OFFSETS_MAX),
    ] = 1_000_000
    options: SourceOptions = Field(default_factory=dict)

    @property
    def ddl(self) -> str | None:
        """The schema of JSON, as it was written."""
        return self.schema_ if isinstance(self.schema_, str) else None

    @property
    def declared(self) -> DeclaredSchema | None:
        """The schema of a format with a registry, where the spec says which one it is."""
        return declared(self.schema_)

    @property
    def naming(self) -> str:
        """How subjects are named, resolved."""
        return self.subjects or TOPIC_NAME

    @property
    def uses_registry(self) -> bool:
        """Whether a registry has a schema of its values or keys."""
        return self.format.is_registered or (self.key_as is not None and self.key_as.format.is_registered)


class Source(Part):
    """Where rows come from. ``connection/topic`` stands for a topic of raw bytes."""

    short_form = r"^[^\s]+/[a-zA-Z0-9._-]{1,249}$"

    kafka: KafkaSource

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        read = address(value, "kafka", "topic")
        if isinstance(value, str):
            read["kafka"]["format"] = Format.BYTES
        return read


class PostgresLookup(Part):
    """A Postgres table to join with, small enough to be sent to every executor."""

    connection: ConnectionId
    table: TableName
    columns: Columns | None = None
    refresh: Annotated[Duration, no_longer_than(timedelta(days=30), _REFRESH)] | None = None
    max_bytes: Annotated[
        int,
        Field(strict=True),
        within(1, LOOKUP_BYTES_MAX, "Spark sends no larger table to its executors"),
        whole_number(1, LOOKUP_BYTES_MAX),
    ] = 64 * MEBIBYTE


class Lookup(Part):
    """A table to join with. ``connection/schema.table`` is its short form."""

    short_form = r"^[^\s]+/[^/.]+\.[^/.]+$"

    postgres: PostgresLookup

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        return address(value, "postgres", "table")


class TargetOptions(Part):
    """The options of a kind of target."""


class ConnectedTarget(TargetOptions):
    """The options of a target that is reached by an Airflow connection."""

    connection: ConnectionId
    key: Columns = ()


class Target(Part):
    """Where rows go: one key, which is the kind of target, and its options."""

    @property
    def kind(self) -> str:
        """The name of the target's connector."""
        return next(iter(type(self).model_fields))

    @property
    def options(self) -> TargetOptions:
        """The options of that kind."""
        options: TargetOptions = getattr(self, self.kind)
        return options


def _ratio(value: float) -> float:
    if not 0 < value < 1:
        raise UnfitError(f"{value:g} is out of range", "a part of all records, more than 0 and less than 1")
    return value


class DeadLetterPart(Part):
    """What the dead letters of every kind of target have in common: how many stop the sink."""

    max_per_epoch: (
        Annotated[int, Field(strict=True), within(0, OFFSETS_MAX, "an epoch has no more records")] | None
    ) = Field(
        default=None,
        description="a writer sets no more aside in one epoch: it stops the sink before its commit",
    )
    max_ratio: Annotated[float, AfterValidator(_ratio)] | None = Field(
        default=None,
        description="likewise, as a part of the records of an epoch, from ten dead letters on",
    )

    @property
    def limits(self) -> SetAsideLimits:
        """Both together."""
        return SetAsideLimits(self.max_per_epoch, self.max_ratio)


class Trigger(Part):
    """When epochs run: ``available_now`` takes what is there and ends; ``every`` goes on."""

    short_form = "^available_now$"

    every: Annotated[Duration, no_longer_than(timedelta(days=1), _EVERY)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        if value == "available_now":
            return {}
        if isinstance(value, cls):
            return value
        if not isinstance(value, Mapping) or dict(value) in ({}, {"every": None}):
            near = nearest(str(value), ["available_now"])
            raise UnfitError(f"{value!r} is no trigger", near or "available_now, or {every: 1s}")
        return value

    @model_serializer(mode="plain", when_used="json")
    def _written(self) -> Any:
        return "available_now" if self.every is None else {"every": format_duration(self.every)}

    @property
    def available_now(self) -> bool:
        """Take what is there now, then end."""
        return self.every is None
