"""From columns to Protobuf in Confluent's wire format: judged by expressions, encoded by workers.

Each row is judged first: what a type alone does not promise sets it aside, with the reason, and only rows
that can be written reach the encoder, which would fail a whole batch for one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as sql
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import BinaryType

from airflow_provider_sinks.connectors.schema_registry import protobuf_codec
from airflow_provider_sinks.connectors.schema_registry.protobuf_guards import field_reasons, several_of_one
from airflow_provider_sinks.connectors.schema_registry.reasons import first
from airflow_provider_sinks.core.schemas.protobuf_types import ProtobufSchema
from airflow_provider_sinks.core.schemas.wire import message_places

NamedColumns = Sequence[tuple[str, Column]]


def protobuf_body(columns: NamedColumns, schema: ProtobufSchema) -> Column:
    """Return a message of these columns, behind its place in its file; null where it cannot be written."""

    def to_protobuf(rows: pa.Array) -> pa.Array:
        return protobuf_codec.encode(rows, schema)

    row = sql.struct(*(column.alias(name) for name, column in columns))
    good = sql.when(first(protobuf_reasons(columns, schema)).isNull(), row)
    encoded = arrow_udf(to_protobuf, BinaryType())(good)  # type: ignore[call-overload]  # pyarrow has no types
    return sql.concat(sql.lit(message_places(schema.path)[0]), encoded)


def protobuf_reasons(columns: NamedColumns, schema: ProtobufSchema) -> Iterator[Column]:
    """Give why a row is not taken, of one column after the other."""
    fields = {one.name: one for one in schema.type.fields}
    for name, column in columns:
        yield from field_reasons(column, fields[name], name)
    yield from several_of_one([(fields[name], column) for name, column in columns], "")
