"""The source of a sink: a Kafka topic, how its records are read, and the columns that they become."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Annotated, Any

from pydantic import Field, model_validator

from airflow_provider_sinks.core.schemas.languages import parse, spark_columns
from airflow_provider_sinks.core.schemas.subjects import TOPIC_NAME
from airflow_provider_sinks.core.spec.ddl import columns_of, struct_fields
from airflow_provider_sinks.core.spec.durations import Duration
from airflow_provider_sinks.core.spec.fields import (
    Columns,
    ConnectionId,
    SourceOptions,
    Start,
    Text,
    TopicName,
    no_longer_than,
    whole_number,
    within,
)
from airflow_provider_sinks.core.spec.parts import OFFSETS_MAX, Format, Part, address
from airflow_provider_sinks.core.spec.problems import UnfitError, UnfitPartsError
from airflow_provider_sinks.core.spec.schema_options import (
    DeclaredSchema,
    Naming,
    SchemaChoice,
    declared,
)

DELETED_FIELD = "__deleted"
"""By what Debezium's rewriting of deletes says in a row whether it is gone."""
VALUE = "value"
"""The one column of the view ``source`` where a record's value is text or bytes."""


class Watermark(Part):
    """How late a row may come, by a column with its time."""

    column: Text
    delay: Annotated[Duration, no_longer_than(timedelta(days=365), "Spark keeps state for as long")]


class SourceEnvelope(enum.StrEnum):
    """What a record means: a row, a row in the place of the last one of its key, or a change of a row."""

    APPEND = "append"
    UPSERT = "upsert"
    DEBEZIUM = "debezium"


class SourceKey(Part):
    """The key of a source record: one column of the view ``source``, or the key of the rows that it holds."""

    column: Text = "key"
    columns: Columns | None = Field(
        default=None, description="for envelope upsert or debezium: the columns of a row that the key holds"
    )
    format: Format = Field(default=Format.BYTES, description="none, with columns: json")
    schema_: SchemaChoice | None = Field(default=None, alias="schema")

    @model_validator(mode="before")
    @classmethod
    def _of_columns(cls, value: Any) -> Any:
        if isinstance(value, Mapping) and value.get("columns") and "format" not in value:
            return {**value, "format": Format.JSON}
        return value


class KafkaSource(Part):
    """A Kafka topic to read."""

    connection: ConnectionId
    topic: TopicName
    format: Format = Format.JSON
    schema_: SchemaChoice | None = Field(
        default=None,
        alias="schema",
        description="of JSON Spark DDL: viewtime long, userid string; in a registry's formats "
        "the schema to read by",
    )
    envelope: SourceEnvelope | None = Field(default=None, description="what a record means; none: append")
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
        return bool(self.registered_formats)

    @property
    def registered_formats(self) -> frozenset[Format]:
        """Those of its formats whose schemas a registry has."""
        named = {self.format, *((self.key_as.format,) if self.key_as is not None else ())}
        return frozenset(one for one in named if one.is_registered)

    @property
    def has_deletes(self) -> bool:
        """Whether its records are changes of rows, of which some take a row away."""
        return self.envelope not in (None, SourceEnvelope.APPEND)

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns by which its rows are told apart; none where records are rows of their own."""
        return self.key_as.columns or () if self.has_deletes and self.key_as is not None else ()

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The user's columns of the view ``source``; None if the schema cannot be read."""
        if self.has_deletes:
            return self._row_columns
        key = () if self.key_as is None else (self.key_as.column,)
        value = self._value_columns
        return None if value is None else (*value, *key)

    @property
    def has_no_rows(self) -> bool:
        """Whether the schema that is written down speaks of no rows in this envelope."""
        return self.has_deletes and self._value_fields is not None and self._row_columns is None

    @property
    def _row_columns(self) -> tuple[str, ...] | None:
        """The columns of the rows that records are changes of."""
        fields = self._value_fields
        if fields is None or self.format is Format.JSON:
            return None if fields is None else tuple(fields)
        row = row_fields(self.envelope, fields)
        if row is None:
            return None
        known = {name.lower() for name in row}
        return (*row, *(name for name in self.key_columns if name.lower() not in known))

    @property
    def _value_columns(self) -> tuple[str, ...] | None:
        fields = self._value_fields
        return None if fields is None else tuple(fields)

    @property
    def _value_fields(self) -> Mapping[str, str] | None:
        """The fields of a value, with their types where the format's schema is read here."""
        if self.format is Format.JSON:
            with suppress(UnfitError):
                return None if self.ddl is None else dict.fromkeys(columns_of(self.ddl), "")
            return None
        if not self.format.is_registered:
            return {VALUE: ""}
        if self.declared is None or not self.declared.is_read_here(self.format):
            return None  # the registry knows, or a compiler
        with suppress(UnfitPartsError):
            return dict(spark_columns(parse(self.format, str(self.declared.inline))))
        return None

    @property
    def lacks_schemas(self) -> bool:
        """Whether a schema of its values or keys stands in a registry only, or refers to others there."""
        named = [(self.format, self.declared)]
        if self.key_as is not None:
            named.append((self.key_as.format, declared(self.key_as.schema_)))
        return any(
            kind.is_registered and (found is None or not found.is_read_here(kind)) for kind, found in named
        )

    def with_schemas(self, value: str | None, key: str | None) -> KafkaSource:
        """Return it with its schemas written down, as a registry has them now.

        :param value: of the values, standing by itself; ``None`` leaves it as it is.
        :param key: of the keys, likewise.
        """
        changed: dict[str, Any] = {} if value is None else {"schema_": value}
        if key is not None and self.key_as is not None:
            changed["key_as"] = self.key_as.model_copy(update={"schema_": key})
        return self.model_copy(update=changed)


def row_fields(envelope: SourceEnvelope | None, fields: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the columns of a row that a registered schema speaks of; ``None`` where it speaks of none.

    :param fields: of the value, each with its type as DDL.
    """
    if envelope is SourceEnvelope.DEBEZIUM and {"after", "op"} <= set(fields):
        return struct_fields(fields["after"]) if fields["after"].startswith("struct<") else None
    if envelope is SourceEnvelope.DEBEZIUM and DELETED_FIELD not in fields:
        return None
    return tuple(name for name in fields if name != DELETED_FIELD)


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
