"""What the encodings of all targets have in common, in Spark's expressions. Only a driver loads it."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from airflow_provider_sinks.connectors import rows
from airflow_provider_sinks.core.query.analysis import INTERNAL

_MOMENT = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
_TO_JSON = {
    "timestampFormat": _MOMENT + "[XXX]",
    "timestampNTZFormat": _MOMENT,
}
"""Microseconds are what Spark's timestamps have; by itself it writes milliseconds, and drops the rest."""


def named(name: str) -> Column:
    """Return the column of a name, whatever characters it has."""
    return sql.col(quoted(name))


def quoted(name: str) -> str:
    """Return a name as SQL has it, whatever characters it has."""
    return f"`{name.replace('`', '``')}`"


def own_columns(output: DataFrame) -> list[str]:
    """Return the names of a query's own columns, without the source columns behind them."""
    return [name for name in output.columns if not name.startswith(INTERNAL)]


def is_there(output: DataFrame) -> Column:
    """Tell whether a row is written, as far as its source says: its record is one, and takes no key away."""
    parsed = sql.col(rows.ERROR).isNull()
    return parsed & ~sql.col(rows.DELETED) if rows.DELETED in output.columns else parsed


def coordinates(output: DataFrame, error: Column) -> list[Column]:
    """Return the columns in front of those of a target, with another error."""
    deleted = [rows.DELETED] if rows.DELETED in output.columns else []
    return [*unquoted([rows.PARTITION, rows.OFFSET]), error.alias(rows.ERROR), *unquoted(deleted)]


def unquoted(names: Iterable[str]) -> list[Column]:
    """Return columns by names that need no quotes."""
    return [sql.col(name) for name in names]


def as_json(value: Column, *, without_nulls: bool = False) -> Column:
    """Return a struct, array or map as JSON text, with every field and every digit of a timestamp.

    :param without_nulls: leave out the fields of structs that are null.
    """
    return sql.to_json(value, {**_TO_JSON, "ignoreNullFields": str(without_nulls).lower()})
