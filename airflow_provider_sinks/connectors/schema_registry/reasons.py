"""Why a value does not fit a schema: one text, or null where it fits, in Spark's expressions.

Each value is asked for once and each schema's place gives one expression, however deep it lies: what is asked
inside of an array is asked in one function of its items. Only a driver loads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from pyspark.sql import Column
from pyspark.sql import functions as sql

Guard = tuple[Column, str]
"""When a value is not taken, and what to say then."""


def told(guards: Iterable[Guard]) -> Iterator[Column]:
    """Give what to say of each guard that does not hold."""
    return (sql.when(wrong, sql.lit(why)) for wrong, why in guards)


def first(reasons: Iterable[Column]) -> Column:
    """Return the first of them that says something, or null."""
    return sql.coalesce(*reasons, sql.lit(None).cast("string"))


def of_fields(value: Column, reasons: Iterable[Column]) -> Iterator[Column]:
    """Give what is said of the fields of a struct, where there is one."""
    found = [*reasons]
    if found:
        yield sql.when(value.isNotNull(), first(found))


def of_items(values: Column, of_item: Callable[[Column], Iterator[Column]]) -> Iterator[Column]:
    """Give what is said of the first item that does not fit."""
    found: list[Column] = []

    def said(item: Column) -> Column:
        found.extend(of_item(item))
        return first(found)

    judged = sql.filter(sql.transform(values, said), lambda reason: reason.isNotNull())
    if found:
        yield sql.get(judged, sql.lit(0))
