"""Rows that are too large for where they go: their contents stay in the JVM, and a mark goes instead."""

from __future__ import annotations

import re

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from airflow_provider_sinks.connectors import rows
from airflow_provider_sinks.connectors.encoding import named
from airflow_provider_sinks.streaming.measured_input import LARGE

_SIZED = re.compile("string|binary|variant|array<|map<|struct<")
_PLAIN = ("string", "binary")


def are_plain(frame: DataFrame) -> bool:
    """Whether the size of a row is cheap to tell: none of its columns has parts."""
    return all(kind in _PLAIN for kind in _sized(frame).values())


def marked(frame: DataFrame, row_bytes_max: int) -> DataFrame:
    """Return rows with :data:`.measured_input.LARGE` behind their columns, and large ones without contents.

    :param row_bytes_max: what the texts and bytes of a row may have at most.
    """
    sized = _sized(frame)
    size = sum((sql.coalesce(_length(name, kind), sql.lit(0)) for name, kind in sized.items()), sql.lit(0))
    judged = frame.withColumn(LARGE, size > row_bytes_max)
    contents = {name: sql.when(~sql.col(LARGE), named(name)).alias(name) for name in sized}
    return judged.select(*(contents.get(name, named(name)) for name in frame.columns), LARGE)


def _sized(frame: DataFrame) -> dict[str, str]:
    return {name: kind for name, kind in frame.dtypes if _SIZED.match(kind) and name != rows.ERROR}


def _length(name: str, kind: str) -> Column:
    """Return how many bytes a value has; of one that has parts, as text."""
    return sql.octet_length(named(name) if kind in _PLAIN else named(name).cast("string"))
