"""From columns to Avro in Confluent's wire format, in Spark's expressions: it runs in the JVM.

Spark fails a whole task for one value that its schema does not take. So each row is judged first: what a type
alone does not promise (null, a symbol, a length, digits of a timestamp) sets the row aside, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as sql

from airflow_provider_sinks.connectors.schema_registry.reasons import Guard, of_fields, of_items, told
from airflow_provider_sinks.core.schemas.avro_types import (
    Array,
    AvroSchema,
    AvroType,
    Enum,
    Fixed,
    Map,
    Primitive,
    Record,
    Union,
)

_UUID = r"^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$"
_IN_MILLISECONDS = ("timestamp-millis", "local-timestamp-millis")


def avro_body(columns: Sequence[tuple[str, Column]], schema: AvroSchema) -> Column:
    """Return a record of these columns."""
    from pyspark.sql.avro.functions import to_avro

    return to_avro(sql.struct(*(column.alias(name) for name, column in columns)), schema.text)


def avro_reasons(columns: Sequence[tuple[str, Column]], schema: AvroSchema) -> Iterator[Column]:
    """Give why a row is not taken, of one column after the other."""
    assert isinstance(schema.type, Record)  # noqa: S101  columns were compared with it
    fields = {field.name: field.type for field in schema.type.fields}
    for name, column in columns:
        yield from _reasons(column, fields[name], name)


def _reasons(value: Column, kind: AvroType, path: str) -> Iterator[Column]:
    """Give why a value and its parts are not taken, in their order."""
    if not (isinstance(kind, Union) and kind.is_nullable):
        yield from told([(value.isNull(), f"field {path} is null, and its schema says that it never is")])
    yield from _known_reasons(value, kind, path)


def _known_reasons(value: Column, kind: AvroType, path: str) -> Iterator[Column]:
    match kind:
        case Union():
            yield from (reason for one in kind.others for reason in _known_reasons(value, one, path))
        case Record():
            fields = (
                reason
                for field in kind.fields
                for reason in _reasons(value.getField(field.name), field.type, f"{path}.{field.name}")
            )
            yield from of_fields(value, fields)
        case Array():
            yield from of_items(value, lambda item: _reasons(item, kind.items, f"{path}[]"))
        case Map():
            values = sql.map_values(value)
            yield from of_items(values, lambda item: _reasons(item, kind.values, f"{path}[]"))
        case _:
            yield from told(_leaf_guards(value, kind, path))


def _leaf_guards(value: Column, kind: AvroType, path: str) -> Iterator[Guard]:
    match kind:
        case Enum():
            yield ~value.isin(*kind.symbols), f"field {path} is none of {', '.join(kind.symbols)}"
        case Fixed() if not kind.logical.name:
            yield sql.length(value) != kind.size, f"field {path} has not {kind.size} bytes"
        case Primitive() if kind.logical.name in _IN_MILLISECONDS:
            whole = sql.date_trunc("MILLISECOND", value)
            yield whole != value, f"field {path} has microseconds, and its schema milliseconds"
        case Primitive() if kind.logical.name == "uuid":
            yield ~sql.rlike(value, sql.lit(_UUID)), f"field {path} is no uuid"
        case _:
            return
