"""The parts of a sink beside its source: lookups, target, dead letters, trigger; and what all parts share.

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
from airflow_provider_sinks.core.evolution import OnSchemaChange
from airflow_provider_sinks.core.spec.durations import Duration, format_duration
from airflow_provider_sinks.core.spec.fields import (
    Columns,
    ConnectionId,
    TableName,
    no_longer_than,
    whole_number,
    within,
)
from airflow_provider_sinks.core.spec.problems import UnfitError

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
    JSON_SCHEMA = "json_schema"
    PROTOBUF = "protobuf"

    @property
    def is_registered(self) -> bool:
        """Whether its schemas are kept in a registry."""
        return self in _REGISTERED

    @property
    def registry_kind(self) -> str:
        """What a registry calls schemas of this format."""
        return _REGISTERED[self][0]

    @property
    def language(self) -> str:
        """What people call the language of its schemas."""
        return _REGISTERED[self][1]


_REGISTERED = {
    Format.AVRO: ("AVRO", "Avro"),
    Format.JSON_SCHEMA: ("JSON", "JSON Schema"),
    Format.PROTOBUF: ("PROTOBUF", "Protobuf"),
}
REGISTERED_FORMATS = "avro, json_schema or protobuf"


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


class Tombstones(enum.StrEnum):
    """What a row means whose columns outside of the key are all null, where rows replace each other."""

    IGNORE = "ignore"
    DELETE = "delete"


class TargetOptions(Part):
    """The options of a kind of target."""


class ConnectedTarget(TargetOptions):
    """The options of a target that is reached by an Airflow connection."""

    connection: ConnectionId
    key: Columns = ()


class EvolvingTarget(TargetOptions):
    """The options of a target whose table can be altered."""

    on_schema_change: OnSchemaChange | None = Field(
        default=None,
        description="what a start does where the query's columns do not fit the table; none: refuse",
    )

    @property
    def may_change(self) -> OnSchemaChange:
        """What a start may do to the table; without a word it refuses."""
        return self.on_schema_change or OnSchemaChange.REFUSE


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


class Writers(enum.StrEnum):
    """Who writes: one transactional writer per source partition, or one for the whole sink."""

    PER_PARTITION = "per_partition"
    SINGLE = "single"


class OutputMode(enum.StrEnum):
    """What a stateful query gives: finished rows only, or each row that changed."""

    APPEND = "append"
    UPDATE = "update"


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
