"""The rules over a sink whose source records are changes of rows: ``source.kafka.envelope``.

What its target holds is to be what the query gives over the rows as they are now. That asks for a target that
takes rows away, for one row of the output for each row of the source, and for one key on both sides: else a
delete would take away what another row gave.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from airflow_provider_sinks.core.errors import Problem, nearest
from airflow_provider_sinks.core.query.analysis import QueryShape
from airflow_provider_sinks.core.query.clauses import is_star
from airflow_provider_sinks.core.query.output_columns import carried_columns
from airflow_provider_sinks.core.spec.parts import Format
from airflow_provider_sinks.core.spec.source import KafkaSource

if TYPE_CHECKING:
    from airflow_provider_sinks.core.spec.sink import SinkSpec

_KEY = "source.kafka.key_as"
_WAY_ON = (
    "write the rows as they are, and read them by a view; or envelope: append, with the fields of an event"
)


def problems_of_changes(spec: SinkSpec) -> Iterator[Problem]:
    """Give all of them, for a sink whose schemas were not known when it was read."""
    yield from envelope_problems(spec)
    yield from change_problems(spec)
    yield from target_problems(spec)


def envelope_problems(spec: SinkSpec) -> Iterator[Problem]:
    """Give what is wrong with how changes are read."""
    kafka = spec.source.kafka
    if not kafka.has_deletes:
        if kafka.key_as is not None and kafka.key_as.columns:
            hint = "column names the one column that has the key; or envelope: upsert, or debezium"
            yield Problem(f"{_KEY}.columns", "does not go with envelope append", hint)
        return
    if kafka.format in (Format.TEXT, Format.BYTES):
        hint = "json, avro, json_schema or protobuf"
        yield Problem("source.kafka.format", f"{kafka.format} has no columns to change", hint)
        return
    if kafka.has_no_rows:
        what = "is none of Debezium's events, with op and after, nor of rows with __deleted"
        yield Problem("source.kafka.schema", what, "envelope: upsert, for rows by their keys")
    if not kafka.key_columns:
        what = f"is missing: envelope {kafka.envelope} needs the columns of the key"
        yield Problem(f"{_KEY}.columns" if kafka.key_as else _KEY, what, "key_as: {columns: [id]}")
        return
    yield from _key_format(kafka)
    for index, name in enumerate(kafka.key_columns):
        if spec.source_columns is not None and name not in spec.source_columns:
            hint = nearest(name, spec.source_columns) or f"columns: {', '.join(spec.source_columns)}"
            yield Problem(f"{_KEY}.columns[{index}]", f"{name!r} is no column of the schema", hint)


def _key_format(kafka: KafkaSource) -> Iterator[Problem]:
    assert kafka.key_as is not None  # noqa: S101  it has columns
    key, where = kafka.key_as, f"{_KEY}.format"
    if key.column != "key":
        yield Problem(f"{_KEY}.column", "does not go with columns", "leave it out")
    if key.format is Format.BYTES:
        yield Problem(where, "bytes has no columns", "json, text, avro, json_schema or protobuf")
    elif key.format is Format.TEXT and len(kafka.key_columns) > 1:
        yield Problem(where, "text is one column", "json, avro, json_schema or protobuf")
    elif (key.format is Format.JSON) is (kafka.format is not Format.JSON) and key.format is not Format.TEXT:
        hint = "text, or one of json, avro, json_schema and protobuf for both"
        yield Problem(where, f"{key.format} does not go with values of format {kafka.format}", hint)


def change_problems(spec: SinkSpec) -> Iterator[Problem]:
    """Give what keeps the query from being one over rows that change."""
    kafka, shape = spec.source.kafka, spec.readable_shape
    if not kafka.has_deletes or shape is None or shape.problems:
        return
    if why := _why_not(shape):
        option = "query" if spec.query is not None else "select"
        yield Problem(option, f"{why}: envelope {kafka.envelope} takes a projection and a filter", _WAY_ON)
    elif shape.clauses is not None and any(map(is_star, shape.clauses.where[1:], shape.clauses.where)):
        option = "query" if spec.query is not None else "where"
        yield Problem(option, "has a star in its condition", "name the columns")


def _why_not(shape: QueryShape) -> str:
    if shape.obstacles:
        return f"has {shape.obstacles[0].clause}"
    if shape.lookups:
        return "joins a lookup, whose rows come and go without a change of the source"
    if shape.generates or (shape.clauses is not None and shape.clauses.laterals):
        return "makes many rows of one"
    return ""


def target_problems(spec: SinkSpec) -> Iterator[Problem]:
    """Give what keeps the target from taking away just those rows that are gone."""
    kafka, shape, key = spec.source.kafka, spec.readable_shape, spec.deletes_by
    if not kafka.has_deletes:
        return
    if key is None:
        what = f"{kafka.envelope} has deletes, and a target of kind {spec.target_kind} takes none"
        hint = "postgres, iceberg or delta, with mode: upsert; or envelope: append"
        yield Problem("source.kafka.envelope", what, hint)
        return
    if not key or not kafka.key_columns or shape is None or shape.problems or _why_not(shape):
        return
    if not set(kafka.key_columns) <= set(spec.source_columns or kafka.key_columns):
        return
    made_of = carried_columns(shape, spec.source_columns)
    found = None if made_of is None else [made_of.get(name) for name in key]
    if found is None or sorted(map(str, found)) == sorted(kafka.key_columns):
        return
    where = f"target.{spec.target_kind}.key"
    for index, (name, one) in enumerate(zip(key, found, strict=True)):
        if one not in kafka.key_columns:
            what = f"{name!r} is no column of the source's key as it is, and a delete has nothing else"
            yield Problem(f"{where}[{index}]", what, f"select {', '.join(kafka.key_columns)}, by any name")
            return
    what = "is not the whole key of the source: a delete would take rows of other keys away"
    yield Problem(where, what, f"select {', '.join(kafka.key_columns)}, each once, as the key")
