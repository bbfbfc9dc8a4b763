"""What Protobuf says of a value beyond its type, in Spark's expressions: for reading and for writing.

Only a driver loads it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from itertools import groupby

from pyspark.sql import Column
from pyspark.sql import functions as sql

from airflow_provider_sinks.connectors.schema_registry.reasons import Guard, of_fields, of_items, told
from airflow_provider_sinks.core.schemas.protobuf_types import (
    UINT32,
    UINT64,
    Enum,
    Field,
    MapOf,
    Message,
    Moment,
    ProtobufType,
    Repeated,
    Scalar,
)

_LARGEST = {**dict.fromkeys(UINT32, 2**32 - 1), **dict.fromkeys(UINT64, 2**64 - 1)}
_FIRST, _BEHIND = "0001-01-01", "+10000-01-01"


def reasons(value: Column, kind: ProtobufType, path: str, *, is_written: bool) -> Iterator[Column]:
    """Give why a value and its parts are not taken, in their order.

    :param is_written: whether it is to be written; otherwise it was read.
    """
    match kind:
        case Message():
            yield from of_fields(value, _of_message(value, kind, path, is_written=is_written))
        case Repeated():
            yield from of_items(value, lambda item: _items(item, kind.items, path, is_written=is_written))
        case MapOf():
            values = sql.map_values(value)
            yield from of_items(values, lambda item: _items(item, kind.values, path, is_written=is_written))
        case _:
            yield from told(_leaf(value, kind, path, is_written=is_written))


def field_reasons(value: Column, one: Field, path: str) -> Iterator[Column]:
    """Give why a column cannot be written into a field of a message."""
    if isinstance(one.type, Repeated | MapOf):
        none = "an empty list" if isinstance(one.type, Repeated) else "an empty map"
        yield from told([(value.isNull(), f"field {path} is null, and Protobuf has {none} instead")])
    elif not one.has_presence or one.is_required:
        yield from told([(value.isNull(), f"field {path} is null, and its schema says that it never is")])
    yield from reasons(value, one.type, path, is_written=True)


def several_of_one(fields: list[tuple[Field, Column]], path: str) -> Iterator[Column]:
    """Give that more than one field of a group is there of which Protobuf keeps one."""
    grouped = sorted((one for one in fields if one[0].oneof), key=lambda one: one[0].oneof)
    for oneof, members in groupby(grouped, key=lambda one: one[0].oneof):
        counted = [column.isNotNull().cast("int") for _, column in members]
        where = f" of {path}" if path else ""
        what = f"more than one field of oneof {oneof}{where} is there"
        if len(counted) > 1:
            yield from told([(reduce(Column.__add__, counted) > 1, what)])


def _of_message(value: Column, kind: Message, path: str, *, is_written: bool) -> Iterator[Column]:
    fields = [(one, value.getField(one.name)) for one in kind.fields]
    for one, found in fields:
        below = f"{path}.{one.name}" if path else one.name
        if is_written:
            yield from field_reasons(found, one, below)
        else:
            yield from reasons(found, one.type, below, is_written=False)
    yield from several_of_one(fields, path)


def _items(item: Column, kind: ProtobufType, path: str, *, is_written: bool) -> Iterator[Column]:
    if is_written:
        yield from told([(item.isNull(), f"field {path}[] is null, and Protobuf has no null in it")])
    yield from reasons(item, kind, f"{path}[]", is_written=is_written)


def _leaf(value: Column, kind: ProtobufType, path: str, *, is_written: bool) -> Iterator[Guard]:
    match kind:
        case Enum() if is_written:
            yield ~value.isin(*kind.names), f"field {path} is none of {', '.join(kind.names)}"
        case Enum():  # a number that no symbol has is read as that number
            yield sql.rlike(value, sql.lit("^[-0-9]")), f"field {path} is none of {', '.join(kind.names)}"
        case Scalar() if is_written and kind.kind in _LARGEST:
            largest = sql.lit(str(_LARGEST[kind.kind])).cast("decimal(20,0)")
            number = value.cast("decimal(20,0)")
            yield (
                (number < 0) | (number > largest),
                f"field {path} is not between 0 and the largest {kind.kind}",
            )
        case Moment() if is_written:
            day = value.cast("date")
            outside = (day < sql.lit(_FIRST).cast("date")) | (day >= sql.lit(_BEHIND).cast("date"))
            yield outside, f"field {path} is not in the years 1 to 9999"
        case _:
            return
