"""From columns to JSON in Confluent's wire format, in Spark's expressions: it runs in the JVM.

Fields stand in the order of the schema, whichever way the query names them: equal keys have equal bytes. Each
row is judged first: what a type alone does not promise sets it aside, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast

from pyspark.sql import Column
from pyspark.sql import functions as sql
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from airflow_provider_sinks.connectors.encoding import as_json
from airflow_provider_sinks.connectors.schema_registry.json_guards import by_schema, no_number, reasons
from airflow_provider_sinks.connectors.schema_registry.reasons import Guard, told
from airflow_provider_sinks.core.schemas.json_derived import leaves_out_nulls
from airflow_provider_sinks.core.schemas.json_types import (
    DATE,
    LOCAL_MOMENT,
    MOMENT,
    ArrayOf,
    JsonType,
    MapOf,
    Nullable,
    Object,
    Scalar,
    known,
)

_FIRST, _BEHIND = "0001-01-01", "+10000-01-01"


def json_body(columns: Sequence[tuple[str, Column]], kinds: StructType, schema: JsonType) -> Column:
    """Return an object of these columns.

    :param kinds: their types.
    """
    given = _given(kinds, schema)
    own = dict(columns)
    fields = [
        _ordered(own[one.name], one.type, kinds[one.name].dataType).alias(one.name)
        for one in given.properties
    ]
    return as_json(sql.struct(*fields), without_nulls=leaves_out_nulls(schema)).cast("binary")


def json_reasons(
    columns: Sequence[tuple[str, Column]], kinds: StructType, schema: JsonType
) -> Iterator[Column]:
    """Give why a row is not taken, of one column after the other."""
    own = dict(columns)
    for one in _given(kinds, schema).properties:
        if one.is_required and not one.may_be_null:
            yield from told([(own[one.name].isNull(), f"field {one.name} is null, and it is required")])
        yield from reasons(own[one.name], one.type, one.name, _judge)


def _judge(value: Column, kind: JsonType, path: str) -> Iterator[Guard]:
    yield from by_schema(value, kind, path)
    yield from no_number(value, kind, path)
    if isinstance(kind, Scalar) and kind.means in (DATE, MOMENT, LOCAL_MOMENT):
        day = value.cast("date")
        outside = (day < sql.lit(_FIRST).cast("date")) | (day >= sql.lit(_BEHIND).cast("date"))
        yield outside, f"field {path} is not in the years 1 to 9999"


def _given(kinds: DataType, schema: JsonType) -> Object:
    """Return a schema without the fields that no column gives."""
    return cast("Object", known(_narrowed(schema, kinds)))


def _narrowed(kind: JsonType, given: DataType) -> JsonType:
    match kind, given:
        case Object(), StructType():
            there = {field.name: field.dataType for field in given}
            kept = (one for one in kind.properties if one.name in there)
            return Object(tuple(replace(one, type=_narrowed(one.type, there[one.name])) for one in kept))
        case Nullable(), _:
            return Nullable(_narrowed(kind.type, given))
        case ArrayOf(), ArrayType():
            return replace(kind, items=_narrowed(kind.items, given.elementType))
        case MapOf(), MapType():
            return MapOf(_narrowed(kind.values, given.valueType))
        case _:
            return kind


def _ordered(value: Column, kind: JsonType, given: DataType) -> Column:
    """Return a struct with its fields in the order of the schema; other types as they are."""
    kind = known(kind)
    if not isinstance(kind, Object) or not isinstance(given, StructType):
        return value
    there: Mapping[str, DataType] = {field.name: field.dataType for field in given}
    fields = [
        _ordered(value.getField(one.name), one.type, there[one.name]).alias(one.name)
        for one in kind.properties
    ]
    return sql.when(value.isNotNull(), sql.struct(*fields))
