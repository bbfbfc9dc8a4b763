"""Rows that are too large, or too many, for where they go: they stay in the JVM, and a mark goes instead.

Expressions are written as SQL: each that is built in Python is a call of the JVM, and there would be hundreds
for each epoch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from pyspark.sql import DataFrame

from airflow_provider_sinks.connectors import rows
from airflow_provider_sinks.connectors.encoding import quoted
from airflow_provider_sinks.streaming.measured_input import LARGE

_SIZED = re.compile("string|binary|variant|array<|map<|struct<")
_PLAIN = ("string", "binary")
COUNTING = "monotonically_increasing_id"
"""The function that gives the rows of each task growing numbers; no query may call it."""
_NUMBER = "__sinks_row"
_OF_TASK = (1 << 33) - 1
"""The bits of Spark's growing numbers that count the rows of a task."""


def are_plain(frame: DataFrame) -> bool:
    """Whether the size of a row is cheap to tell: none of its columns has parts."""
    return all(kind in _PLAIN for kind in _sized(frame).values())


def marked(
    frame: DataFrame, row_bytes_max: int, rows_each: int | None = None, *, behind: Sequence[str] = ()
) -> DataFrame:
    """Return rows with :data:`.measured_input.LARGE` behind their columns, and large ones without contents.

    :param row_bytes_max: what the texts and bytes of a row may have at most.
    :param rows_each: how many rows of a task there may be; the next one is marked too, and those behind it
        are left out.
    :param behind: more columns, behind that one.
    """
    sized, names = _sized(frame), frame.columns
    is_large = f"{' + '.join(_lengths(sized)) or '0'} > {row_bytes_max}"
    if rows_each is not None:
        frame = frame.selectExpr("*", f"{COUNTING}() & {_OF_TASK} AS {_NUMBER}")
        frame = frame.where(f"{_NUMBER} <= {rows_each}")
        is_large = f"{is_large} OR {_NUMBER} = {rows_each}"
    contents = {name: f"CASE WHEN NOT {LARGE} THEN {quoted(name)} END AS {quoted(name)}" for name in sized}
    columns = [contents.get(name, quoted(name)) for name in names]
    return frame.selectExpr("*", f"{is_large} AS {LARGE}").selectExpr(*columns, LARGE, *behind)


def in_steps(number: int) -> int:
    """Return a bound for :func:`marked`, rounded down to one of few, by a third at most.

    It stands in the code that Spark makes of an epoch's plan. Code that is new is compiled, and begins slow;
    the next epoch has another number of records, and must not have new code for that.
    """
    bits = max(0, number.bit_length() - 2)
    return number >> bits << bits


def _sized(frame: DataFrame) -> dict[str, str]:
    return {name: kind for name, kind in frame.dtypes if _SIZED.match(kind) and name != rows.ERROR}


def _lengths(sized: Mapping[str, str]) -> Iterator[str]:
    """Give how many bytes each value has; of one that has parts, as text."""
    for name, kind in sized.items():
        value = quoted(name) if kind in _PLAIN else f"CAST({quoted(name)} AS STRING)"
        yield f"coalesce(octet_length({value}), 0)"
