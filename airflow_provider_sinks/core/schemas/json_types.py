"""What a JSON Schema says about a value, as far as columns go: types, and what is checked of each value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

BOOLEAN, INTEGER, NUMBER, STRING = "boolean", "integer", "number", "string"
SCALARS = (BOOLEAN, INTEGER, NUMBER, STRING)
DECIMAL, DATE, MOMENT, LOCAL_MOMENT, BASE64 = "decimal", "date", "date-time", "date-time-local", "base64"

DECIMAL_TITLE = "org.apache.kafka.connect.data.Decimal"


@dataclass(frozen=True)
class Bounds:
    """What a value, its length or the number of its items may be.

    :param step: what a whole number is a multiple of.
    """

    least: float | None = None
    most: float | None = None
    more_than: float | None = None
    less_than: float | None = None
    shortest: int | None = None
    longest: int | None = None
    step: int | None = None


FREE = Bounds()


@dataclass(frozen=True)
class Scalar:
    """A type without parts.

    :param kind: one of :data:`SCALARS`.
    :param means: what it stands for: a format such as ``date``, a type of Kafka Connect such as ``int32``, or
        nothing more.
    :param one_of: the values that it may have; ``None`` for any.
    """

    kind: str
    means: str = ""
    precision: int = 0
    scale: int = 0
    one_of: tuple[Any, ...] | None = None
    bounds: Bounds = FREE


@dataclass(frozen=True)
class ArrayOf:
    """Any number of items."""

    items: JsonType
    bounds: Bounds = FREE


@dataclass(frozen=True)
class MapOf:
    """Values by text."""

    values: JsonType


@dataclass(frozen=True)
class Nullable:
    """A type, or null."""

    type: JsonType


@dataclass(frozen=True)
class Opaque:
    """What no column can be.

    :param why: in words that go behind a field's name.
    """

    why: str


@dataclass(frozen=True)
class Property:
    """A field of an object."""

    name: str
    type: JsonType
    is_required: bool = False
    doc: str = ""

    @property
    def may_be_null(self) -> bool:
        """Whether a value may have null in its place."""
        return isinstance(self.type, Nullable)


@dataclass(frozen=True)
class Object:
    """Fields in an order."""

    properties: tuple[Property, ...] = ()


JsonType: TypeAlias = Scalar | ArrayOf | MapOf | Nullable | Opaque | Object


@dataclass(frozen=True)
class Unchecked:
    """A keyword by which a value may be wrong, and that nobody checks."""

    where: str
    keyword: str


@dataclass(frozen=True)
class JsonSchema:
    """A schema that stands by itself.

    :param text: as JSON, with what it refers to written into it, and without what no column needs.
    :param type: what it says.
    :param name: its title.
    """

    text: str
    type: JsonType
    name: str = ""
    unchecked: tuple[Unchecked, ...] = field(default=())


def known(kind: JsonType) -> JsonType:
    """Return a type without null."""
    return kind.type if isinstance(kind, Nullable) else kind
