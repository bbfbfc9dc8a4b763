"""From a query's rows to the types of a table, in Spark's expressions: it runs in the JVM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from airflow_provider_sinks.connectors import rows
from airflow_provider_sinks.connectors.encoding import coordinates, is_there, named, unquoted
from airflow_provider_sinks.connectors.laid_columns import LaidColumns
from airflow_provider_sinks.connectors.table_format.types import Column as TableColumn
from airflow_provider_sinks.connectors.table_format.types import (
    Conversion,
    SparkType,
    conversion,
    spark_kind,
)
from airflow_provider_sinks.core.query.analysis import INTERNAL


def types_of(output: DataFrame) -> dict[str, SparkType]:
    """Return Spark's types of a query's own columns."""
    found = output.schema.jsonValue()["fields"]
    return {field["name"]: field["type"] for field in found if not field["name"].startswith(INTERNAL)}


def encode(
    output: DataFrame,
    columns: Mapping[str, TableColumn],
    key: Sequence[str],
    *,
    keeps_raw: bool,
    never_empty: Sequence[str] = (),
    common_years: Sequence[str] = (),
) -> LaidColumns:
    """Return source columns, then the table's, for the rows of a query.

    A null where the table, or the key, takes none is the error of its row. Of a row that takes its key away
    nothing but the key is looked at, and passed on.

    :param columns: those to write, which fit the query.
    :param key: rows of one key replace each other.
    :param never_empty: columns of text that cannot be told from null where they are empty.
    :param common_years: columns of dates that nobody could read beyond the years 1 to 9999.
    :param keeps_raw: the source records are kept, because rows may be set aside.
    """
    given = types_of(output)
    errors = [_null(name, "key column") for name in key]
    is_good, counts = sql.col(rows.ERROR).isNull(), is_there(output)
    required = [name for name, column in columns.items() if column.is_required and name not in key]
    nulls = [_null(name, "column") for name in required]
    errors += [sql.when(counts, null) for null in nulls] if rows.DELETED in output.columns else nulls
    errors += [_empty(name) for name in never_empty]
    errors += [_outside(name) for name in common_years]
    error = sql.coalesce(rows.ERROR, *errors) if errors else sql.col(rows.ERROR)
    values = [
        sql.when(is_good if name in key else counts, as_column(given[name], column)).alias(name)
        for name, column in columns.items()
    ]
    raw = unquoted(rows.RAW) if keeps_raw else ()
    return LaidColumns((), (*coordinates(output, error), *values, *raw))


def as_column(given: SparkType, column: TableColumn) -> Column:
    """Return a query's column with the type of the table's, which it fits."""
    source = named(column.name)
    if conversion(spark_kind(given), column.kind) is Conversion.NONE:
        return source
    return source.cast(column.kind)


def _null(name: str, what: str) -> Column:
    return sql.when(named(name).isNull(), sql.lit(f"{what} {name} is null"))


def _outside(name: str) -> Column:
    first, last = (sql.lit(day).cast("date") for day in ("0001-01-01", "9999-12-31"))
    return sql.when(
        ~named(name).cast("date").between(first, last),
        sql.lit(f"partition column {name} is beyond the years 1 to 9999, which no reader takes"),
    )


def _empty(name: str) -> Column:
    return sql.when(
        named(name) == "", sql.lit(f"partition column {name} is an empty text, which reads as null")
    )
