"""From Kafka records to the view that a query reads, and what goes with its rows; all in the JVM."""

from __future__ import annotations

from typing import assert_never, cast

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from airflow_provider_sinks.connectors import rows
from airflow_provider_sinks.connectors.encoding import named
from airflow_provider_sinks.connectors.laid_columns import LaidColumns
from airflow_provider_sinks.core.query.analysis import INTERNAL, SOURCE
from airflow_provider_sinks.core.schemas import languages
from airflow_provider_sinks.core.schemas.avro_types import AvroSchema
from airflow_provider_sinks.core.schemas.json_types import JsonSchema
from airflow_provider_sinks.core.schemas.protobuf_types import ProtobufSchema
from airflow_provider_sinks.core.schemas.subjects import Part
from airflow_provider_sinks.core.spec.parts import Format
from airflow_provider_sinks.core.spec.source import KafkaSource, SourceKey
from airflow_provider_sinks.streaming import (
    avro_values,
    changes,
    json_fields,
    json_values,
    protobuf_values,
    registered_json,
)
from airflow_provider_sinks.streaming.text_values import NOT_UTF8
from airflow_provider_sinks.streaming.written_schemas import WrittenSchemas

TOPIC = "__sinks_topic"
HEADERS = "headers"
"""How Spark's Kafka source calls the headers of a record, where it is asked for them."""
SOURCE_VIEW = SOURCE


def parse(records: DataFrame, source: KafkaSource, written: WrittenSchemas | None = None) -> DataFrame:
    """Return the view ``source``: the record's columns, then the source columns.

    Headers of records are kept where they were read (:mod:`.source`).

    - ``json``: the columns of the schema, or nulls and an error for a value that does not parse; a record
      without a value (a tombstone) has nulls and no error.
    - ``text``: one column, ``value``, or null and an error where it is not UTF-8.
    - ``bytes``: one column, ``value``.

    - ``avro``, ``json_schema``, ``protobuf``: the fields of the schema, as for ``json``.

    With ``key_as`` one more column has the key; a key that does not parse sets the record aside too.
    Records that are changes of rows become those rows, and :data:`.rows.DELETED` says which are gone
    (:mod:`.changes`).

    :param records: what Spark's Kafka source yields.
    :param written: by what values and keys were written; ``None`` where there are no records, and only types
        count.
    """
    if (fixed := fixed_columns(source, with_headers=HEADERS in records.columns)) is not None:
        return fixed.over(records)
    if source.has_deletes:
        return _parse_changes(records, source, written)
    judged, columns = _value(records, source, written)
    if source.key_as is None:
        return judged.select(*columns, *_columns_of(judged))
    judged, key = _key(judged, source.key_as, written)
    readable = sql.col(json_values.ERROR).isNull()
    columns = [sql.when(readable, column).alias(name) for name, column in columns_by_name(judged, columns)]
    return judged.select(*columns, key, *_columns_of(judged))


def fixed_columns(source: KafkaSource, *, with_headers: bool) -> LaidColumns | None:
    """Return the view ``source`` where nothing but the spec decides about it; ``None`` else.

    :param with_headers: records come with their headers.
    """
    plain = not source.has_deletes and source.key_as is None
    found = _fixed_value(source) if plain else None
    if found is None:
        return None
    return LaidColumns(found.added, (*found.taken, *_source_columns(with_headers=with_headers)))


def _parse_changes(records: DataFrame, source: KafkaSource, written: WrittenSchemas | None) -> DataFrame:
    def decode(found: DataFrame, part: Part) -> tuple[DataFrame, Column]:
        key = source.key_as
        format_, schema = (
            (source.format, source.schema_)
            if part is Part.VALUE or key is None
            else (
                key.format,
                key.schema_,
            )
        )
        return _decode(found, part, format_, schema, written), sql.col(_decoded(part))

    judged, columns, is_gone = changes.read(records, source, decode)
    return judged.select(*columns, *_columns_of(judged), is_gone.alias(rows.DELETED))


def columns_by_name(judged: DataFrame, columns: list[Column]) -> list[tuple[str, Column]]:
    """Return columns with the names that they have been given."""
    return list(zip(judged.select(*columns).columns, columns, strict=True))


def _value(
    records: DataFrame, source: KafkaSource, written: WrittenSchemas | None
) -> tuple[DataFrame, list[Column]]:
    """Return the records with :data:`.json_values.ERROR`, and the columns of their values."""
    if (fixed := _fixed_value(source)) is not None:
        return fixed.added_to(records), list(fixed.taken)
    match source.format:
        case Format.AVRO | Format.JSON_SCHEMA | Format.PROTOBUF:
            judged = _decode(records, Part.VALUE, source.format, source.schema_, written)
            value, readable = sql.col(_decoded(Part.VALUE)), sql.col(json_values.ERROR).isNull()
            names = [field.name for field in cast("StructType", judged.schema[_decoded(Part.VALUE)].dataType)]
            return judged, [sql.when(readable, value.getField(name)).alias(name) for name in names]
        case Format.JSON | Format.TEXT | Format.BYTES:
            raise AssertionError(f"{source.format} is read by what the spec says")
        case other:
            assert_never(other)


def _fixed_value(source: KafkaSource) -> LaidColumns | None:
    """Return what adds :data:`.json_values.ERROR`, and the columns of values; ``None`` by a registry."""
    match source.format:
        case Format.JSON:
            declared = cast("StructType", StructType.fromDDL(str(source.ddl)))
            return json_values.json_columns(json_fields.required(declared, source.required or ()))
        case Format.TEXT:
            return _text_columns()
        case Format.BYTES:
            none = sql.lit(None).cast("string")
            return LaidColumns(((json_values.ERROR, none),), (sql.col("value"),))
        case Format.AVRO | Format.JSON_SCHEMA | Format.PROTOBUF:
            return None
        case other:
            assert_never(other)


def _key(judged: DataFrame, key: SourceKey, written: WrittenSchemas | None) -> tuple[DataFrame, Column]:
    """Return the records with what is wrong with their keys too, and the column of the key."""
    before = judged.withColumnRenamed(json_values.ERROR, _VALUE_ERROR)
    match key.format:
        case Format.AVRO | Format.JSON_SCHEMA | Format.PROTOBUF:
            after = _decode(before, Part.KEY, key.format, key.schema_, written)
            found = sql.col(_decoded(Part.KEY))
        case Format.TEXT:
            found = sql.col("key").cast("string")
            wrong = sql.when(json_values.not_utf8(found), sql.lit("The key is not UTF-8."))
            after = before.withColumn(json_values.ERROR, wrong)
        case _:
            found = sql.col("key")
            after = before.withColumn(json_values.ERROR, sql.lit(None).cast("string"))
    error = sql.coalesce(sql.col(_VALUE_ERROR), sql.col(json_values.ERROR))
    whole = after.withColumn(json_values.ERROR, error)
    return whole, sql.when(sql.col(json_values.ERROR).isNull(), found).alias(key.column)


def _decode(
    records: DataFrame, part: Part, format_: Format, text: object, written: WrittenSchemas | None
) -> DataFrame:
    """Add what is read of a part of each record, and what is wrong with it."""
    reader = written.reader(part) if written is not None else None
    if written is None or reader is None:
        kind = languages.ddl(languages.parse(format_, str(text)))
        empty = records.withColumn(_decoded(part), sql.lit(None).cast(kind))
        return empty.withColumn(json_values.ERROR, sql.lit(None).cast("string"))
    data, known, whole = sql.col(part.value), written.known(part), f"{_decoded(part)}_whole"
    match reader:
        case JsonSchema():
            judged, column = registered_json.decode(records, part, reader, known)
        case AvroSchema():
            found = records.withColumn(whole, avro_values.decoded(data, reader, known, part))
            error = avro_values.error(data, sql.col(whole), reader, known, part)
            judged, column = found.withColumn(json_values.ERROR, error), avro_values.body(sql.col(whole))
        case ProtobufSchema():
            found = records.withColumn(whole, protobuf_values.decoded(data, reader, known, part))
            error = protobuf_values.error(data, sql.col(whole), reader, known, part)
            judged, column = found.withColumn(json_values.ERROR, error), protobuf_values.body(sql.col(whole))
    return judged.withColumn(_decoded(part), column)


def _decoded(part: Part) -> str:
    return f"{INTERNAL}decoded_{part.value}"


_VALUE_ERROR = f"{INTERNAL}value_error"


def _text_columns() -> LaidColumns:
    text = sql.col("value").cast("string")
    error = sql.when(json_values.not_utf8(text), sql.lit(NOT_UTF8))
    value = sql.when(sql.col(json_values.ERROR).isNull(), text).alias("value")
    return LaidColumns(((json_values.ERROR, error),), (value,))


def _columns_of(records: DataFrame) -> list[Column]:
    return _source_columns(with_headers=HEADERS in records.columns)


def _source_columns(*, with_headers: bool) -> list[Column]:
    return [
        sql.col("topic").alias(TOPIC),
        sql.col("partition").alias(rows.PARTITION),
        sql.col("offset").alias(rows.OFFSET),
        sql.col(json_values.ERROR).cast("string").alias(rows.ERROR),
        sql.col("key").alias(rows.RAW_KEY),
        sql.col("value").alias(rows.RAW_VALUE),
        sql.unix_millis("timestamp").alias(rows.RAW_TIMESTAMP),
        (headers_text() if with_headers else sql.lit(None).cast("string")).alias(rows.RAW_HEADERS),
    ]


def headers_text() -> Column:
    """Return the headers of a record as text, as :func:`.headers.headers_from_json` reads them."""
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
