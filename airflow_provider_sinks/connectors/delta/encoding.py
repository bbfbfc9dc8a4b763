"""A query's rows as a table demands them: computed columns, and what breaks a rule as the error of its row.

It runs in the JVM, as it does where Delta's own Spark writes.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import StructField

from airflow_provider_sinks.connectors import rows
from airflow_provider_sinks.connectors.delta.layout import Layout
from airflow_provider_sinks.connectors.encoding import is_there, named
from airflow_provider_sinks.connectors.table_format.encoding import as_column, types_of
from airflow_provider_sinks.core.query.analysis import INTERNAL


def ruled(output: DataFrame, names: Sequence[str], layout: Layout) -> DataFrame:
    """Return the rows with the types of the table, the columns that it computes, and errors.

    A rule sees a row as the table has it: a column that is not written is null, and a value has the type that
    it is stored with. A check that is null does not hold, as for Delta's own Spark.

    :param names: the columns that are written, which fit the table.
    """
    given, table, rules = types_of(output), layout.columns, layout.rules
    types = {
        field["name"]: StructField.fromJson(field).dataType
        for field in layout.fields
        if table[field["name"]].kind
    }
    computed = [name for name in rules.generated if name not in names]
    typed = {name: as_column(given[name], table[name]) for name in names}
    empty = {
        name: sql.lit(None).cast(kind) for name, kind in types.items() if name not in (*names, *computed)
    }
    internal = [name for name in output.columns if name.startswith(INTERNAL)]
    frame = output.select(*internal, *(value.alias(name) for name, value in {**typed, **empty}.items()))

    def value(name: str) -> Column:
        return sql.expr(rules.generated[name]).cast(types[name])

    counts = is_there(frame)
    frame = frame.withColumns({name: sql.when(counts, value(name)) for name in computed})
    broken = [
        *(_unless(sql.expr(check), f"{name} does not hold: {check}") for name, check in rules.checks.items()),
        *(
            _unless(named(name).eqNullSafe(value(name)), f"column {name} is not {rules.generated[name]}")
            for name in rules.generated
            if name in names
        ),
    ]
    error = sql.coalesce(rows.ERROR, *(sql.when(counts, one) for one in broken))
    return frame.withColumn(rows.ERROR, error)


def _unless(holds: Column, error: str) -> Column:
    return sql.when(~sql.coalesce(holds, sql.lit(False)), sql.lit(error))
