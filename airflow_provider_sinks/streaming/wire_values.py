"""Bytes in Confluent's wire format: which schema a value was written with, or what is wrong with its header.

All of it is Spark expressions. An id that nobody has asked the registry about fails the task
(:data:`UNKNOWN_ID`); the driver asks, and repeats the epoch. It happens once for each schema, where reading
each epoch twice to list its ids would happen always.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as sql
from pyspark.sql.types import DataType

from airflow_provider_sinks.core.schemas.languages import RegisteredSchema
from airflow_provider_sinks.core.schemas.subjects import Part
from airflow_provider_sinks.core.schemas.wire import HEADER_BYTES, LARGEST_ID, MAGIC, header

UNKNOWN_ID = re.compile(r"sinks: a (?P<part>key|value) has schema id (?P<id>\d+)")
"""What a task says that met a schema which the driver has not asked for."""
_LENGTH_MAX = 2**31 - 1


@dataclass(frozen=True)
class WrittenAs:
    """What is known of the schemas that values were written with.

    :param by_id: by schema id the schema, or why values with this id cannot be read.
    :param others: why values with any other id are not read; empty where the driver is to be asked.
    """

    by_id: Mapping[int, RegisteredSchema | str]
    others: str = ""


def behind_header(data: Column) -> Column:
    """Return the bytes behind the header."""
    return sql.substring(data, HEADER_BYTES + 1, _LENGTH_MAX)


def by_schema(
    data: Column, written: WrittenAs, part: Part, read: Callable[[RegisteredSchema], Column], kind: DataType
) -> Column:
    """Return what is read of a value by the schema that it was written with; null where nothing is.

    :param data: binary, with the header.
    :param written: what is known already.
    """
    found = sql.when(data.isNull() | _has_no_header(data) | _has_no_id(data), sql.lit(None))
    for schema_id, writer in written.by_id.items():
        value = sql.lit(None) if isinstance(writer, str) else read(writer)
        found = found.when(_head(data) == sql.lit(header(schema_id)), value)
    if written.others:
        return found.otherwise(sql.lit(None)).cast(kind)
    told = sql.concat(sql.lit(f"sinks: a {part} has schema id "), schema_id_of(data))
    return found.otherwise(sql.raise_error(told).cast(kind)).cast(kind)


def header_error(data: Column, written: WrittenAs, part: Part) -> Column:
    """Return why a value is not read, as far as its header says; null otherwise; ``when`` adds more."""
    size = sql.length(data).cast("string")
    cut = sql.concat(sql.lit(f"The {part} is cut off: it has "), size, sql.lit(_CUT))
    why = (
        sql.when(data.isNull(), sql.lit(None).cast("string"))
        .when(sql.length(data) < HEADER_BYTES, cut)
        .when(sql.substring(data, 1, 1) != sql.lit(MAGIC), sql.lit(f"The {part} has no magic byte{_MAGIC}"))
    )
    said_id = sql.concat(sql.lit(f"The {part} has schema id "), schema_id_of(data))
    why = why.when(_has_no_id(data), sql.concat(said_id, sql.lit(_LARGE)))
    for schema_id, writer in written.by_id.items():
        if isinstance(writer, str):
            why = why.when(_head(data) == sql.lit(header(schema_id)), sql.lit(f"The {part} {writer}."))
    if written.others:
        is_another = ~_head(data).isin(*(sql.lit(header(schema_id)) for schema_id in written.by_id))
        why = why.when(is_another, sql.concat(said_id, sql.lit(f", {written.others}.")))
    return why


_CUT = f" bytes, and the header of Confluent's wire format has {HEADER_BYTES}."
_LARGE = f", which no schema has: the largest is {LARGEST_ID}."
_MAGIC = ": it is not in Confluent's wire format, which begins with 0."


def schema_id_of(data: Column) -> Column:
    """Return the number behind the magic byte, as text."""
    return sql.conv(sql.hex(sql.substring(data, 2, HEADER_BYTES - 1)), 16, 10)


def _has_no_header(data: Column) -> Column:
    return (sql.length(data) < HEADER_BYTES) | (sql.substring(data, 1, 1) != sql.lit(MAGIC))


def _has_no_id(data: Column) -> Column:
    """Return whether the four bytes of an id are more than one can be; null where there are none."""
    return schema_id_of(data).cast("long") > LARGEST_ID


def _head(data: Column) -> Column:
    return sql.substring(data, 1, HEADER_BYTES)
