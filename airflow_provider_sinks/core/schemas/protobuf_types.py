"""What a Protobuf schema says, as values: one message of its files, resolved by names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

DOUBLE, FLOAT, BOOL, STRING, BYTES = "double", "float", "bool", "string", "bytes"
INT32 = frozenset({"int32", "sint32", "sfixed32"})
INT64 = frozenset({"int64", "sint64", "sfixed64"})
UINT32 = frozenset({"uint32", "fixed32"})
UINT64 = frozenset({"uint64", "fixed64"})
TIMESTAMP = "google.protobuf.Timestamp"
WRAPPERS: Mapping[str, str] = {
    "google.protobuf.DoubleValue": DOUBLE,
    "google.protobuf.FloatValue": FLOAT,
    "google.protobuf.Int64Value": "int64",
    "google.protobuf.UInt64Value": "uint64",
    "google.protobuf.Int32Value": "int32",
    "google.protobuf.UInt32Value": "uint32",
    "google.protobuf.BoolValue": BOOL,
    "google.protobuf.StringValue": STRING,
    "google.protobuf.BytesValue": BYTES,
}
"""Messages that are a scalar, or null."""
STANDING = re.compile(r"protobuf:(?P<message>[\w.]+):(?P<files>[A-Za-z0-9+/=]+)")
"""How a schema is written that stands by itself: its message, and a ``FileDescriptorSet`` in base64."""


def stands_alone(text: str) -> bool:
    """Whether a schema needs no compiler to be read."""
    return STANDING.fullmatch(text) is not None


@dataclass(frozen=True)
class Scalar:
    """A type without parts.

    :param wrapper: the message that stands around it; empty where none does.
    """

    kind: str
    wrapper: str = ""


@dataclass(frozen=True)
class Enum:
    """One of some symbols, each with its number."""

    name: str
    symbols: tuple[tuple[str, int], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The symbols without their numbers."""
        return tuple(name for name, _ in self.symbols)


@dataclass(frozen=True)
class Moment:
    """A :data:`TIMESTAMP`."""


@dataclass(frozen=True)
class Repeated:
    """Any number of items, none of them null."""

    items: ProtobufType


@dataclass(frozen=True)
class MapOf:
    """Values by keys."""

    keys: Scalar
    values: ProtobufType


@dataclass(frozen=True)
class Named:
    """A message inside itself."""

    name: str


@dataclass(frozen=True)
class Field:
    """A field of a message.

    :param has_presence: whether it is told from a default when it is not there.
    :param oneof: the group of fields of which one is there; empty where it is in none.
    """

    name: str
    number: int
    type: ProtobufType
    has_presence: bool = False
    is_required: bool = False
    oneof: str = ""


@dataclass(frozen=True)
class Message:
    """Fields in the order in which they are written down."""

    name: str
    fields: tuple[Field, ...] = ()


ProtobufType: TypeAlias = Scalar | Enum | Moment | Repeated | MapOf | Named | Message


@dataclass(frozen=True)
class ProtobufSchema:
    """A schema that stands by itself.

    :param text: with what it refers to, and which of its messages is meant; read by :func:`.protobuf.parse`.
    :param files: a serialized ``FileDescriptorSet``, what a file needs before it.
    :param path: where the message stands in its file: the number of the outermost one first.
    :param messages: the name of each message of the file, by its place.
    :param reserved: names and numbers that no field of the message may have.
    """

    text: str
    files: bytes
    type: Message
    path: tuple[int, ...] = (0,)
    messages: Mapping[tuple[int, ...], str] = field(default_factory=dict)
    reserved: tuple[tuple[str, ...], tuple[tuple[int, int], ...]] = ((), ())

    @property
    def name(self) -> str:
        """The full name of the message."""
        return self.type.name
