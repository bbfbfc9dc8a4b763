"""From bytes in Confluent's wire format to the fields of a schema: whole, or an error that says why.

All of it is Spark expressions; ``from_avro`` reads each value by the schema that it was written with. It says
nothing of a value that is broken, and gives a struct of nulls, which looks like a record. Nor does it look
behind what it read. So value and schema are both made longer: the value by eight bytes that nobody can guess,
the schema by a field for them. Whatever is cut off, or stands behind the value, these bytes are not what is
read there then.

An id that nobody has asked the registry about fails the task (:data:`UNKNOWN_ID`); the driver asks, and
repeats the epoch. It happens once for each schema, where reading each epoch twice to list its ids would
happen always.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from pyspark.sql import Column
from pyspark.sql import functions as sql
from pyspark.sql.types import DataType, StructType

from airflow_provider_sinks.core.schemas.avro_types import AvroSchema
from airflow_provider_sinks.core.schemas.spark_types import ddl
from airflow_provider_sinks.core.schemas.subjects import Part
from airflow_provider_sinks.core.schemas.wire import HEADER_BYTES, LARGEST_ID, MAGIC, header
from airflow_provider_sinks.streaming import json_fields

UNKNOWN_ID = re.compile(r"sinks: a (?P<part>key|value) has schema id (?P<id>\d+)")
"""What a task says that met a schema which the driver has not asked for."""
_END = secrets.token_bytes(8)
_LENGTH_MAX = 2**31 - 1
_BODY, _REST = "body", "end"


@dataclass(frozen=True)
class WrittenAs:
    """What is known of the schemas that values were written with.

    :param by_id: by schema id the schema, or why values with this id cannot be read.
    :param others: why values with any other id are not read; empty where the driver is to be asked.
    """

    by_id: Mapping[int, AvroSchema | str]
    others: str = ""


def spark_type(reader: AvroSchema) -> DataType:
    """Return the type in which Spark holds what is read by a schema."""
    return cast("StructType", StructType.fromDDL(f"`{_BODY}` {ddl(reader.type)}"))[_BODY].dataType


def decoded(data: Column, reader: AvroSchema, written: WrittenAs, part: Part) -> Column:
    """Return what is read: a struct of the value and of what stood behind it; null where nothing is.

    :param data: binary, with the header.
    :param written: what is known already.
    """
    whole = sql.concat(sql.substring(data, HEADER_BYTES + 1, _LENGTH_MAX), sql.lit(_END))
    found = sql.when(data.isNull() | _has_no_header(data) | _has_no_id(data), sql.lit(None))
    for schema_id, writer in written.by_id.items():
        value = sql.lit(None) if isinstance(writer, str) else _from_avro(whole, writer, reader)
        found = found.when(_head(data) == sql.lit(header(schema_id)), value)
    kind = StructType.fromDDL(f"`{_BODY}` {ddl(reader.type)}, `{_REST}` binary")
    if written.others:
        return found.otherwise(sql.lit(None)).cast(kind)
    told = sql.concat(sql.lit(f"sinks: a {part} has schema id "), _id(data))
    return found.otherwise(sql.raise_error(told).cast(kind)).cast(kind)


def body(found: Column) -> Column:
    """Return the value of what :func:`decoded` gave."""
    return found.getField(_BODY)


def error(data: Column, found: Column, reader: AvroSchema, written: WrittenAs, part: Part) -> Column:
    """Return why nothing could be read, or null; also null for a record without this part."""
    size = sql.length(data).cast("string")
    rest = found.getField(_REST)
    cut = sql.concat(sql.lit(f"The {part} is cut off: it has "), size, sql.lit(_CUT))
    why = (
        sql.when(data.isNull(), sql.lit(None).cast("string"))
        .when(sql.length(data) < HEADER_BYTES, cut)
        .when(sql.substring(data, 1, 1) != sql.lit(MAGIC), sql.lit(f"The {part} has no magic byte{_MAGIC}"))
    )
    said_id = sql.concat(sql.lit(f"The {part} has schema id "), _id(data))
    why = why.when(_has_no_id(data), sql.concat(said_id, sql.lit(_LARGE)))
    for schema_id, writer in written.by_id.items():
        if isinstance(writer, str):
            why = why.when(_head(data) == sql.lit(header(schema_id)), sql.lit(f"The {part} {writer}."))
    if written.others:
        is_another = ~_head(data).isin(*(sql.lit(header(schema_id)) for schema_id in written.by_id))
        why = why.when(is_another, sql.concat(said_id, sql.lit(f", {written.others}.")))
    by = sql.concat(sql.lit(" by schema id "), _id(data), sql.lit("."))
    why = why.when(rest.isNull(), sql.concat(sql.lit(f"The {part} does not decode"), by))
    why = why.when(rest != sql.lit(_END), sql.concat(sql.lit(f"The {part} does not end where it should"), by))
    for wrong, loss in json_fields.losses(body(found), json_fields.moments(spark_type(reader))):
        why = why.when(wrong, sql.lit(f"The {part} does not fit: {loss}."))
    return why


_CUT = f" bytes, and the header of Confluent's wire format has {HEADER_BYTES}."
_LARGE = f", which no schema has: the largest is {LARGEST_ID}."
_MAGIC = ": it is not in Confluent's wire format, which begins with 0."


def _from_avro(whole: Column, writer: AvroSchema, reader: AvroSchema) -> Column:
    from pyspark.sql.avro.functions import from_avro

    options = {"mode": "PERMISSIVE", "avroSchema": _longer(reader)}
    return from_avro(whole, _longer(writer), options)


def _longer(schema: AvroSchema) -> str:
    end = {"type": "fixed", "name": "sinks.End", "size": len(_END)}
    fields = [{"name": _BODY, "type": json.loads(schema.text)}, {"name": _REST, "type": end}]
    return json.dumps({"type": "record", "name": "sinks.Whole", "fields": fields})


def _has_no_header(data: Column) -> Column:
    return (sql.length(data) < HEADER_BYTES) | (sql.substring(data, 1, 1) != sql.lit(MAGIC))


def _has_no_id(data: Column) -> Column:
    """Return whether the four bytes of an id are more than one can be; null where there are none."""
    return _id(data).cast("long") > LARGEST_ID


def _head(data: Column) -> Column:
    return sql.substring(data, 1, HEADER_BYTES)


def _id(data: Column) -> Column:
    return sql.conv(sql.hex(sql.substring(data, 2, HEADER_BYTES - 1)), 16, 10)
