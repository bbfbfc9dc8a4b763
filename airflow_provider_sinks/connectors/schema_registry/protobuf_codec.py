"""Between bytes of Protobuf messages and columns of Arrow, where Spark's Python workers run.

``ptars`` decodes and encodes whole batches; no message becomes an object of Python. Its types differ from
Spark's in widths and in what may be null, so arrays are taken apart and put together as the other side has
them: :func:`as_read` and :func:`as_written`. Only a driver and its workers load it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_sinks.core.schemas.protobuf import descriptor
from airflow_provider_sinks.core.schemas.protobuf_types import (
    UINT32,
    UINT64,
    Enum,
    Field,
    MapOf,
    Message,
    Moment,
    ProtobufSchema,
    ProtobufType,
    Repeated,
    Scalar,
)

if TYPE_CHECKING:
    from ptars._lib import MessageHandler  # type: ignore[import-not-found]

_ARROW: dict[str, pa.DataType] = {
    "double": pa.float64(),
    "float": pa.float32(),
    "bool": pa.bool_(),
    "string": pa.string(),
    "bytes": pa.binary(),
    **dict.fromkeys(("int32", "sint32", "sfixed32"), pa.int32()),
    **dict.fromkeys(("int64", "sint64", "sfixed64"), pa.int64()),
    **dict.fromkeys(UINT32, pa.int64()),
    **dict.fromkeys(UINT64, pa.decimal128(20, 0)),
}
_UNSIGNED = {**dict.fromkeys(UINT32, pa.uint32()), **dict.fromkeys(UINT64, pa.uint64())}
_MOMENT = pa.timestamp("us", "UTC")


@lru_cache(maxsize=64)
def handler(schema: _ByText) -> MessageHandler:
    """Return what decodes and encodes the messages of a schema."""
    from ptars import HandlerPool, PtarsConfig

    found = descriptor(schema.schema)
    config = PtarsConfig(timestamp_unit="us", enum_repr="string")
    return HandlerPool([found.file], config).get_for_message(found)


class _ByText:
    """A schema as the key of a cache: what it says stands in its text."""

    def __init__(self, schema: ProtobufSchema) -> None:
        self.schema = schema

    def __hash__(self) -> int:
        return hash(self.schema.text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByText) and other.schema.text == self.schema.text


def decode(
    data: pa.BinaryArray, writer: ProtobufSchema, reader: ProtobufSchema
) -> tuple[pa.StructArray, pa.StringArray]:
    """Return what messages say, as the reader has it, and why one could not be read; null where it could.

    :param data: messages without headers, none of them null.
    :param writer: by what all of them were written.
    """
    taken = handler(_ByText(writer))
    try:
        batch, errors = taken.array_to_record_batch(data), pa.nulls(len(data), pa.string())
    except ValueError:
        batch, errors = _one_by_one(taken, data)
    found = pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema))
    return as_read(found, writer.type, reader.type), errors


def _one_by_one(taken: MessageHandler, data: pa.BinaryArray) -> tuple[pa.RecordBatch, pa.StringArray]:
    """Decode a batch in which one message is broken: halves of halves, until the broken ones stand alone."""
    errors: list[str | None] = [None] * len(data)
    messages = data.to_pylist()

    def judge(start: int, end: int) -> None:
        try:
            taken.list_to_record_batch(messages[start:end])
        except ValueError as error:
            if end - start == 1:
                errors[start], messages[start] = str(error).rpartition(": ")[2], b""
            else:
                middle = (start + end) // 2
                judge(start, middle)
                judge(middle, end)

    judge(0, len(messages))
    return taken.list_to_record_batch(messages), pa.array(errors, pa.string())


def encode(rows: pa.StructArray, schema: ProtobufSchema) -> pa.BinaryArray:
    """Return a message of each row; null where the row is null."""
    there = pc.is_valid(rows)
    taken = handler(_ByText(schema))
    whole = as_written(rows.filter(there), schema.type, taken.schema())
    batch = pa.RecordBatch.from_arrays(whole.flatten(), schema=taken.schema())
    places = pc.if_else(there, pa.array(np.cumsum(there.to_numpy(zero_copy_only=False)) - 1), None)
    return taken.record_batch_to_array(batch).cast(pa.binary()).take(places)


def as_read(array: pa.Array, writes: ProtobufType, reads: ProtobufType) -> pa.Array:
    """Return what was decoded by one schema as another one has it; it must be readable by it."""
    match reads, writes:
        case Message(), Message():
            return _message_read(array, writes, reads)
        case Repeated(), Repeated():
            items = as_read(array.values, writes.items, reads.items)
            return pa.ListArray.from_arrays(array.offsets, items, mask=_nulls(array))
        case MapOf(), MapOf():
            array = _last_of_each_key(array)
            keys = as_read(array.keys, writes.keys, reads.keys)
            values = as_read(array.items, writes.values, reads.values)
            return pa.MapArray.from_arrays(array.offsets, keys, values)
        case _:
            return array.cast(arrow_type(reads))


def _message_read(array: pa.StructArray, writes: Message, reads: Message) -> pa.StructArray:
    written = {one.number: one for one in writes.fields}
    children = []
    for one in reads.fields:
        if one.number in written:
            source = written[one.number]
            found = as_read(array.field(source.name), source.type, one.type)
            children.append(found if one.has_presence else _filled(found, one.type))
        else:
            children.append(_absent(one, len(array)))
    fields = [pa.field(one.name, child.type) for one, child in zip(reads.fields, children, strict=True)]
    return pa.StructArray.from_arrays(children, fields=fields, mask=_nulls(array))


def _filled(array: pa.Array, kind: ProtobufType) -> pa.Array:
    """Return values with the default for null: the writer may tell a field from its default."""
    if array.null_count and isinstance(kind, Scalar | Enum):
        return pc.fill_null(array, _default(kind))
    return array


def _absent(one: Field, size: int) -> pa.Array:
    kind = arrow_type(one.type)
    if one.has_presence:
        return pa.nulls(size, kind)
    return pa.repeat(_default(one.type), size)


def _default(kind: ProtobufType) -> pa.Scalar:
    zero: dict[str, Any] = {"string": "", "bytes": b"", "bool": False}
    match kind:
        case Enum():
            return pa.scalar(kind.names[0], pa.string())
        case Scalar():
            return pa.scalar(zero.get(kind.kind, 0), arrow_type(kind))
        case _:
            return pa.scalar([], arrow_type(kind))


def _last_of_each_key(array: pa.MapArray) -> pa.MapArray:
    """Return maps in which each key stands once: of several the last one counts, as Protobuf reads them."""
    offsets = array.offsets.to_numpy()
    rows = np.repeat(np.arange(len(array)), np.diff(offsets))
    entries = pa.table({"row": rows, "key": array.keys.slice(offsets[0], len(rows))})
    if entries.group_by(["row", "key"]).aggregate([]).num_rows == len(rows):
        return array
    pairs = [None if one is None else list(dict(one).items()) for one in array.to_pylist()]
    return pa.array(pairs, array.type)


def _nulls(array: pa.Array) -> pa.BooleanArray | None:
    return pc.is_null(array) if array.null_count else None


def arrow_type(kind: ProtobufType) -> pa.DataType:
    """Return the type of Arrow in which Spark takes values of a type."""
    match kind:
        case Scalar():
            return _ARROW[kind.kind]
        case Enum():
            return pa.string()
        case Moment():
            return _MOMENT
        case Repeated():
            return pa.list_(arrow_type(kind.items))
        case MapOf():
            return pa.map_(arrow_type(kind.keys), arrow_type(kind.values))
        case Message():
            return pa.struct([pa.field(one.name, arrow_type(one.type)) for one in kind.fields])
        case other:
            raise ValueError(other.name)


def as_written(array: pa.Array, kind: ProtobufType, target: pa.Schema | pa.DataType) -> pa.Array:
    """Return what Spark gives as ``ptars`` takes it.

    :param target: the type that it takes; what is null there must not be null here.
    """
    match kind:
        case Message():
            return _message_written(array, kind, target)
        case Repeated():
            items = as_written(array.values, kind.items, target.value_type)
            fields = pa.field("item", items.type, nullable=False)
            return _list(array, items, pa.list_(fields))
        case MapOf():
            keys = as_written(array.keys, kind.keys, target.key_type)
            values = as_written(array.items, kind.values, target.item_type)
            return pa.MapArray.from_arrays(array.offsets, keys, values)
        case Scalar() if kind.kind in _UNSIGNED:
            return array.cast(_UNSIGNED[kind.kind])
        case _:
            return array.cast(target)


def _list(array: pa.ListArray, items: pa.Array, kind: pa.ListType) -> pa.ListArray:
    return pa.ListArray.from_arrays(array.offsets, items, type=kind, mask=_nulls(array))


def _message_written(
    array: pa.StructArray, kind: Message, target: pa.Schema | pa.StructType
) -> pa.StructArray:
    given = {one.name for one in array.type}
    fields = {one.name: one.type for one in kind.fields}
    types: Sequence[pa.Field] = list(target)  # in the order of their numbers
    children = []
    for into in types:
        if into.name in given:
            children.append(as_written(array.field(into.name), fields[into.name], into.type))
        elif into.nullable:
            children.append(pa.nulls(len(array), into.type))
        else:
            children.append(_nothing(into.type, len(array)))
    named = [field.with_type(child.type) for field, child in zip(types, children, strict=True)]
    return pa.StructArray.from_arrays(children, fields=named, mask=_nulls(array))


def _nothing(kind: pa.DataType, size: int) -> pa.Array:
    """Return what is not written at all: the default of a type without null."""
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        return pa.array([[]] * size, kind)
    zero: Any = "" if pa.types.is_string(kind) else b"" if pa.types.is_binary(kind) else 0
    return pa.repeat(pa.scalar(bool(zero) if pa.types.is_boolean(kind) else zero, kind), size)
