"""From Kafka records to the columns that a writer takes: parse, query, encode. All of it runs in the JVM."""

from __future__ import annotations

from typing import assert_never, cast

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.core.query.analysis import INTERNAL, SOURCE
from airflow_provider_sinks.core.spec.parts import Format, KafkaSource, KafkaTarget
from airflow_provider_sinks.streaming import json_fields, json_values, rows

TOPIC = "__sinks_topic"
SOURCE_VIEW = SOURCE
_MOMENT = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
_TO_JSON = {
    "ignoreNullFields": "false",
    "timestampFormat": f"{_MOMENT}[XXX]",
    "timestampNTZFormat": _MOMENT,
}
"""Microseconds are what Spark's timestamps have; by itself it writes milliseconds, and drops the rest."""


def parse(records: DataFrame, source: KafkaSource) -> DataFrame:
    """Return the view ``source``: the record's columns, then the source columns.

    - ``json``: the columns of the schema, or nulls and an error for a value that does not parse; a record
      without a value (a tombstone) has nulls and no error.
    - ``text``: one column, ``value``, or null and an error where it is not UTF-8.
    - ``bytes``: one column, ``value``.

    :param records: what Spark's Kafka source yields.
    """
    match source.format:
        case Format.JSON:
            return _parse_json(records, source)
        case Format.TEXT:
            return _parse_text(records)
        case Format.BYTES:
            return records.select("value", *_source_columns(sql.lit(None)))
        case other:
            assert_never(other)


def _parse_json(records: DataFrame, source: KafkaSource) -> DataFrame:
    declared = cast("StructType", StructType.fromDDL(str(source.schema_)))
    schema = json_fields.required(declared, source.required or ())
    judged, columns = json_values.read_json(records, schema)
    return judged.select(*columns, *_source_columns(sql.col(json_values.ERROR)))


def _parse_text(records: DataFrame) -> DataFrame:
    text = sql.col("value").cast("string")
    error = sql.when(json_values.not_utf8(text), sql.lit("The value is not UTF-8; `format: bytes` takes it."))
    judged = records.withColumn(json_values.ERROR, error)
    value = sql.when(sql.col(json_values.ERROR).isNull(), text).alias("value")
    return judged.select(value, *_source_columns(sql.col(json_values.ERROR)))


def _source_columns(error: Column) -> list[Column]:
    return [
        sql.col("topic").alias(TOPIC),
        sql.col("partition").alias(rows.PARTITION),
        sql.col("offset").alias(rows.OFFSET),
        error.cast("string").alias(rows.ERROR),
        sql.col("key").alias(rows.RAW_KEY),
        sql.col("value").alias(rows.RAW_VALUE),
    ]


def encode(output: DataFrame, target: KafkaTarget, *, has_source_columns: bool) -> DataFrame:
    """Return the writer's columns (:data:`rows.WRITER_COLUMNS`) for the rows of a query.

    Each has the source record's own key and value where the plan keeps them; see
    :func:`with_raw_where_needed` and :func:`without_raw`.

    :param output: the query's columns, followed by the source columns where the plan keeps them.
    :param has_source_columns: whether it keeps them.
    :raises ConfigurationError: when the columns do not fit the target's key and format.
    """
    names = [name for name in output.columns if not name.startswith(INTERNAL)]
    key = _key(output, names, target, has_source_columns=has_source_columns)
    value = _value(output, names, target)
    if not has_source_columns:
        null = {rows.PARTITION: "int", rows.OFFSET: "bigint", rows.ERROR: "string"}
        raw = {rows.RAW_KEY: "binary", rows.RAW_VALUE: "binary"}
        nulls = [sql.lit(None).cast(kind).alias(name) for name, kind in {**null, **raw}.items()]
        return output.select(key.alias(rows.KEY), value.alias(rows.VALUE), *nulls).select(
            *rows.WRITER_COLUMNS
        )
    bad = sql.col(rows.ERROR).isNotNull()
    return output.select(
        rows.PARTITION,
        rows.OFFSET,
        rows.ERROR,
        sql.when(~bad, key).alias(rows.KEY),
        sql.when(~bad, value).alias(rows.VALUE),
        rows.RAW_KEY,
        rows.RAW_VALUE,
    )


def with_raw_where_needed(written: DataFrame, taken_bytes: int) -> DataFrame:
    """Return the writer's columns with the source record's own key and value only for what may be set aside.

    :param taken_bytes: how large key and value may be to be taken by the target for sure.
    """
    size = sum((sql.coalesce(sql.length(name), sql.lit(0)) for name in (rows.KEY, rows.VALUE)), sql.lit(0))
    needed = sql.col(rows.ERROR).isNotNull() | (size > taken_bytes)
    raw = [sql.when(needed, sql.col(name)).alias(name) for name in (rows.RAW_KEY, rows.RAW_VALUE)]
    return written.select(rows.PARTITION, rows.OFFSET, rows.ERROR, rows.KEY, rows.VALUE, *raw)


def parsed_only(parsed: DataFrame) -> DataFrame:
    """Return the user's columns of those rows of the view ``source`` that did parse."""
    names = [name for name in parsed.columns if not name.startswith(INTERNAL)]
    return parsed.where(sql.col(rows.ERROR).isNull()).select(*(sql.col(_quoted(name)) for name in names))


def dead_letters(parsed: DataFrame) -> DataFrame:
    """Return the writer's columns for those rows of the view ``source`` that did not parse."""
    bad = parsed.where(sql.col(rows.ERROR).isNotNull())
    nothing = sql.lit(None).cast("binary")
    return bad.select(
        rows.PARTITION,
        rows.OFFSET,
        rows.ERROR,
        nothing.alias(rows.KEY),
        nothing.alias(rows.VALUE),
        rows.RAW_KEY,
        rows.RAW_VALUE,
    )


def without_raw(written: DataFrame) -> DataFrame:
    """Return the writer's columns without the record's own key and value, which only a dead letter has.

    Spark asks each column for its size after each row (``spark.sql.execution.arrow.maxBytesPerBatch``).
    """
    return written.drop(rows.RAW_KEY, rows.RAW_VALUE)


def _key(output: DataFrame, names: list[str], target: KafkaTarget, *, has_source_columns: bool) -> Column:
    missing = [name for name in target.key if name not in names]
    if missing:
        problem = Problem(
            "target.kafka.key", f"column {missing[0]!r} is not in the output: {', '.join(names)}"
        )
        raise ConfigurationError("the key does not fit the query", [problem])
    if not target.key:
        return sql.col(rows.RAW_KEY) if has_source_columns else sql.lit(None).cast("binary")
    if len(target.key) == 1:
        return _bytes(output, target.key[0])
    return _json([sql.col(_quoted(name)) for name in target.key])


def _value(output: DataFrame, names: list[str], target: KafkaTarget) -> Column:
    if target.format is Format.JSON and target.value is None:
        value = _json([sql.col(_quoted(name)) for name in names])
        if not target.tombstones:
            return value
        others = [sql.col(_quoted(name)).isNotNull() for name in names if name not in target.key]
        anything = others[0]
        for other in others[1:]:
            anything = anything | other
        return sql.when(anything, value)
    column = _value_column(names, target)
    kind = dict(output.dtypes)[column]
    if target.format is Format.JSON and kind not in ("string", "binary"):
        return sql.to_json(sql.col(_quoted(column)), _TO_JSON).cast("binary")
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
    return sql.to_json(sql.struct(*columns), _TO_JSON).cast("binary")


def _bytes(output: DataFrame, name: str) -> Column:
    column = sql.col(_quoted(name))
    return column if dict(output.dtypes)[name] == "binary" else column.cast("string").cast("binary")


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
