"""From a query's rows to fields of entries, in Spark's expressions. Only a driver loads it."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    MapType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from airflow_provider_sinks.connectors import rows
from airflow_provider_sinks.connectors.encoding import as_json, named, own_columns

_MOMENT = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"


def encode(output: DataFrame, *, keeps_raw: bool) -> DataFrame:
    """Return each column as text, bytes as they are: numbers as Spark writes them, nested values as JSON.

    :param keeps_raw: the source records are kept, because rows may be set aside.
    """
    values = [_text(named(name), output.schema[name].dataType).alias(name) for name in own_columns(output)]
    return output.select(*rows.COORDINATES, *values, *(rows.RAW if keeps_raw else ()))


def _text(value: Column, kind: DataType) -> Column:
    match kind:
        case BinaryType():
            return value
        case ArrayType() | MapType() | StructType():
            return as_json(value)
        case TimestampType():
            return sql.date_format(value, f"{_MOMENT}XXX")
        case TimestampNTZType():
            return sql.date_format(value, _MOMENT)
        case _:
            return value.cast("string")
