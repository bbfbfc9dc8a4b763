"""Which type of Spark goes into a column of which: as it is, widened where no value changes, or not at all.

Types are brought to one form, a text that has no room for doubt: ``struct<"a":int,"b":array<string>>``.
Whether a value may be null is no part of a type here.
"""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

SparkType: TypeAlias = str | Mapping[str, Any]
"""A type as Spark's own JSON has it: ``"long"``, or ``{"type": "struct", "fields": [...]}``."""
NOT_EQUAL_TO_ITSELF = ("float", "double")
"""Types that have a value which equals nothing, and two that equal each other."""
_PLAIN = {
    "boolean": "boolean",
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "binary",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
}
"""Spark's words in its JSON, and as people write them in SQL."""
_WIDENED = frozenset(
    {
        ("tinyint", "smallint"),
        ("tinyint", "int"),
        ("smallint", "int"),
        ("tinyint", "bigint"),
        ("smallint", "bigint"),
        ("int", "bigint"),
        ("float", "double"),
        ("tinyint", "double"),
        ("smallint", "double"),
        ("int", "double"),
        ("tinyint", "float"),
        ("smallint", "float"),
        ("date", "timestamp_ntz"),
    }
)
DIGITS_MAX = 38
"""Of a decimal, in Spark as in both formats."""
_INTEGER_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
_DECIMAL = re.compile(r"decimal\((\d+), ?(-?\d+)\)")


class Conversion(enum.Enum):
    """What Spark does with a column before it is written."""

    NONE = enum.auto()
    WIDEN = enum.auto()
    REFUSED = enum.auto()


@dataclass(frozen=True)
class Column:
    """A column of a table.

    :param kind: its type in the common form; empty for one that Spark has no type for.
    :param shown: its type in the format's own words, for messages.
    :param is_required: it takes no null.
    """

    name: str
    kind: str
    shown: str
    is_required: bool = False


def conversion(given: str, wanted: str) -> Conversion:
    """Say how a column gets into a table; both types are in the common form."""
    if given == wanted:
        return Conversion.NONE
    if (given, wanted) in _WIDENED or _fits_decimal(given, wanted):
        return Conversion.WIDEN
    return Conversion.REFUSED


def spark_kind(given: SparkType) -> str:
    """Return a type of Spark in the common form; one that no format has a place for keeps Spark's word."""
    if isinstance(given, str):
        found = _DECIMAL.fullmatch(given)
        return f"decimal({found[1]},{found[2]})" if found else _PLAIN.get(given, given)
    match given["type"]:
        case "struct":
            fields = ",".join(f"{json.dumps(f['name'])}:{spark_kind(f['type'])}" for f in given["fields"])
            return f"struct<{fields}>"
        case "array":
            return f"array<{spark_kind(given['elementType'])}>"
        case "map":
            return f"map<{spark_kind(given['keyType'])},{spark_kind(given['valueType'])}>"
        case "udt":
            return "a user-defined type"
    return str(given["type"])


def digits_of(kind: str) -> tuple[int, int] | None:
    """Return how many digits a number in the common form has, and how many of them stand behind the point."""
    if kind in _INTEGER_DIGITS:
        return _INTEGER_DIGITS[kind], 0
    found = _DECIMAL.fullmatch(kind)
    return (int(found[1]), int(found[2])) if found else None


def more_digits(given: str, own: tuple[int, int]) -> tuple[int, int] | None:
    """Return the digits of the same scale that hold a decimal's own values, and those that a query gives.

    Nothing where the scale would change, where they hold them already, or where Spark has no such decimal.
    """
    new = digits_of(given)
    if new is None or new[1] > own[1] or own[1] < 0:
        return None
    digits = max(own[0] - own[1], new[0] - new[1]) + own[1]
    return (digits, own[1]) if own[0] < digits <= DIGITS_MAX else None


def _fits_decimal(given: str, wanted: str) -> bool:
    """Return whether a decimal holds every value of the other type."""
    to = _DECIMAL.fullmatch(wanted)
    if to is None:
        return False
    whole, scale = int(to[1]) - int(to[2]), int(to[2])
    if given in _INTEGER_DIGITS:
        return whole >= _INTEGER_DIGITS[given]
    of = _DECIMAL.fullmatch(given)
    return of is not None and whole >= int(of[1]) - int(of[2]) and scale >= int(of[2])
