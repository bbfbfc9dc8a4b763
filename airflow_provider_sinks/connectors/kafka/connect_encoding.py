"""From columns to JSON as Kafka Connect writes it with ``schemas.enable``, in Spark's expressions.

The schema is the same text in front of every row. Values are as in any JSON of ours, but for what Connect has
as numbers: a date, and a moment without a zone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from airflow_provider_sinks.connectors.encoding import as_json
from airflow_provider_sinks.connectors.kafka.json_encoding import json_reasons
from airflow_provider_sinks.connectors.kafka.registered_encoding import NamedColumns, first_error
from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.core.schemas.connect_json import connect_schema
from airflow_provider_sinks.core.schemas.derived import columns_of
from airflow_provider_sinks.core.schemas.json_derived import object_of
from airflow_provider_sinks.core.schemas.json_types import (
    DATE,
    LOCAL_MOMENT,
    ArrayOf,
    JsonType,
    MapOf,
    Object,
    Scalar,
    known,
)
from airflow_provider_sinks.core.schemas.subjects import Part
from airflow_provider_sinks.core.spec.problems import UnfitPartsError


def connect_bytes(output: DataFrame, columns: NamedColumns, part: Part, names: Mapping[str, str]) -> Column:
    """Return an object of these columns behind its schema.

    :param names: of the structs that have one, by the fields that have them; the object itself is ``""``.
    :raises ConfigurationError: with every column that has no form.
    """
    kind = _object(_kinds(output, columns), part)
    types = {one.name: one.type for one in kind.properties}
    payload = sql.struct(*(_value(column, types[name]).alias(name) for name, column in columns))
    head = json.dumps({"schema": connect_schema(kind, names), "payload": None}, separators=(",", ":"))
    return sql.concat(sql.lit(head.removesuffix("null}")), as_json(payload), sql.lit("}")).cast("binary")


def connect_error(output: DataFrame, columns: NamedColumns, part: Part) -> Column:
    """Return why a row cannot be written, or null: NaN is no number in JSON, a date has its years."""
    kinds = _kinds(output, columns)
    return first_error(json_reasons(columns, kinds, _object(kinds, part)), part)


def _object(kinds: StructType, part: Part) -> Object:
    try:
        return object_of(columns_of(kinds.jsonValue()), nullable=part is Part.VALUE)
    except UnfitPartsError as unfit:
        problems = unfit.under("column", " ")
        raise ConfigurationError(f"the {part} cannot be written with its schema", problems) from None


def _kinds(output: DataFrame, columns: NamedColumns) -> StructType:
    return output.select(*(column.alias(name) for name, column in columns)).schema


def _value(value: Column, kind: JsonType) -> Column:
    """Return a value with its dates as days, and its moments without a zone as microseconds, since 1970."""
    kind = known(kind)
    if not _changes(kind):
        return value
    match kind:
        case Object():
            fields = [_value(value.getField(one.name), one.type).alias(one.name) for one in kind.properties]
            return sql.when(value.isNotNull(), sql.struct(*fields))
        case ArrayOf(items=items):
            return sql.transform(value, lambda one: _value(one, items))
        case MapOf(values=values):
            return sql.transform_values(value, lambda _, one: _value(one, values))
        case Scalar(means=means) if means == DATE:
            return sql.unix_date(value)
        case _:  # by its text, as a cast to a timestamp would go by the zone of the session
            return sql.unix_micros(sql.concat(value.cast("string"), sql.lit("Z")).try_cast("timestamp"))


def _changes(kind: JsonType) -> bool:
    match known(kind):
        case Object() as found:
            return any(_changes(one.type) for one in found.properties)
        case ArrayOf() as found:
            return _changes(found.items)
        case MapOf() as found:
            return _changes(found.values)
        case Scalar() as found:
            return found.means in (DATE, LOCAL_MOMENT)
        case _:
            return False
