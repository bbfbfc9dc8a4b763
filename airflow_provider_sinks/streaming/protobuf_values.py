"""From bytes in Confluent's wire format to the fields of a Protobuf message, or an error that says why.

Spark has no reader of Protobuf in its own distribution, so values go to its Python workers by Arrow and come
back as a struct (:mod:`.protobuf_codec`). Each value is decoded by the schema that it was written with, and
taken as the reader has it: so a field without presence that was left out is the zero that it stood for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as sql
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import BinaryType, DataType, StructType

from airflow_provider_sinks.connectors.schema_registry import protobuf_codec
from airflow_provider_sinks.connectors.schema_registry.protobuf_guards import reasons
from airflow_provider_sinks.connectors.schema_registry.reasons import first
from airflow_provider_sinks.core.schemas.protobuf_spark import ddl
from airflow_provider_sinks.core.schemas.protobuf_types import ProtobufSchema
from airflow_provider_sinks.core.schemas.subjects import Part
from airflow_provider_sinks.core.schemas.wire import HEADER_BYTES, header, message_places
from airflow_provider_sinks.streaming import json_fields
from airflow_provider_sinks.streaming.wire_values import WrittenAs, by_schema, header_error, schema_id_of

_BODY, _ERROR = "body", "error"


def decoded(data: Column, reader: ProtobufSchema, written: WrittenAs, part: Part) -> Column:
    """Return what is read: a struct of the value and of why nothing could be; null where nothing is to be.

    :param data: binary, with the header.
    :param written: what is known already.
    """
    writers = {schema_id: one for schema_id, one in written.by_id.items() if isinstance(one, ProtobufSchema)}
    known = by_schema(data, written, part, lambda _: data, BinaryType())
    if not writers:
        return sql.when(known.isNotNull(), sql.lit(None)).cast(_kind(reader))
    decoding = _Decoding(writers, reader)

    def from_protobuf(values: pa.Array) -> pa.Array:
        return decoding.structs(values)

    found: Column = arrow_udf(from_protobuf, _kind(reader))(known)  # type: ignore[call-overload]  # pyarrow has no types
    return found


def body(found: Column) -> Column:
    """Return the value of what :func:`decoded` gave."""
    return found.getField(_BODY)


def error(data: Column, found: Column, reader: ProtobufSchema, written: WrittenAs, part: Part) -> Column:
    """Return why nothing could be read, or null; also null for a record without this part."""
    why, said = header_error(data, written, part), found.getField(_ERROR)
    by = sql.concat(sql.lit(" by schema id "), schema_id_of(data), sql.lit(": "), said, sql.lit("."))
    why = why.when(said.isNotNull(), sql.concat(sql.lit(f"The {part} does not decode"), by))
    value, kind = body(found), _kind(reader)[_BODY].dataType
    for wrong, loss in json_fields.losses(value, json_fields.moments(kind)):
        why = why.when(wrong, sql.lit(f"The {part} does not fit: {loss}."))
    misfit = first(reasons(value, reader.type, "", is_written=False))
    told = sql.concat(sql.lit(f"The {part} does not fit: "), misfit, sql.lit("."))
    return why.when(misfit.isNotNull(), told)


def _kind(reader: ProtobufSchema) -> StructType:
    made: DataType = StructType.fromDDL(f"`{_BODY}` {ddl(reader.type)}, `{_ERROR}` string")
    return cast("StructType", made)


class _Decoding:
    """Decodes a batch of values, in Spark's Python workers.

    :param writers: by schema id, what values may have been written with.
    """

    def __init__(self, writers: Mapping[int, ProtobufSchema], reader: ProtobufSchema) -> None:
        self._writers = writers
        self._reader = reader

    def structs(self, data: pa.Array) -> pa.Array:
        """Return a struct of body and error for each value."""
        left = pc.is_valid(data)
        parts, rows = [], []
        for schema_id, writer in self._writers.items():
            for place in message_places(writer.path):
                start = header(schema_id) + place
                mine = pc.and_(left, pc.equal(pc.binary_slice(data, 0, len(start)), start))
                mine = pc.fill_null(mine, fill_value=False)
                if mine.true_count:
                    left = pc.and_not(left, mine)
                    found = pc.binary_replace_slice(data.filter(mine), 0, len(start), b"")
                    parts.append(self._struct(*protobuf_codec.decode(found, writer, self._reader)))
                    rows.append(pc.indices_nonzero(mine))
        parts.append(self._others(data, left))
        rows.append(pc.indices_nonzero(left))
        none = pc.indices_nonzero(pc.is_null(data))
        parts.append(pa.nulls(len(none), parts[-1].type))
        rows.append(none)
        order = pc.sort_indices(pa.chunked_array(rows))
        return pa.concat_arrays(parts).take(order)

    def _struct(self, bodies: pa.Array, errors: pa.Array) -> pa.Array:
        """Return both together, without a body where there is an error."""
        places = pa.array(range(len(bodies)), pa.int64())
        kept = pc.if_else(pc.is_null(errors), places, pa.scalar(None, pa.int64()))
        return pa.StructArray.from_arrays([bodies.take(kept), errors], names=[_BODY, _ERROR])

    def _others(self, data: pa.Array, left: pa.Array) -> pa.Array:
        """Return an error for each value that is another message of its file, or names none."""
        errors = pa.array([self._said(one) for one in data.filter(left).to_pylist()], pa.string())
        kind = protobuf_codec.arrow_type(self._reader.type)
        return self._struct(pa.nulls(len(errors), kind), errors)

    def _said(self, value: bytes) -> str:
        writer = self._writers[int.from_bytes(value[1:HEADER_BYTES], "big")]
        behind = value[HEADER_BYTES:]
        named = [name for path, name in writer.messages.items() if behind.startswith(message_places(path))]
        if not named:
            return "no message of the schema is named behind its header"
        return f"it is message {named[-1]}, and the sink reads {self._reader.name}"
