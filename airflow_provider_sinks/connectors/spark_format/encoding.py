"""From a query's rows to those that Spark's writer takes, in Spark's expressions; only a driver loads it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from airflow_provider_sinks.connectors import rows
from airflow_provider_sinks.connectors.encoding import named, own_columns
from airflow_provider_sinks.connectors.spark_format.formats import SparkFormat
from airflow_provider_sinks.core.errors import ConfigurationError, Problem, nearest

_UNPARSED: Final = "__sinks_unparsed"
_TOLD = re.compile(rf"{_UNPARSED} (?P<where>\S+ \S+) (?P<why>[^\n]*?)(?: SQLSTATE: \w+)?\s*(?:\n|$)")


def checked_rows(output: DataFrame) -> DataFrame:
    """Return the query's own columns; the first row that did not parse fails the job that meets it."""
    error = named(rows.ERROR)
    unparsed = sql.concat_ws(" ", sql.lit(_UNPARSED), named(rows.PARTITION), named(rows.OFFSET), error)
    parsed = sql.when(error.isNull(), True).otherwise(sql.raise_error(unparsed).cast("boolean"))
    return output.where(parsed).select(*map(named, own_columns(output)))


def unparsed_record(error: BaseException, sink: str, topic: str) -> ConfigurationError | None:
    """Return what to say where a job failed because a record did not parse, or nothing."""
    found = _TOLD.search(str(error))
    if found is None:
        return None
    partition, _, offset = found["where"].partition(" ")
    return ConfigurationError(
        f'sink "{sink}" read a record that does not parse: '
        f"Record {topic}/{partition} at offset {offset}: {found['why']}",
        (),
        "Mend the schema, or read format text or bytes and parse it in the query: Spark's own writers set "
        "nothing aside.",
    )


def demand_writable(output: DataFrame, kind: SparkFormat) -> None:
    """See that a format has a form for the columns of a query.

    :raises ConfigurationError: it has none.
    """
    types = {name: output.schema[name].dataType for name in own_columns(output)}
    if kind.name == "text" and [one.simpleString() for one in types.values()] != ["string"]:
        given = ", ".join(f"{name} {one.simpleString()}" for name, one in types.items())
        problem = Problem("query", f"gives {given}", "to_json(struct(*)) AS value, or concat_ws of columns")
        raise ConfigurationError("format text takes one column of type string", [problem])
    nested = [name for name, one in types.items() if one.typeName() in ("struct", "array", "map", "variant")]
    if kind.name == "csv" and nested:
        problem = Problem(
            "query", f"column {nested[0]!r} is of type {types[nested[0]].simpleString()}", "to_json"
        )
        raise ConfigurationError("format csv takes no nested columns", [problem])


def demand_columns(output: DataFrame, table: str, there: Mapping[str, Any]) -> None:
    """See that a table has all columns of a query.

    :raises ConfigurationError: with those that it has not.
    """
    problems = [
        Problem(name, f'table "{table}" has no such column', nearest(name, there))
        for name in own_columns(output)
        if name not in there
    ]
    if problems and there:
        raise ConfigurationError(f'the query does not fit table "{table}"', problems)
