"""Protobuf schemas as a registry keeps them: which message is meant, and what it says.

Fields are told by their numbers, so two schemas of one subject differ in names and types only where that is
harmless or refused (:mod:`.protobuf_compatibility`). A message inside itself is kept as
:class:`.protobuf_types.Named`. Whether a field that is not there is told from its default (presence) is asked
of the descriptors, which know the rules of proto2, proto3 and editions.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_provider_sinks.core.errors import Problem, nearest
from airflow_provider_sinks.core.schemas.protobuf_files import compiled
from airflow_provider_sinks.core.schemas.protobuf_types import (
    STANDING,
    TIMESTAMP,
    WRAPPERS,
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
from airflow_provider_sinks.core.schemas.too_deep import refusing_what_is_too_deep
from airflow_provider_sinks.core.spec.problems import UnfitPartsError

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor

_PARTS_MAX = 20_000
_KINDS = {
    1: "double",
    2: "float",
    3: "int64",
    4: "uint64",
    5: "int32",
    6: "fixed64",
    7: "fixed32",
    8: "bool",
    9: "string",
    12: "bytes",
    13: "uint32",
    15: "sfixed32",
    16: "sfixed64",
    17: "sint32",
    18: "sint64",
}
"""The numbers that ``FieldDescriptorProto.Type`` gives to scalars."""
_GROUP = 10


def parse(text: str, references: Iterable[tuple[str, str]] = (), message: str = "") -> ProtobufSchema:
    """Read a schema.

    :param text: a ``.proto`` file, a serialized descriptor of one in base64, or :attr:`.ProtobufSchema.text`.
    :param references: the files that it imports: the name by which it does, and the text.
    :param message: the full name of the message that is meant; the first one of the file, unless given.
    :raises UnfitPartsError: it is none, or has no such message, with every problem.
    """
    if standing := STANDING.fullmatch(text):
        return _read(base64.b64decode(standing["files"]), message or standing["message"])
    files, main = compiled(text, tuple(references))
    return _read(files, message, main)


def descriptor(schema: ProtobufSchema) -> Descriptor:
    """Return the message of a schema as Protobuf's own library has it."""
    found: Descriptor = _pool(schema.files)[0].FindMessageTypeByName(schema.name)
    return found


def _pool(files: bytes) -> tuple[Any, list[str]]:
    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    from google.protobuf.descriptor_pool import DescriptorPool

    pool, names = DescriptorPool(), []
    try:
        for one in FileDescriptorSet.FromString(files).file:
            pool.Add(one)
            names.append(one.name)
    except (TypeError, KeyError) as error:
        raise UnfitPartsError([Problem("", f"is no Protobuf: {' '.join(str(error).split())}")]) from None
    return pool, names


def _read(files: bytes, message: str, main: str = "") -> ProtobufSchema:
    with refusing_what_is_too_deep():
        pool, names = _pool(files)
        file: FileDescriptor = pool.FindFileByName(main or names[-1])
        places = dict(_messages(file))
        if not places:
            raise UnfitPartsError([Problem("", "has no message, and only a message has fields")])
        by_name = {name: place for place, name in places.items()}
        name = message or next(iter(places.values()))
        if name not in by_name:
            hint = nearest(name, by_name) or f"its messages: {', '.join(by_name)}"
            raise UnfitPartsError([Problem("message", f"{name!r} is no message of it", hint)])
        reader = _Reader()
        found: Descriptor = pool.FindMessageTypeByName(name)
        read = reader.message(found, "")
        if reader.problems:
            raise UnfitPartsError(reader.problems)
        text = f"protobuf:{name}:{base64.b64encode(files).decode()}"
        return ProtobufSchema(text, files, read, by_name[name], places, _reserved(found))


def _messages(file: FileDescriptor) -> Iterator[tuple[tuple[int, ...], str]]:
    for number, one in enumerate(file.message_types_by_name.values()):
        yield from _within(one, (number,))


def _within(message: Descriptor, place: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], str]]:
    if not message.GetOptions().map_entry:
        yield place, message.full_name
    for number, one in enumerate(message.nested_types):
        yield from _within(one, (*place, number))


def _reserved(message: Descriptor) -> tuple[tuple[str, ...], tuple[tuple[int, int], ...]]:
    """Return what no field may be called, and the numbers that none may have, both ends counted."""
    from google.protobuf.descriptor_pb2 import DescriptorProto

    found = DescriptorProto()
    message.CopyToProto(found)
    return tuple(found.reserved_name), tuple((one.start, one.end - 1) for one in found.reserved_range)


@dataclass
class _Reader:
    problems: list[Problem] = field(default_factory=list)
    _open: list[str] = field(default_factory=list)
    _parts: int = 0

    def message(self, found: Descriptor, path: str) -> Message:
        self._open.append(found.full_name)
        try:
            return Message(found.full_name, tuple(self._field(one, path) for one in found.fields))
        finally:
            self._open.pop()

    def _field(self, one: FieldDescriptor, path: str) -> Field:
        below = f"{path}.{one.name}" if path else one.name
        self._parts += 1
        if self._parts > _PARTS_MAX:  # what is named many times over is read as often
            raise UnfitPartsError([Problem("", f"has more than {_PARTS_MAX:,} parts")])
        group = one.containing_oneof
        oneof = group.name if group is not None and len(group.fields) > 1 else ""
        kind = self._type(one, below)
        return Field(one.name, one.number, kind, one.has_presence, one.is_required, oneof)

    def _type(self, one: FieldDescriptor, path: str) -> ProtobufType:
        inner = one.message_type
        if inner is not None and inner.GetOptions().map_entry:
            key, value = inner.fields_by_name["key"], inner.fields_by_name["value"]
            return MapOf(Scalar(_KINDS[key.type]), self._single(value, f"{path}[]"))
        single = self._single(one, path)
        return Repeated(single) if one.is_repeated else single

    def _single(self, one: FieldDescriptor, path: str) -> ProtobufType:
        if one.enum_type is not None:
            symbols = tuple((value.name, value.number) for value in one.enum_type.values)
            return Enum(one.enum_type.full_name, symbols)
        if one.message_type is None:
            return Scalar(_KINDS[one.type])
        if one.type == _GROUP:
            self.problems.append(Problem(path, "is a group of proto2", "write a message"))
        return self._of_message(one.message_type, path)

    def _of_message(self, inner: Descriptor, path: str) -> ProtobufType:
        name = inner.full_name
        if name == TIMESTAMP:
            return Moment()
        if name in WRAPPERS:
            return Scalar(WRAPPERS[name], name)
        return Named(name) if name in self._open else self.message(inner, path)
