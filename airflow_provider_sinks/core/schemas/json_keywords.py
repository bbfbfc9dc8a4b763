"""What the keywords of a JSON Schema say of one place: its types, its choices, its bounds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from math import isfinite
from typing import Any

from airflow_provider_sinks.core.schemas.json_types import (
    BASE64,
    BOOLEAN,
    DATE,
    DECIMAL,
    DECIMAL_TITLE,
    FREE,
    INTEGER,
    LOCAL_MOMENT,
    MOMENT,
    NUMBER,
    STRING,
    Bounds,
    Scalar,
)

_DIGITS_MAX = 38
_CONNECT = {INTEGER: ("int8", "int16", "int32"), NUMBER: ("float32",)}


def written_kinds(tree: Mapping[str, Any]) -> set[str]:
    """Return the types that a schema names."""
    given = tree.get("type", [])
    return set(map(str, given if isinstance(given, list) else [given]))


def kinds_of(tree: Mapping[str, Any]) -> set[str]:
    """Return the types that a schema names, without null, or what else it says leads to."""
    if "type" in tree:
        return written_kinds(tree) - {"null"}
    if (values := values_of(tree)) is not None:
        return {_kind_of(value) for value in values if value is not None}
    if "properties" in tree:
        return {"object"}
    return {"array"} if "items" in tree else set()


def values_of(tree: Mapping[str, Any]) -> list[Any] | None:
    """Return what a value may be by enum or const; ``None`` for anything."""
    if "const" in tree:
        return [tree["const"]]
    given = tree.get("enum")
    return given if isinstance(given, list) else None


def _kind_of(value: Any) -> str:
    kinds: Mapping[type, str] = {bool: BOOLEAN, int: INTEGER, float: NUMBER, str: STRING, list: "array"}
    return kinds.get(type(value), "object")


def is_of(value: Any, kind: str) -> bool:
    """Tell whether a value is of a type."""
    return _kind_of(value) == kind or (kind == NUMBER and _kind_of(value) == INTEGER)


def scalar(kind: str, tree: Mapping[str, Any]) -> Scalar:
    """Return a type without parts."""
    means, precision, scale = _meaning(kind, tree)
    values = values_of(tree)
    one_of = None if values is None else tuple(value for value in values if value is not None)
    return Scalar(kind, means, precision, scale, one_of, bounds_of(kind, tree))


def _meaning(kind: str, tree: Mapping[str, Any]) -> tuple[str, int, int]:
    """Return what a type stands for, and the digits of a decimal."""
    connect = str(tree.get("connect.type", ""))
    if kind == STRING:
        return _text_meaning(tree), 0, 0
    if kind == NUMBER and tree.get("title") == DECIMAL_TITLE:
        given = tree.get("connect.parameters")
        digits = given if isinstance(given, dict) else {}
        precision = count_of(digits.get("connect.decimal.precision")) or _DIGITS_MAX
        scale = count_of(digits.get("scale")) or 0
        if scale <= precision <= _DIGITS_MAX:
            return DECIMAL, precision, scale
    return (connect if connect in _CONNECT.get(kind, ()) else ""), 0, 0


def _text_meaning(tree: Mapping[str, Any]) -> str:
    """Return what text stands for; where it is judged as text, it stays text."""
    if values_of(tree) is not None or tree.keys() & {"minLength", "maxLength", "pattern"}:
        return ""
    if tree.get("contentEncoding") == "base64" or tree.get("connect.type") == "bytes":
        return BASE64
    return str(tree["format"]) if tree.get("format") in (DATE, MOMENT, LOCAL_MOMENT) else ""


def bounds_of(kind: str, tree: Mapping[str, Any]) -> Bounds:
    """Return what a value without parts, or its length, may be."""
    if kind == STRING:
        return Bounds(shortest=count_of(tree.get("minLength")), longest=count_of(tree.get("maxLength")))
    if kind not in (INTEGER, NUMBER):
        return FREE
    least, most = _number(tree.get("minimum")), _number(tree.get("maximum"))
    more, less = tree.get("exclusiveMinimum"), tree.get("exclusiveMaximum")
    step = count_of(tree.get("multipleOf")) if kind == INTEGER else None
    return Bounds(
        least=None if more is True else least,  # draft 4 has it as a flag
        most=None if less is True else most,
        more_than=least if more is True else _number(more),
        less_than=most if less is True else _number(less),
        step=step or None,
    )


def _number(value: Any) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    with suppress(OverflowError):  # an integer of hundreds of digits
        return value if isfinite(value) else None
    return None


def count_of(value: Any) -> int | None:
    """Return a number of things; Kafka Connect writes it as text."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value):
        return int(value)
    number = _number(value)
    return int(number) if number is not None and number >= 0 and number == int(number) else None
