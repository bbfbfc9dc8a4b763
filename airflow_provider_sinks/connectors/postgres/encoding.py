"""From a query's rows to the exact types of a table, in Spark's expressions: it runs in the JVM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from airflow_provider_sinks.connectors import rows
from airflow_provider_sinks.connectors.encoding import as_json, coordinates, is_there, named, unquoted
from airflow_provider_sinks.connectors.laid_columns import LaidColumns
from airflow_provider_sinks.connectors.postgres.types import Column as TableColumn
from airflow_provider_sinks.connectors.postgres.types import Conversion, conversion
from airflow_provider_sinks.core.query.analysis import INTERNAL


def types_of(output: DataFrame) -> dict[str, str]:
    """Return Spark's types of a query's own columns."""
    return {name: kind for name, kind in output.dtypes if not name.startswith(INTERNAL)}


def encode(
    output: DataFrame, columns: Mapping[str, TableColumn], key: Sequence[str], *, keeps_raw: bool
) -> LaidColumns:
    """Return source columns, then the table's, for the rows of a query.

    A value that no cast makes fit, and a key that is null, is the error of its row. Of a row that takes its
    key away nothing but the key is looked at, and passed on.

    :param columns: those to write, which fit the query (:mod:`.fit`).
    :param key: rows of one key replace each other.
    :param keeps_raw: the source records are kept, because rows may be set aside.
    """
    given = types_of(output)
    is_good, counts = sql.col(rows.ERROR).isNull(), is_there(output)
    found = [
        sql.when(counts, error) if rows.DELETED in output.columns and name not in key else error
        for name, column in columns.items()
        if (error := _misfit(given[name], column)) is not None
    ]
    found += [_null_key(name) for name in key]
    error = sql.coalesce(rows.ERROR, *found) if found else sql.col(rows.ERROR)
    values = [
        sql.when(is_good if name in key else counts, _value(given[name], column)).alias(name)
        for name, column in columns.items()
    ]
    raw = unquoted(rows.RAW) if keeps_raw else ()
    return LaidColumns((), (*coordinates(output, error), *values, *raw))


def _value(given: str, column: TableColumn) -> Column:
    source = named(column.name)
    match conversion(given, column):
        case Conversion.NONE:
            return source
        case Conversion.JSON:
            return as_json(source)
        case Conversion.CAST:
            return source.cast(column.spark)
        case Conversion.CHECKED:
            return source.try_cast(_target(given, column))
        case Conversion.REFUSED:
            raise AssertionError(f"{given} does not become {column.kind}")  # fit.py has refused it


def _misfit(given: str, column: TableColumn) -> Column | None:
    if conversion(given, column) is not Conversion.CHECKED:
        return None
    source = named(column.name)
    what = sql.concat(
        sql.lit(f"column {column.name}: "), source.cast("string"), sql.lit(f" does not fit {column.kind}")
    )
    does_not_fit = source.isNotNull() & source.try_cast(_target(given, column)).isNull()
    return sql.when(does_not_fit, what)


def _target(given: str, column: TableColumn) -> str:
    """Return the type to cast to; a numeric without digits takes any whole number."""
    return "decimal(38,0)" if column.spark == "decimal" and not given.startswith("decimal") else column.spark


def _null_key(name: str) -> Column:
    return sql.when(named(name).isNull(), sql.lit(f"key column {name} is null"))
