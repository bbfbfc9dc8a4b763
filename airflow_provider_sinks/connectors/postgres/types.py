"""Which types of Spark fit which columns of Postgres.

Binary ``COPY`` takes bytes for what the column's type says: a bigint in a column of ``double precision`` is
another number, and nobody is told. So Spark gives each column exactly its type. It casts where no value can
change; where a value may not fit, that row gets an error; everything else is refused before the start.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass

_SPARK: Mapping[str, str] = {
    "boolean": "boolean",
    "smallint": "smallint",
    "integer": "int",
    "bigint": "bigint",
    "real": "float",
    "double precision": "double",
    "text": "string",
    "character varying": "string",
    "character": "string",
    "bytea": "binary",
    "date": "date",
    "timestamp without time zone": "timestamp_ntz",
    "timestamp with time zone": "timestamp",
}
"""What binary ``COPY`` wants, by the column's type without its length."""
_CREATED: Mapping[str, str] = {
    "tinyint": "smallint",
    **{spark: kind for kind, spark in _SPARK.items() if not kind.startswith("character")},
}
_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_LOSSLESS = {
    ("tinyint", "float"),
    ("smallint", "float"),
    ("tinyint", "double"),
    ("smallint", "double"),
    ("int", "double"),
    ("float", "double"),
    ("date", "timestamp_ntz"),
}
_AS_TEXT = (*_INTEGERS, "boolean", "date", "float", "double", "timestamp", "timestamp_ntz")
_DIGITS_MAX = 38
_JSON = ("json", "jsonb")


class Conversion(enum.Enum):
    """What Spark does with a column before it is copied."""

    NONE = enum.auto()
    CAST = enum.auto()
    CHECKED = enum.auto()
    """Cast; a value that does not fit makes its row a bad one."""
    JSON = enum.auto()
    REFUSED = enum.auto()


@dataclass(frozen=True)
class Column:
    """A column of a table.

    :param kind: its type, as ``format_type`` writes it: ``numeric(10,2)``.
    :param base: the same without a length, and without a domain: ``numeric``.
    :param is_required: it takes no null, and has no default.
    :param is_generated: Postgres alone writes it.
    :param mark: changes whenever it is altered (:mod:`.known_tables`).
    :param exact: its type with a length, and without a domain: ``numeric(10,2)``.
    :param plain: its type without both, for a cast: ``bpchar``, where ``character`` has one letter.
    :param collation: which of its texts are the same, unless it is the database's own.
    :param is_fixed: Postgres lets nobody change its type here: it is of a type, of a partition key, also of
        that of a partition, or of another table, which it is inherited from, or those are that inherit it.
    :param is_not_null: it takes no null, whether it has a default or not.
    :param is_identity: Postgres numbers it, so that it takes no null for as long.
    """

    name: str
    kind: str
    base: str
    is_required: bool = False
    is_generated: bool = False
    mark: str = ""
    exact: str = ""
    plain: str = ""
    collation: str | None = None
    is_fixed: bool = False
    is_not_null: bool = False
    is_identity: bool = False

    @property
    def spark(self) -> str:
        """The type of Spark that is copied into it; text for whatever binary ``COPY`` does not take.

        A numeric whose digits Spark cannot have is copied as any decimal; Postgres counts its digits.
        """
        if self.base != "numeric":
            return _SPARK.get(self.base, "string")
        digits, scale = self.digits or (0, 0)
        return f"decimal({digits},{scale})" if 0 <= scale <= digits <= _DIGITS_MAX and digits else "decimal"

    @property
    def digits(self) -> tuple[int, int] | None:
        """Of a numeric: its digits, and how many of them stand behind the point."""
        found = re.fullmatch(r"numeric\((\d+),(-?\d+)\)", self.exact or self.kind)
        return (int(found[1]), int(found[2])) if found else None

    @property
    def staged(self) -> str:
        """Its type in a temporary table, which takes whatever the column itself may refuse."""
        return self.base if self.base in _SPARK and not self.base.startswith("character") else self._text

    @property
    def is_cast(self) -> bool:
        """It is copied as text, and cast by Postgres."""
        return self.base not in _SPARK and self.base != "numeric"

    @property
    def compared(self) -> str:
        """What a staged value is cast to for the question whether two of them are one key; empty for nothing.

        A cast to a length cuts texts off, which no assignment does; one to fewer digits rounds, as that does.
        """
        kind = self.plain if re.search(r"char|bit", self.base) else self.exact
        own = f" COLLATE {self.collation}" if self.collation else ""
        return "" if kind in (self.staged, "character varying", "") and not own else f"{kind}{own}"

    @property
    def _text(self) -> str:
        return "numeric" if self.base == "numeric" else "text"


def conversion(given: str, column: Column) -> Conversion:
    """Say how a column of Spark gets into one of Postgres.

    :param given: Spark's type, as ``simpleString`` writes it.
    """
    wanted = column.spark
    if is_nested(given):
        return Conversion.JSON if column.base in _JSON else Conversion.REFUSED
    if _is_rounded(given, column):
        return Conversion.REFUSED
    if given == wanted or (wanted == "decimal" and given.startswith("decimal")):
        return Conversion.NONE
    if (given, wanted) in _LOSSLESS or (wanted == "string" and _is_text(given, column)):
        return Conversion.CAST
    if wanted in _INTEGERS:
        return _to_integer(given, wanted)
    is_number = given in _INTEGERS or _decimal(given) != ()
    return Conversion.CHECKED if wanted.startswith("decimal") and is_number else Conversion.REFUSED


def is_nested(given: str) -> bool:
    """Return whether a type of Spark has others inside."""
    return given.startswith(("struct<", "array<", "map<"))


def created(given: str) -> str | None:
    """Return the type of Postgres for a column of a new table, or ``None`` where there is none.

    :param given: Spark's type.
    """
    if is_nested(given):
        return "jsonb"
    if given.startswith("decimal"):
        return given.replace("decimal", "numeric")
    return _CREATED.get(given)


def _is_text(given: str, column: Column) -> bool:
    return not column.is_cast and (given in _AS_TEXT or given.startswith("decimal"))


def _to_integer(given: str, wanted: str) -> Conversion:
    if given in _INTEGERS:
        return Conversion.CAST if _INTEGERS.index(given) < _INTEGERS.index(wanted) else Conversion.CHECKED
    return Conversion.CHECKED if _decimal(given)[1:] == (0,) else Conversion.REFUSED


def _is_rounded(given: str, column: Column) -> bool:
    """Return whether Postgres would round: it does so silently, to the digits of the column."""
    scale = 0 if given in _INTEGERS else (_decimal(given) or (0, 0))[1]
    return column.digits is not None and scale > column.digits[1]


def _decimal(kind: str) -> tuple[int, ...]:
    found = re.fullmatch(r"decimal\((\d+),(\d+)\)", kind)
    return tuple(map(int, found.groups())) if found else ()
