"""From columns to the bytes of a key or a value whose schema a registry has, in Spark's expressions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from airflow_provider_sinks.connectors.kafka.avro_encoding import avro_body, avro_reasons
from airflow_provider_sinks.connectors.kafka.json_encoding import json_body, json_reasons
from airflow_provider_sinks.connectors.kafka.protobuf_encoding import protobuf_body, protobuf_reasons
from airflow_provider_sinks.connectors.kafka.written_schemas import WrittenBy
from airflow_provider_sinks.connectors.schema_registry.reasons import first
from airflow_provider_sinks.core.schemas.avro_types import AvroSchema
from airflow_provider_sinks.core.schemas.json_types import JsonSchema
from airflow_provider_sinks.core.schemas.protobuf_types import ProtobufSchema
from airflow_provider_sinks.core.schemas.subjects import Part
from airflow_provider_sinks.core.schemas.wire import header

NamedColumns = Sequence[tuple[str, Column]]


def written_bytes(output: DataFrame, columns: NamedColumns, written: WrittenBy) -> Column:
    """Return a record of these columns, with the header in front."""
    match written.schema:
        case AvroSchema() as schema:
            body = avro_body(columns, schema)
        case JsonSchema() as schema:
            body = json_body(columns, _kinds(output, columns), schema.type)
        case ProtobufSchema() as schema:
            body = protobuf_body(columns, schema)
    return sql.concat(sql.lit(header(written.id)), body)


def written_error(output: DataFrame, columns: NamedColumns, written: WrittenBy, part: Part) -> Column:
    """Return why a row cannot be written, or null."""
    found: Iterable[Column]
    match written.schema:
        case AvroSchema() as schema:
            found = avro_reasons(columns, schema)
        case JsonSchema() as schema:
            found = json_reasons(columns, _kinds(output, columns), schema.type)
        case ProtobufSchema() as schema:
            found = protobuf_reasons(columns, schema)
    return first_error(found, part)


def first_error(reasons: Iterable[Column], part: Part) -> Column:
    """Return what is said of the first reason why a row cannot be written, or null."""
    return sql.concat(sql.lit(f"The {part} cannot be written: "), first(reasons), sql.lit("."))


def _kinds(output: DataFrame, columns: NamedColumns) -> StructType:
    return output.select(*(column.alias(name) for name, column in columns)).schema
