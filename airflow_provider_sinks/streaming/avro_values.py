"""From bytes in Confluent's wire format to the fields of an Avro schema: whole, or an error that says why.

All of it is Spark expressions; ``from_avro`` reads each value by the schema that it was written with. It says
nothing of a value that is broken, and gives a struct of nulls, which looks like a record. Nor does it look
behind what it read. So value and schema are both made longer: the value by eight bytes that nobody can guess,
the schema by a field for them. Whatever is cut off, or stands behind the value, these bytes are not what is
read there then.
"""

from __future__ import annotations

import json
import secrets
from typing import cast

from pyspark.sql import Column
from pyspark.sql import functions as sql
from pyspark.sql.types import DataType, StructType

from airflow_provider_sinks.core.schemas.avro_types import AvroSchema
from airflow_provider_sinks.core.schemas.spark_types import ddl
from airflow_provider_sinks.core.schemas.subjects import Part
from airflow_provider_sinks.streaming import json_fields
from airflow_provider_sinks.streaming.wire_values import (
    WrittenAs,
    behind_header,
    by_schema,
    header_error,
    schema_id_of,
)

_END = secrets.token_bytes(8)
_BODY, _REST = "body", "end"


def decoded(data: Column, reader: AvroSchema, written: WrittenAs, part: Part) -> Column:
    """Return what is read: a struct of the value and of what stood behind it; null where nothing is.

    :param data: binary, with the header.
    :param written: what is known already.
    """
    whole = sql.concat(behind_header(data), sql.lit(_END))
    kind = StructType.fromDDL(f"`{_BODY}` {ddl(reader.type)}, `{_REST}` binary")
    return by_schema(data, written, part, lambda writer: _from_avro(whole, writer.text, reader), kind)


def body(found: Column) -> Column:
    """Return the value of what :func:`decoded` gave."""
    return found.getField(_BODY)


def error(data: Column, found: Column, reader: AvroSchema, written: WrittenAs, part: Part) -> Column:
    """Return why nothing could be read, or null; also null for a record without this part."""
    rest, why = found.getField(_REST), header_error(data, written, part)
    by = sql.concat(sql.lit(" by schema id "), schema_id_of(data), sql.lit("."))
    why = why.when(rest.isNull(), sql.concat(sql.lit(f"The {part} does not decode"), by))
    why = why.when(rest != sql.lit(_END), sql.concat(sql.lit(f"The {part} does not end where it should"), by))
    for wrong, loss in json_fields.losses(body(found), json_fields.moments(_spark_type(reader))):
        why = why.when(wrong, sql.lit(f"The {part} does not fit: {loss}."))
    return why


def _spark_type(reader: AvroSchema) -> DataType:
    return cast("StructType", StructType.fromDDL(f"`{_BODY}` {ddl(reader.type)}"))[_BODY].dataType


def _from_avro(whole: Column, writer: str, reader: AvroSchema) -> Column:
    from pyspark.sql.avro.functions import from_avro

    options = {"mode": "PERMISSIVE", "avroSchema": _longer(reader.text)}
    return from_avro(whole, _longer(writer), options)


def _longer(text: str) -> str:
    end = {"type": "fixed", "name": "sinks.End", "size": len(_END)}
    fields = [{"name": _BODY, "type": json.loads(text)}, {"name": _REST, "type": end}]
    return json.dumps({"type": "record", "name": "sinks.Whole", "fields": fields})
