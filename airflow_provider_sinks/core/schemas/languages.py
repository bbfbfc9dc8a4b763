"""The languages of schemas that a registry keeps, behind one door: who plans, reads or writes asks here.

Of keys more is demanded than that they can be read: the id of the schema is part of a key's bytes, so that
with any other schema an equal key is another key, to compaction, to partitions and to every upsert behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from airflow_provider_sinks.core.errors import Problem
from airflow_provider_sinks.core.schemas import (
    avro,
    compatibility,
    derived,
    json_compatibility,
    json_derived,
    json_schema,
    json_spark,
    protobuf,
    protobuf_compatibility,
    protobuf_derived,
    protobuf_spark,
    spark_types,
)
from airflow_provider_sinks.core.schemas.avro_types import AvroSchema
from airflow_provider_sinks.core.schemas.json_types import JsonSchema
from airflow_provider_sinks.core.schemas.levels import Level
from airflow_provider_sinks.core.schemas.protobuf_types import ProtobufSchema
from airflow_provider_sinks.core.spec.parts import Format

RegisteredSchema: TypeAlias = AvroSchema | JsonSchema | ProtobufSchema
Referred: TypeAlias = tuple[str, str]
"""A schema that another one refers to: the name by which it does, and the text."""


def format_of(schema: RegisteredSchema) -> Format:
    """Return how values of a schema are written."""
    match schema:
        case AvroSchema():
            return Format.AVRO
        case JsonSchema():
            return Format.JSON_SCHEMA
        case ProtobufSchema():
            return Format.PROTOBUF


def parse(
    format_: Format, text: str, references: Sequence[Referred] = (), message: str = ""
) -> RegisteredSchema:
    """Read a schema.

    :param message: of Protobuf, which message of a file is meant: the first one, unless named.
    :raises UnfitPartsError: it is none, with every problem, each named by its place.
    """
    match format_:
        case Format.JSON_SCHEMA:
            return json_schema.parse(text, references)
        case Format.PROTOBUF:
            return protobuf.parse(text, references, message)
        case _:
            return avro.parse(text, [other for _, other in references])


def spark_columns(schema: RegisteredSchema) -> tuple[tuple[str, str], ...]:
    """Return the columns of what a schema describes, each with its type as DDL.

    :raises UnfitPartsError: it has none, or Spark cannot hold them; with every problem.
    """
    match schema:
        case AvroSchema():
            return spark_types.spark_columns(schema)
        case JsonSchema():
            return json_spark.spark_columns(schema)
        case ProtobufSchema():
            return protobuf_spark.spark_columns(schema)


def demand_holdable(schema: RegisteredSchema) -> None:
    """Raise :class:`UnfitPartsError` with everything that Spark cannot hold."""
    match schema:
        case AvroSchema():
            spark_types.demand_holdable(schema)
        case JsonSchema():
            json_spark.demand_holdable(schema)
        case ProtobufSchema():
            protobuf_spark.demand_holdable(schema)


def ddl(schema: RegisteredSchema) -> str:
    """Return the type of Spark in which it holds what a schema describes."""
    match schema:
        case AvroSchema():
            return spark_types.ddl(schema.type)
        case JsonSchema():
            return json_spark.ddl(schema.type)
        case ProtobufSchema():
            return protobuf_spark.ddl(schema.type)


def derive(
    format_: Format,
    columns: Sequence[derived.Column],
    record: str,
    doc: str,
    *,
    nullable: bool,
    before: RegisteredSchema | None = None,
) -> str:
    """Return the schema of some columns.

    :param before: what their subject has now: in Protobuf a field keeps its number.
    :raises UnfitPartsError: with every column that has no form in this language.
    """
    match format_:
        case Format.JSON_SCHEMA:
            return json_derived.derive(columns, record, doc, nullable=nullable)
        case Format.PROTOBUF:
            past = before if isinstance(before, ProtobufSchema) else None
            return protobuf_derived.derive(columns, record, doc, nullable=nullable, before=past)
        case _:
            return derived.derive(columns, record, doc, nullable=nullable)


def misfits(columns: Sequence[derived.Column], schema: RegisteredSchema) -> tuple[Problem, ...]:
    """Return what keeps columns from being written by a schema, each with the cast to write."""
    match schema:
        case AvroSchema():
            return derived.misfits(columns, schema)
        case JsonSchema():
            return json_derived.misfits(columns, schema)
        case ProtobufSchema():
            return protobuf_derived.misfits(columns, schema)


def unreadable(reader: RegisteredSchema, writer: RegisteredSchema) -> tuple[str, ...]:
    """Return why values written by one schema cannot be read by another; nothing where they can."""
    match reader, writer:
        case AvroSchema(), AvroSchema():
            return compatibility.unreadable(reader, writer)
        case JsonSchema(), JsonSchema():
            return json_compatibility.unreadable(reader, writer)
        case ProtobufSchema(), ProtobufSchema():
            return protobuf_compatibility.unreadable(reader, writer)
        case _:
            return (f"it is {format_of(writer).language}, and not {format_of(reader).language}",)


def same_bytes(one: RegisteredSchema, other: RegisteredSchema) -> bool:
    """Whether both write every value alike."""
    match one, other:
        case AvroSchema(), AvroSchema():
            return compatibility.same_bytes(one, other)
        case JsonSchema(), JsonSchema():
            return json_compatibility.same_bytes(one, other)
        case ProtobufSchema(), ProtobufSchema():
            return protobuf_compatibility.same_bytes(one, other)
        case _:
            return False


def why_not_next(new: RegisteredSchema, old: RegisteredSchema, level: Level) -> tuple[str, ...]:
    """Return why a schema may not follow another one at this level; nothing where it may."""
    found: list[str] = []
    if level.is_backward:
        found += [f"{why} (for readers of the new schema)" for why in unreadable(new, old)]
    if level.is_forward:
        found += [f"{why} (for readers of the old schema)" for why in unreadable(old, new)]
    return tuple(found)


def key_changes(new: RegisteredSchema, old: RegisteredSchema) -> tuple[str, ...]:
    """Return what is different about a key; nothing where each key is written as before."""
    if same_bytes(new, old):
        return ()
    before, after = dict(_leaves(old)), dict(_leaves(new))
    added = [f"field {path} is new" for path in after if path not in before]
    gone = [f"field {path} is gone" for path in before if path not in after]
    both = [path for path in after if path in before]
    changed = [f"field {p} was {before[p]} and is {after[p]}" for p in both if before[p] != after[p]]
    return tuple(added + gone + changed) or ("the order of the fields is another one",)


def _leaves(schema: RegisteredSchema) -> tuple[tuple[str, str], ...]:
    match schema:
        case AvroSchema():
            return compatibility.leaves(schema)
        case JsonSchema():
            return json_compatibility.leaves(schema)
        case ProtobufSchema():
            return protobuf_compatibility.leaves(schema)
