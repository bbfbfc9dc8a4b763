"""Does the default of a field fit its type? By the Avro specification 1.12, section *Complex Types*."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from airflow_provider_sinks.core.schemas.avro_types import (
    Array,
    AvroType,
    Enum,
    Fixed,
    Map,
    Primitive,
    Record,
    Union,
)

_INT, _LONG = 2**31, 2**63


def unfit_default(value: Any, kind: AvroType) -> str:
    """Return why a default is none; a union's is one of its first type."""
    match kind:
        case Union():
            return unfit_default(value, kind.branches[0]) if kind.branches else "the union is empty"
        case Primitive() | Fixed() | Enum():
            return _unfit_leaf(value, kind)
        case Array() | Map():
            return _unfit_items(value, kind)
        case Record():
            return _unfit_record(value, kind)
        case _:
            return ""


def _unfit_leaf(value: Any, kind: Primitive | Fixed | Enum) -> str:
    if isinstance(kind, Primitive):
        return "" if _is_of(value, kind.kind) else f"it is no {kind.kind}"
    if isinstance(kind, Enum):
        return "" if value in kind.symbols else f"it is none of {', '.join(kind.symbols)}"
    is_well = isinstance(value, str) and len(value) == kind.size
    return "" if is_well else f"it is no text of {kind.size} characters"


def _is_of(value: Any, kind: str) -> bool:
    number = not isinstance(value, bool) and isinstance(value, int)
    return {
        "null": value is None,
        "boolean": isinstance(value, bool),
        "int": number and -_INT <= value < _INT,
        "long": number and -_LONG <= value < _LONG,
        "float": number or isinstance(value, float),
        "double": number or isinstance(value, float),
        "bytes": isinstance(value, str),
        "string": isinstance(value, str),
    }[kind]


def _unfit_items(value: Any, kind: Array | Map) -> str:
    if isinstance(kind, Array):
        return _first_unfit(value, kind.items) if isinstance(value, list) else "it is no list"
    is_well = isinstance(value, dict)
    return _first_unfit(value.values(), kind.values) if is_well else "it is no mapping"


def _first_unfit(values: Iterable[Any], kind: AvroType) -> str:
    return next(filter(None, (unfit_default(value, kind) for value in values)), "")


def _unfit_record(value: Any, kind: Record) -> str:
    if not isinstance(value, dict):
        return "it is no mapping"
    missing = [f.name for f in kind.fields if f.name not in value and not f.has_default]
    if missing:
        return f"field {missing[0]} is missing in it"
    found = (unfit_default(value[f.name], f.type) for f in kind.fields if f.name in value)
    return next(filter(None, found), "")
