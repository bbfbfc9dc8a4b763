"""From Kafka records to the view that a query reads, and what goes with its rows; all in the JVM."""

from __future__ import annotations

from typing import assert_never, cast

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from airflow_provider_sinks.connectors import rows
from airflow_provider_sinks.connectors.encoding import named
from airflow_provider_sinks.core.query.analysis import INTERNAL, SOURCE
from airflow_provider_sinks.core.spec.parts import Format, KafkaSource
from airflow_provider_sinks.streaming import json_fields, json_values

TOPIC = "__sinks_topic"
HEADERS = "headers"
"""How Spark's Kafka source calls the headers of a record, where it is asked for them."""
SOURCE_VIEW = SOURCE


def parse(records: DataFrame, source: KafkaSource) -> DataFrame:
    """Return the view ``source``: the record's columns, then the source columns.

    Headers of records are kept where they were read (:mod:`.source`).

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
            return records.select("value", *_source_columns(records, sql.lit(None)))
        case other:
            assert_never(other)


def _parse_json(records: DataFrame, source: KafkaSource) -> DataFrame:
    declared = cast("StructType", StructType.fromDDL(str(source.schema_)))
    schema = json_fields.required(declared, source.required or ())
    judged, columns = json_values.read_json(records, schema)
    return judged.select(*columns, *_source_columns(judged, sql.col(json_values.ERROR)))


def _parse_text(records: DataFrame) -> DataFrame:
    text = sql.col("value").cast("string")
    error = sql.when(json_values.not_utf8(text), sql.lit("The value is not UTF-8; `format: bytes` takes it."))
    judged = records.withColumn(json_values.ERROR, error)
    value = sql.when(sql.col(json_values.ERROR).isNull(), text).alias("value")
    return judged.select(value, *_source_columns(judged, sql.col(json_values.ERROR)))


def _source_columns(records: DataFrame, error: Column) -> list[Column]:
    return [
        sql.col("topic").alias(TOPIC),
        sql.col("partition").alias(rows.PARTITION),
        sql.col("offset").alias(rows.OFFSET),
        error.cast("string").alias(rows.ERROR),
        sql.col("key").alias(rows.RAW_KEY),
        sql.col("value").alias(rows.RAW_VALUE),
        sql.unix_millis("timestamp").alias(rows.RAW_TIMESTAMP),
        (headers_text() if HEADERS in records.columns else sql.lit(None).cast("string")).alias(
            rows.RAW_HEADERS
        ),
    ]


def headers_text() -> Column:
    """Return the headers of a record as text, as :func:`.letter.headers_from_json` reads them."""
    pairs = sql.transform(
        sql.col(HEADERS), lambda header: sql.array(header["key"], sql.base64(header["value"]))
    )
    return sql.to_json(pairs)


def parsed_only(parsed: DataFrame) -> DataFrame:
    """Return the user's columns of those rows of the view ``source`` that did parse."""
    names = [name for name in parsed.columns if not name.startswith(INTERNAL)]
    return parsed.where(sql.col(rows.ERROR).isNull()).select(*(named(name) for name in names))


def dead_letters(parsed: DataFrame) -> DataFrame:
    """Return the source columns of those rows of the view ``source`` that did not parse."""
    return parsed.where(sql.col(rows.ERROR).isNotNull()).select(*rows.COORDINATES, *rows.RAW)


def with_source_columns(output: DataFrame, dead: DataFrame | None = None) -> DataFrame:
    """Return the rows of a query that keeps no source columns, with empty ones behind its own.

    :param output: the query's columns.
    :param dead: rows that did not parse, by their source columns; they come with the query's columns empty.
    """
    kinds = {rows.PARTITION: "int", rows.OFFSET: "bigint", rows.ERROR: "string"}
    kinds |= rows.RAW_TYPES
    good = output.withColumns({name: sql.lit(None).cast(kind) for name, kind in kinds.items()})
    if dead is None:
        return good
    own = {field.name: sql.lit(None).cast(field.dataType) for field in output.schema.fields}
    return good.unionByName(dead.withColumns(own))
