"""May a value that was written by one Protobuf schema be read by another? With reasons, by field.

Fields are told by their numbers. A value is decoded by the schema that it was written with, and its fields
are then taken as the reader has them: a type that is wider holds what a narrower one had. What Protobuf's own
parsers would take for an unknown field, and leave out without a word, is refused here.
"""

from __future__ import annotations

from collections.abc import Iterator

from airflow_provider_sinks.core.schemas.protobuf_types import (
    BYTES,
    DOUBLE,
    FLOAT,
    INT32,
    INT64,
    STRING,
    UINT32,
    UINT64,
    Enum,
    Field,
    MapOf,
    Message,
    Moment,
    Named,
    ProtobufSchema,
    ProtobufType,
    Repeated,
    Scalar,
)

_WIDENS = (
    (INT32, INT32 | INT64),
    (INT64, INT64),
    (UINT32, UINT32 | UINT64 | INT64),
    (UINT64, UINT64),
    (frozenset({FLOAT}), frozenset({FLOAT, DOUBLE})),
    (frozenset({STRING}), frozenset({STRING, BYTES})),
)
"""What a written type may be read as without a change of any value."""


def unreadable(reader: ProtobufSchema, writer: ProtobufSchema) -> tuple[str, ...]:
    """Return why values written by one schema cannot be read by another; nothing where they can."""
    if reader.name != writer.name:
        return (f"it is message {writer.name}, and not {reader.name}",)
    return tuple(dict.fromkeys(_message_misfits(reader.type, writer.type, "")))


def same_bytes(one: ProtobufSchema, other: ProtobufSchema) -> bool:
    """Whether both write every value alike: names of fields and types do not count, numbers do."""
    return one.path == other.path and _shape(one.type) == _shape(other.type)


def leaves(schema: ProtobufSchema) -> tuple[tuple[str, str], ...]:
    """Return each field that is no message, with how it is written."""
    return tuple(_leaves(schema.type, ""))


def _message_misfits(reads: Message, writes: Message, path: str) -> Iterator[str]:
    written = {one.number: one for one in writes.fields}
    names = {one.name: one for one in writes.fields}
    for one in reads.fields:
        below = f"{path}.{one.name}" if path else one.name
        source = written.get(one.number)
        if source is not None:
            yield from _misfits(one.type, source.type, below)
        elif one.name in names:
            numbers = f"number {names[one.name].number}, and is read by number {one.number}"
            yield f"field {below} is written with {numbers}"


def _misfits(reads: ProtobufType, writes: ProtobufType, path: str) -> Iterator[str]:
    match reads, writes:
        case Message(), Message():
            yield from _message_misfits(reads, writes, path)
        case Repeated(), Repeated():
            yield from _misfits(reads.items, writes.items, f"{path}[]")
        case MapOf(), MapOf():
            yield from _misfits(reads.keys, writes.keys, f"{path}[]")
            yield from _misfits(reads.values, writes.values, f"{path}[]")
        case Enum(), Enum():
            yield from _enum_misfits(reads, writes, path)
        case Scalar(), Scalar() if widens(reads.kind, writes.kind):
            return
        case Moment(), Moment():
            return
        case Named(), Named():
            return
        case _:
            yield f"field {path} is written as {described(writes)} and read as {described(reads)}"


def _enum_misfits(reads: Enum, writes: Enum, path: str) -> Iterator[str]:
    """Give symbols that mean another one; one that the reader lacks is told of each value."""
    known = dict(reads.symbols)
    for name, number in writes.symbols:
        if known.get(name, number) != number:
            yield f"field {path} is written with {name} = {number} and read with {name} = {known[name]}"


def widens(reads: str, writes: str) -> bool:
    """Whether a scalar holds every value of another one."""
    return reads == writes or any(writes in given and reads in takes for given, takes in _WIDENS)


def described(kind: ProtobufType) -> str:
    """Return a type in one phrase."""
    match kind:
        case Scalar():
            return kind.wrapper or kind.kind
        case Enum():
            return f"enum of {', '.join(kind.names)}"
        case Moment():
            return "google.protobuf.Timestamp"
        case Repeated():
            return f"repeated {described(kind.items)}"
        case MapOf():
            return f"map<{kind.keys.kind}, {described(kind.values)}>"
        case Message() | Named():
            return f"message {kind.name}"


def _shape(kind: ProtobufType) -> object:
    match kind:
        case Message():
            return "message", tuple(sorted(map(_field_shape, kind.fields), key=str))
        case Repeated():
            return "repeated", _shape(kind.items)
        case MapOf():
            return "map", _shape(kind.keys), _shape(kind.values)
        case Enum():
            return "enum", kind.symbols
        case _:
            return kind


def _field_shape(one: Field) -> object:
    return one.number, one.has_presence, _shape(one.type)


def _leaves(kind: ProtobufType, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(kind, Message):
        for one in kind.fields:
            below = f"{path}.{one.name}" if path else one.name
            inner = dict(_leaves(one.type, below))
            presence = "optional " if one.has_presence and below in inner else ""
            for name, told in inner.items():
                yield name, f"{presence}{told} = {one.number}" if name == below else told
    else:
        yield path or "value", described(kind)
