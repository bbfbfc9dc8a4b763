"""From a query's rows to the bytes of Kafka records, in Spark's expressions: it runs in the JVM."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from airflow_provider_sinks.connectors import rows
from airflow_provider_sinks.connectors.encoding import as_json, named
from airflow_provider_sinks.connectors.kafka.avro_encoding import avro_bytes, avro_error
from airflow_provider_sinks.connectors.kafka.columns import KEY, VALUE
from airflow_provider_sinks.connectors.kafka.spec import KafkaTarget
from airflow_provider_sinks.connectors.kafka.written_schemas import WrittenBy
from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.core.query.analysis import INTERNAL
from airflow_provider_sinks.core.schemas.subjects import Part
from airflow_provider_sinks.core.spec.parts import Format


def encode(
    output: DataFrame,
    target: KafkaTarget,
    taken_bytes: int | None,
    written: Mapping[Part, WrittenBy] | None = None,
) -> DataFrame:
    """Return the columns of a Kafka writer (:data:`.columns.WRITER_COLUMNS`) for the rows of a query.

    :param output: the query's columns, then the source columns.
    :param taken_bytes: how large key and value may be to be taken by the topic for sure: only what may be set
        aside keeps the record's own key and value. ``None`` where nothing is set aside.
    :param written: by what the parts are written whose schemas a registry has; ``None`` leaves them empty,
        where only the other columns count.
    :raises ConfigurationError: when the columns do not fit the target's key and format.
    """
    names = [name for name in output.columns if not name.startswith(INTERNAL)]
    if written:
        output = output.withColumn(rows.ERROR, _error(output, names, target, written))
    is_good = sql.col(rows.ERROR).isNull()
    key = sql.when(is_good, _key(output, names, target, written)).alias(KEY)
    value = sql.when(is_good, _value(output, names, target, written)).alias(VALUE)
    if taken_bytes is None:
        # Spark asks each column for its size after each row (spark.sql.execution.arrow.maxBytesPerBatch)
        return output.select(*rows.COORDINATES, key, value)
    encoded = output.select(*rows.COORDINATES, key, value, *rows.RAW)
    size = sum((sql.coalesce(sql.length(name), sql.lit(0)) for name in (KEY, VALUE)), sql.lit(0))
    needed = ~sql.col(rows.ERROR).isNull() | (size > taken_bytes)
    raw = [sql.when(needed, sql.col(name)).alias(name) for name in rows.RAW]
    return encoded.select(*rows.COORDINATES, KEY, VALUE, *raw)


def _error(
    output: DataFrame, names: list[str], target: KafkaTarget, written: Mapping[Part, WrittenBy]
) -> Column:
    """Return why a row cannot be written, where its source record parsed."""
    error = sql.lit(None).cast("string")
    if Part.VALUE in written:
        columns = _value_columns(output, names, target)
        why = avro_error(columns, written[Part.VALUE], Part.VALUE)
        error = sql.when(_has_value(names, target), why)
    if Part.KEY in written:
        error = sql.coalesce(avro_error(_named(target.key), written[Part.KEY], Part.KEY), error)
    return sql.when(sql.col(rows.ERROR).isNull(), error).otherwise(sql.col(rows.ERROR))


def _named(names: Iterable[str]) -> list[tuple[str, Column]]:
    return [(name, named(name)) for name in names]


def _value_columns(output: DataFrame, names: list[str], target: KafkaTarget) -> list[tuple[str, Column]]:
    """Return the fields of a value that is a record: of one column, or all of them."""
    if target.value is None:
        return _named(names)
    kind = output.schema[target.value].dataType
    if not isinstance(kind, StructType):
        raise TypeError(kind)
    return [(field.name, named(target.value).getField(field.name)) for field in kind]


def _has_value(names: list[str], target: KafkaTarget) -> Column:
    """Tell whether a row has a value at all, or is a tombstone."""
    if target.value is not None:
        return named(target.value).isNotNull()
    if not target.tombstones:
        return sql.lit(True)
    others = [named(name).isNotNull() for name in names if name not in target.key]
    if not others:
        problem = Problem(
            "target.kafka.tombstones",
            f"key has every column, {', '.join(names)}: each row would be a delete",
            "select a column that is not in the key, or leave tombstones out",
        )
        raise ConfigurationError("the value does not fit the query", [problem])
    return functools.reduce(operator.or_, others)


def _key(
    output: DataFrame, names: list[str], target: KafkaTarget, written: Mapping[Part, WrittenBy] | None
) -> Column:
    missing = [name for name in target.key if name not in names]
    if missing:
        problem = Problem(
            "target.kafka.key", f"column {missing[0]!r} is not in the output: {', '.join(names)}"
        )
        raise ConfigurationError("the key does not fit the query", [problem])
    if not target.key:
        return sql.col(rows.RAW_KEY)
    if target.key_format is not None:
        return _registered(_named(target.key), Part.KEY, written)
    if len(target.key) == 1:
        return _bytes(output, target.key[0])
    return _json([named(name) for name in target.key])


def _registered(
    columns: list[tuple[str, Column]], part: Part, written: Mapping[Part, WrittenBy] | None
) -> Column:
    return sql.lit(None).cast("binary") if written is None else avro_bytes(columns, written[part])


def _value(
    output: DataFrame, names: list[str], target: KafkaTarget, written: Mapping[Part, WrittenBy] | None
) -> Column:
    if target.format.is_registered:
        value = _registered(_value_columns(output, names, target), Part.VALUE, written)
        return sql.when(_has_value(names, target), value)
    if target.format is Format.JSON and target.value is None:
        value = _json([named(name) for name in names])
        return sql.when(_has_value(names, target), value) if target.tombstones else value
    column = _value_column(names, target)
    kind = dict(output.dtypes)[column]
    if target.format is Format.JSON and kind not in ("string", "binary"):
        return as_json(named(column)).cast("binary")
    return _bytes(output, column)


def _value_column(names: list[str], target: KafkaTarget) -> str:
    others = [name for name in names if name not in target.key]
    column = target.value or (others[0] if len(others) == 1 else None)
    if column in names:
        return column
    problem = Problem(
        "target.kafka.value",
        f"names no output column: {column}" if column else f"format {target.format.value} takes one column",
        f"the output has {', '.join(names)}",
    )
    raise ConfigurationError("the value does not fit the query", [problem])


def _json(columns: list[Column]) -> Column:
    return as_json(sql.struct(*columns)).cast("binary")


def _bytes(output: DataFrame, name: str) -> Column:
    column = named(name)
    return column if dict(output.dtypes)[name] == "binary" else column.cast("string").cast("binary")
