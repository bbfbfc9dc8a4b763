"""From columns to the bytes of a key or a value whose schema a registry has, in Spark's expressions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from airflow_provider_sinks.connectors.kafka.avro_encoding import avro_body, avro_guards
from airflow_provider_sinks.connectors.kafka.json_encoding import json_body, json_guards
from airflow_provider_sinks.connectors.kafka.written_schemas import WrittenBy
from airflow_provider_sinks.core.schemas.avro_types import AvroSchema
from airflow_provider_sinks.core.schemas.subjects import Part
from airflow_provider_sinks.core.schemas.wire import header

NamedColumns = Sequence[tuple[str, Column]]


def written_bytes(output: DataFrame, columns: NamedColumns, written: WrittenBy) -> Column:
    """Return a record of these columns, with the header in front."""
    schema = written.schema
    if isinstance(schema, AvroSchema):
        body = avro_body(columns, schema)
    else:
        body = json_body(columns, _kinds(output, columns), schema.type)
    return sql.concat(sql.lit(header(written.id)), body)


def written_error(output: DataFrame, columns: NamedColumns, written: WrittenBy, part: Part) -> Column:
    """Return why a row cannot be written, or null."""
    schema = written.schema
    found: Iterable[tuple[Column, str]]
    if isinstance(schema, AvroSchema):
        found = avro_guards(columns, schema)
    else:
        found = json_guards(columns, _kinds(output, columns), schema.type)
    error = sql.lit(None).cast("string")
    for wrong, why in reversed([*found]):
        error = sql.when(wrong, sql.lit(f"The {part} cannot be written: {why}.")).otherwise(error)
    return error


def _kinds(output: DataFrame, columns: NamedColumns) -> StructType:
    return output.select(*(column.alias(name) for name, column in columns)).schema
