"""What an Avro schema says, as values: types, resolved by their names, and the schema that they make up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
COMPLEX = ("record", "enum", "fixed", "array", "map")


@dataclass(frozen=True)
class Logical:
    """What a primitive or fixed type stands for.

    :param precision: digits of a decimal, of them ``scale`` behind the point.
    """

    name: str = ""
    precision: int = 0
    scale: int = 0


NONE = Logical()


@dataclass(frozen=True)
class Primitive:
    """A type without parts."""

    kind: str
    logical: Logical = NONE


@dataclass(frozen=True)
class Fixed:
    """So many bytes."""

    name: str
    size: int
    logical: Logical = NONE


@dataclass(frozen=True)
class Enum:
    """One of some symbols."""

    name: str
    symbols: tuple[str, ...]
    has_default: bool = False


@dataclass(frozen=True)
class Array:
    """Any number of items."""

    items: AvroType


@dataclass(frozen=True)
class Map:
    """Values by text."""

    values: AvroType


@dataclass(frozen=True)
class Union:
    """One of some types."""

    branches: tuple[AvroType, ...]

    @property
    def is_nullable(self) -> bool:
        """Whether null is one of them."""
        return any(isinstance(one, Primitive) and one.kind == "null" for one in self.branches)

    @property
    def others(self) -> tuple[AvroType, ...]:
        """Those that are not null."""
        return tuple(one for one in self.branches if not (isinstance(one, Primitive) and one.kind == "null"))


@dataclass(frozen=True)
class Named:
    """A record inside itself."""

    name: str


@dataclass(frozen=True)
class Field:
    """A field of a record."""

    name: str
    type: AvroType
    has_default: bool = False
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Record:
    """Fields in an order."""

    name: str
    fields: tuple[Field, ...] = ()


AvroType: TypeAlias = Primitive | Fixed | Enum | Array | Map | Union | Named | Record


@dataclass(frozen=True)
class AvroSchema:
    """A schema that stands by itself.

    :param text: as JSON, with what it refers to written into it.
    :param type: what it says.
    :param records: every record by its full name, for :class:`Named`.
    """

    text: str
    type: AvroType
    records: Mapping[str, Record] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The full name of its record; empty where it is none."""
        return self.type.name if isinstance(self.type, Record | Enum | Fixed) else ""

    def resolve(self, kind: AvroType) -> AvroType:
        """Return a type, where a name stands for it what it names."""
        return self.records[kind.name] if isinstance(kind, Named) else kind
