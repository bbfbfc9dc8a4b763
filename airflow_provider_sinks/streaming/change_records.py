"""The key and the value of a record that says what became of a row, read; all in the JVM.

Either may stand in the ``payload`` of Connect's JSON, beside its ``schema``. The forms of a change are one
schema to Spark's parser; a value fills one of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from typing import cast

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import (
    BinaryType,
    DataType,
    DateType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.core.query.views import INTERNAL
from airflow_provider_sinks.core.schemas.subjects import Part
from airflow_provider_sinks.core.spec.parts import Format
from airflow_provider_sinks.core.spec.source import DELETED_FIELD, KafkaSource, SourceEnvelope
from airflow_provider_sinks.streaming import json_fields, json_values

Decode = Callable[[DataFrame, Part], tuple[DataFrame, Column]]
"""Reads a part by its registered schema: gives the records with :data:`.json_values.ERROR`, and a struct."""

VALUE, VALUE_ERROR = f"{INTERNAL}change", f"{INTERNAL}change_error"
KEY, KEY_ERROR = f"{INTERNAL}change_key", f"{INTERNAL}change_key_error"
_ENVELOPE = frozenset(
    {"before", "after", "op", "source", "ts_ms", "ts_us", "ts_ns", "transaction", "schema", "payload"}
)
"""The fields around a row: a row that has one of them is not told from what is around it."""
_WRAPPER = frozenset({"schema", "payload"})
_WRAPS = (
    r'(?s)^\s*\{\s*(?:"schema"\s*:\s*(?:\{|null)|"payload"\s*:\s*(?:\{|null)(?=.*"schema"\s*:\s*(?:\{|null)))'
)
"""How a text begins that may be Connect's: with its schema, an object or null, or a payload before it."""
_WRAPPED_NULL = r'(?s)^\s*\{\s*"schema"\s*:\s*(?:null|\{.*\})\s*,\s*"payload"\s*:\s*null\s*\}\s*$'
_OTHER_SPELLING = r"\\[u/]"
"""In JSON any character may be written so, and a name is then not found by its own."""


@dataclass(frozen=True)
class Fields:
    """The fields of what was read, as far as a row goes.

    :param value: of the value itself.
    :param row: of the row in an event; none where values are rows.
    """

    value: StructType
    row: StructType | None

    @classmethod
    def of(cls, read_: DataFrame) -> Fields:
        """Return those of records whose value is read."""
        value = cast("StructType", read_.schema[VALUE].dataType)
        is_event = {"op", "after"} <= set(value.names) and isinstance(value["after"].dataType, StructType)
        return cls(value, cast("StructType", value["after"].dataType) if is_event else None)

    def type_of(self, name: str) -> DataType:
        """Return the type of a column of the row; text where only the key has it."""
        fields = self.row or self.value
        return fields[name].dataType if name in fields.names else StringType()


def is_tombstone(source: KafkaSource) -> Column:
    """Tell whether a record has no value; Connect may wrap even that."""
    none = sql.col("value").isNull()
    is_event = source.envelope is SourceEnvelope.DEBEZIUM
    if source.format is not Format.JSON or (not is_event and _has_any_of(declared(source), _WRAPPER)):
        return none
    text = sql.col("value").cast("string")
    keys = sql.array(sql.lit("schema"), sql.lit("payload"))
    has_no_more = sql.coalesce(sql.json_object_keys(text) == keys, sql.lit(False))
    return none | (sql.rlike(text, sql.lit(_WRAPPED_NULL)) & has_no_more)


def of_rows(records: DataFrame, source: KafkaSource) -> DataFrame:
    """Leave out what Debezium writes behind the delete of a row that its record's key does not tell.

    It is judged by the bytes: Spark moves a condition to where records are read, with all that it stands on.
    """
    if source.envelope is not SourceEnvelope.DEBEZIUM:
        return records
    key = sql.col("key")
    tells_nothing = key.isNull()
    if source.key_as is not None and source.key_as.format is Format.JSON:
        text = key.cast("string")
        names = [sql.lit(json.dumps(name, ensure_ascii=False)) for name in source.key_columns]
        lacks = reduce(Column.__or__, [~sql.contains(text, name) for name in names])
        is_plain = ~sql.rlike(text, sql.lit(_OTHER_SPELLING))
        tells_nothing = tells_nothing | (text.startswith("{") & is_plain & lacks)
    return records.where(~(is_tombstone(source) & tells_nothing))


def with_value(records: DataFrame, source: KafkaSource, decode: Decode) -> DataFrame:
    """Add :data:`VALUE`, a struct or null, and :data:`VALUE_ERROR`."""
    if source.format is Format.JSON:
        row = _nullable(declared(source))
        wraps = source.envelope is SourceEnvelope.DEBEZIUM or not _has_any_of(row, _WRAPPER)
        return _with_json(records, Part.VALUE, _forms(row, source), VALUE, may_be_wrapped=wraps)
    judged, found = decode(records, Part.VALUE)
    return judged.withColumn(VALUE, found).withColumnRenamed(json_values.ERROR, VALUE_ERROR)


def with_key(read_: DataFrame, source: KafkaSource, decode: Decode) -> DataFrame:
    """Add :data:`KEY`, a struct or null, and :data:`KEY_ERROR`.

    :raises ConfigurationError: the key's schema does not have the columns.
    """
    assert source.key_as is not None  # noqa: S101  the spec has columns of the key
    if source.key_as.format is Format.JSON:
        fields = _nullable(StructType([f for f in declared(source) if f.name in source.key_columns]))
        return _with_json(read_, Part.KEY, fields, KEY, may_be_wrapped=not _has_any_of(fields, _WRAPPER))
    if source.key_as.format is Format.TEXT:
        return _with_text(read_, source)
    judged, found = decode(read_, Part.KEY)
    whole = judged.withColumn(KEY, found).withColumnRenamed(json_values.ERROR, KEY_ERROR)
    kind = whole.schema[KEY].dataType
    if isinstance(kind, StructType):
        _demand_fields(source, kind)
        return whole
    [name] = source.key_columns
    return whole.withColumn(KEY, sql.when(found.isNotNull(), sql.struct(found.alias(name))))


def _demand_fields(source: KafkaSource, key: StructType) -> None:
    problems = [
        Problem(f"source.kafka.key_as.columns[{index}]", f"{name!r} is no field of the key's schema")
        for index, name in enumerate(source.key_columns)
        if name not in key.names
    ]
    if problems:
        raise ConfigurationError("the key of the source does not have its columns", problems)


def _with_json(
    records: DataFrame, part: Part, fields: StructType, name: str, *, may_be_wrapped: bool
) -> DataFrame:
    """Add the fields of a part, and what is wrong with it.

    What stands by itself and what looks like Connect's are two readings: a field ``payload`` that is none of
    ours may have any type. Where a field of ours stands beside the payload, the payload is none of Connect's.
    """
    data = sql.col(part.value)
    if not may_be_wrapped:
        return _read_json(records, part, data, fields, name)
    wraps, inner = sql.rlike(data.cast("string"), sql.lit(_WRAPS)), f"{name}_wrapped"
    both = StructType([*fields, StructField("payload", fields)])
    read_ = _read_json(records, part, sql.when(~wraps, data), fields, name)
    read_ = _read_json(read_, part, sql.when(wraps, data), both, inner)
    wrapped = sql.col(inner)
    own = [field_of(wrapped, field.name) for field in fields]
    bare = sql.struct(*(one.alias(field.name) for one, field in zip(own, fields, strict=True)))
    is_bare = reduce(Column.__or__, [one.isNotNull() for one in own], sql.lit(False))
    payload = sql.when(is_bare, bare).when(
        wrapped.isNotNull(), sql.coalesce(field_of(wrapped, "payload"), bare)
    )
    error = sql.coalesce(sql.col(f"{name}_error"), sql.col(f"{inner}_error"))
    return read_.withColumn(name, sql.coalesce(sql.col(name), payload)).withColumn(f"{name}_error", error)


def _read_json(records: DataFrame, part: Part, data: Column, fields: StructType, name: str) -> DataFrame:
    judged, columns = json_values.read_json(records, fields, json_values.JsonBytes(data, part))
    whole = judged.withColumn(name, sql.when(data.isNotNull(), sql.struct(*columns)))
    return whole.withColumnRenamed(json_values.ERROR, f"{name}_error")


def _with_text(read_: DataFrame, source: KafkaSource) -> DataFrame:
    [name] = source.key_columns
    is_declared = source.format is Format.JSON
    kind = declared(source)[name].dataType if is_declared else Fields.of(read_).type_of(name)
    key, text = sql.col("key"), sql.col("key").cast("string")
    if isinstance(kind, BinaryType):
        found, wrong = key, sql.lit(None).cast("string")
    else:
        found, is_exact = _of_text(text, kind)
        wrong = sql.when(json_values.not_utf8(text), sql.lit("The key is not UTF-8.")).when(
            text.isNotNull() & ~is_exact, sql.lit(f"The key is not {kind.simpleString()}.")
        )
    whole = sql.when(key.isNotNull(), sql.struct(found.alias(name)))
    return read_.withColumn(KEY, whole).withColumn(KEY_ERROR, wrong)


def _of_text(text: Column, kind: DataType) -> tuple[Column, Column]:
    """Return the value of a text, and whether it is all that the text says: Spark rounds, and cuts off."""
    if isinstance(kind, StringType):
        return text, sql.lit(True)
    if isinstance(kind, DateType | TimestampType | TimestampNTZType):
        found = text.try_cast(kind)
        return found, sql.coalesce(found.cast("string") == text, sql.lit(False))
    field = StructField("key", kind)
    [wide] = json_fields.wide(StructType([field]))
    read_ = text.try_cast(wide.dataType)
    lost = [sql.coalesce(is_lost, sql.lit(False)) for is_lost, _ in json_fields.losses(read_, kind)]
    return json_fields.narrow(read_, field), ~reduce(Column.__or__, lost, read_.isNull())


def declared(source: KafkaSource) -> StructType:
    """Return the row as the spec declares it."""
    columns = cast("StructType", StructType.fromDDL(str(source.ddl)))
    return json_fields.required(columns, source.required or ())


def _nullable(schema: StructType) -> StructType:
    return StructType([StructField(field.name, field.dataType) for field in schema])


def _forms(row: StructType, source: KafkaSource) -> StructType:
    """Return all that a value of JSON may have, whichever form of a change it is in."""
    flag = [] if DELETED_FIELD in row.names else [StructField(DELETED_FIELD, StringType())]
    if source.envelope is SourceEnvelope.UPSERT:
        own = [field for field in row if field.name not in source.key_columns]
        return StructType([*own, *flag])
    key = StructType([field for field in row if field.name in source.key_columns])
    around = [StructField("op", StringType()), StructField("before", key), StructField("after", row)]
    flat = [] if _has_any_of(row, _ENVELOPE) else [*row, *flag]
    return StructType([*around, *flat])


def _has_any_of(fields: StructType, names: Iterable[str]) -> bool:
    return bool({name.lower() for name in fields.names} & set(names))


def field_of(struct: Column, name: str) -> Column:
    """Return a field by its name, whatever letters that has."""
    return struct.getField(name)
