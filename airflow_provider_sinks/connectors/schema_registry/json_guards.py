"""What a JSON Schema says of a value beyond its type, in Spark's expressions: for reading and for writing.

Only a driver loads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as sql

from airflow_provider_sinks.connectors.schema_registry.reasons import Guard, of_fields, of_items, told
from airflow_provider_sinks.core.schemas.json_types import (
    NUMBER,
    ArrayOf,
    Bounds,
    JsonType,
    MapOf,
    Nullable,
    Object,
    Opaque,
    Scalar,
    known,
)

Judge = Callable[[Column, JsonType, str], Iterator[Guard]]
"""Gives what must not be of one value, and nothing of its parts."""


def reasons(value: Column, kind: JsonType, path: str, judge: Judge) -> Iterator[Column]:
    """Give why a value and its parts are not taken, in their order."""
    kind = known(kind)
    yield from told(judge(value, kind, path))
    match kind:
        case Object():
            fields = (
                reason
                for one in kind.properties
                for reason in reasons(value.getField(one.name), one.type, _below(path, one.name), judge)
            )
            yield from of_fields(value, fields)
        case ArrayOf():
            yield from of_items(value, lambda item: reasons(item, kind.items, f"{path}[]", judge))
        case MapOf():
            values = sql.map_values(value)
            yield from of_items(values, lambda item: reasons(item, kind.values, f"{path}[]", judge))
        case _:
            return


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def by_schema(value: Column, kind: JsonType, path: str) -> Iterator[Guard]:
    """Give what a schema says must not be of one value: null, a number, a length, a choice."""
    match kind:
        case Object():
            for one in kind.properties:
                if one.is_required and not one.may_be_null:
                    missing = value.isNotNull() & value.getField(one.name).isNull()
                    yield missing, f"field {_below(path, one.name)} is missing or null, and it is required"
        case ArrayOf():
            yield from _size_guards(sql.size(value), kind.bounds, path, "items")
            yield from _null_guards(value, kind.items, path)
        case MapOf():
            yield from _null_guards(sql.map_values(value), kind.values, path)
        case Scalar():
            yield from _scalar_guards(value, kind, path)
        case _:
            return


def _scalar_guards(value: Column, kind: Scalar, path: str) -> Iterator[Guard]:
    if kind.one_of is not None:
        chosen = [_literal(one) for one in kind.one_of]
        listed = ", ".join(map(str, kind.one_of))
        yield ~value.isin(*chosen) if chosen else value.isNotNull(), f"field {path} is none of {listed}"
    bounds = kind.bounds
    for limit, wrong, why in (
        (bounds.least, value.__lt__, "less than"),
        (bounds.most, value.__gt__, "more than"),
        (bounds.more_than, value.__le__, "not more than"),
        (bounds.less_than, value.__ge__, "not less than"),
    ):
        if limit is not None:
            yield wrong(_literal(limit)), f"field {path} is {why} {limit}"
    if bounds.step is not None:
        yield value % _literal(bounds.step) != 0, f"field {path} is no multiple of {bounds.step}"
    yield from _size_guards(sql.length(value), bounds, path, "characters")


def _literal(value: Any) -> Column:
    is_long = isinstance(value, int) and not -(2**63) <= value < 2**63
    return sql.lit(float(value) if is_long else value)


def _size_guards(size: Column, bounds: Bounds, path: str, what: str) -> Iterator[Guard]:
    if bounds.shortest:
        yield size < bounds.shortest, f"field {path} has fewer than {bounds.shortest} {what}"
    if bounds.longest is not None:
        yield size > bounds.longest, f"field {path} has more than {bounds.longest} {what}"


def _null_guards(values: Column, kind: JsonType, path: str) -> Iterator[Guard]:
    if not isinstance(kind, Nullable | Opaque):
        yield sql.exists(values, lambda one: one.isNull()), f"field {path}[] is null, and it never may be"


def no_number(value: Column, kind: JsonType, path: str) -> Iterator[Guard]:
    """Give that JSON has no number for a value: Spark would write a text such as ``"NaN"``."""
    if isinstance(kind, Scalar) and kind.kind == NUMBER and not kind.precision:
        number = value.cast("double")
        infinite = sql.abs(number) == sql.lit(float("inf"))
        yield sql.isnan(number) | infinite, f"field {path} is no number in JSON: NaN or infinite"
