"""Do the columns of a query fit a table? What holds for every format; each adds its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from airflow_provider_sinks.connectors.table_format.types import (
    NOT_EQUAL_TO_ITSELF,
    Column,
    Conversion,
    SparkType,
    conversion,
    spark_kind,
)
from airflow_provider_sinks.core.errors import Problem, nearest

_ANOTHER_TYPE = "CAST it in the query"


def written(given: Sequence[str], columns: Sequence[str] | None) -> tuple[str, ...]:
    """Return the columns that are written.

    :param given: those of the query.
    :param columns: those that the spec names, if it does.
    """
    return tuple(given) if columns is None else tuple(columns)


def missing_in_query(given: Mapping[str, SparkType], named: Mapping[str, Sequence[str]]) -> Iterator[Problem]:
    """Say which columns the query does not give.

    :param named: columns by the option that names them.
    """
    for option, names in named.items():
        for name in names:
            if name not in given:
                hint = nearest(name, given) or f"it has {', '.join(given)}"
                yield Problem(option, f"column {name!r} is not in the query", hint)


def missing_in_table(names: Sequence[str], table: Mapping[str, Column]) -> Iterator[Problem]:
    """Say which columns the table does not have, and which it must be given.

    :param names: those that are written.
    """
    for name in names:
        if name not in table:
            hint = nearest(name, table) or "ALTER TABLE ... ADD COLUMN, or name the `columns` to write"
            yield Problem(f"column {name!r}", "is not in the table", hint)
    for name, column in table.items():
        if column.is_required and name not in names:
            yield Problem(f"column {name!r}", "takes no null, and the query does not give it")


def of_type(given: SparkType, column: Column) -> Problem | None:
    """Say what is wrong with the type that a query gives for a column; nothing where it goes into it."""
    kind = spark_kind(given)
    if column.kind and conversion(kind, column.kind) is not Conversion.REFUSED:
        return None
    wanted = f"CAST({column.name} AS {column.kind})" if column.kind and "<" not in column.kind else ""
    what = f"is {column.shown}, and the query gives {kind}"
    return Problem(f"column {column.name!r}", what, wanted or _ANOTHER_TYPE)


def of_key_types(option: str, key: Sequence[str], table: Mapping[str, Column]) -> Iterator[Problem]:
    """Say which columns of a key have types of which no two values need be equal.

    :param option: that names the key.
    """
    for name in key:
        column = table.get(name)
        if column is not None and ("<" in column.kind or column.kind in NOT_EQUAL_TO_ITSELF):
            yield Problem(option, f"column {name!r} is {column.shown}: no rows are equal by it")
