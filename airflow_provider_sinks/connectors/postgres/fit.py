"""Do the columns of a query fit the table? All that does not is told at once, before anything is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from airflow_provider_sinks.connectors.postgres.fitness import UNBIND, elsewhere
from airflow_provider_sinks.connectors.postgres.layout import Layout
from airflow_provider_sinks.connectors.postgres.spec import PostgresTarget
from airflow_provider_sinks.connectors.postgres.types import Column, Conversion, conversion, created
from airflow_provider_sinks.connectors.postgres.unique_indexes import UniqueIndex, key_obstacle
from airflow_provider_sinks.core.errors import ConfigurationError, Problem, nearest
from airflow_provider_sinks.core.evolution import never_added, of_case
from airflow_provider_sinks.core.spec.fields import LONGEST_POSTGRES_NAME_BYTES
from airflow_provider_sinks.core.spec.parts import Tombstones

_OPTION = "target.postgres"
_ANOTHER_TYPE = "CAST it in the query"
_ANOTHER_NAME = "give it another name in the query, with AS"
_OF_THE_SYSTEM = frozenset({"cmax", "cmin", "ctid", "tableoid", "xmax", "xmin"})


def written(given: Sequence[str], target: PostgresTarget) -> tuple[str, ...]:
    """Return the columns that are written.

    :param given: those of the query.
    """
    return tuple(given) if target.columns is None else target.columns


def new_table(given: Mapping[str, str], target: PostgresTarget) -> Layout:
    """Return the table as it will be made from the types of a query.

    :param given: Spark's types by column.
    :raises ConfigurationError: there is no such table.
    """
    names = written(list(given), target)
    problems = [*_missing_in_query(given, target)]
    kinds = {name: created(given[name]) for name in names if name in given}
    problems += [
        Problem(f"column {name!r}", *why)
        for name in kinds
        if (why := _no_column(name, given[name])) is not None
    ]
    if problems:
        raise ConfigurationError(f'table "{target.table}" cannot be made from the query', problems)
    columns = {name: _column(name, kind) for name, kind in kinds.items() if kind is not None}
    return Layout(columns, (UniqueIndex("", frozenset(target.key)),) if target.key else ())


def demand_named(given: Mapping[str, str], target: PostgresTarget) -> None:
    """See that the query gives the columns that the spec names.

    :raises ConfigurationError: with all problems.
    """
    if problems := list(_missing_in_query(given, target)):
        raise ConfigurationError(f'table "{target.table}" does not fit the query', problems)


def problems_of(given: Mapping[str, str], target: PostgresTarget, table: Layout) -> list[Problem]:
    """Compare the query's columns with the table's, and return all that does not fit.

    :param given: Spark's types by column.
    """
    problems = [*_missing_in_query(given, target), *_missing_in_table(given, target, table)]
    for name in written(list(given), target):
        if name in given and name in table.columns:
            problems += _of_column(given[name], table.columns[name])
    return [*problems, *_of_table(target, table)]


def demand_fit(given: Mapping[str, str], target: PostgresTarget, table: Layout) -> None:
    """Compare the query's columns with the table's, as it is.

    :param given: Spark's types by column.
    :raises ConfigurationError: with all problems.
    """
    if problems := problems_of(given, target, table):
        raise ConfigurationError(f'table "{target.table}" does not fit the query', problems)


def obstacle(name: str, given: Mapping[str, str], target: PostgresTarget, table: Layout) -> Problem | None:
    """Return why a column that the table lacks cannot be added to it; nothing where it can.

    :param given: Spark's types by column.
    """
    if (why := _no_column(name, given[name])) is not None:
        return never_added(name, *why)
    if (below := table.below.get(name)) not in (None, created(given[name])):
        return never_added(name, f"what inherits from the table has one of {below}", _ANOTHER_NAME)
    if table.ruled_by:
        what = "COLUMN" if table.ruled_by.startswith("TABLE ") else "ATTRIBUTE"
        hint = f"ALTER {table.ruled_by} ADD {what} ..., or name the `columns` to write"
        return never_added(name, f"the table has just the columns of {table.ruled_by}", hint)
    return of_case(name, [*table.columns, *written(list(given), target)])


def _no_column(name: str, kind: str) -> tuple[str, str] | None:
    """Return why no table has a column of this name and type, and what helps."""
    if name in _OF_THE_SYSTEM:
        return "each table of Postgres has one of this name, which Postgres alone writes", _ANOTHER_NAME
    if (length := len(name.encode())) > LONGEST_POSTGRES_NAME_BYTES:
        why = f"its name has {length} bytes, and Postgres cuts names off at {LONGEST_POSTGRES_NAME_BYTES}"
        return why, _ANOTHER_NAME
    return None if created(kind) else (f"Postgres has no type for Spark's {kind}", _ANOTHER_TYPE)


def _column(name: str, kind: str) -> Column:
    return Column(name, kind, kind.partition("(")[0])


def _missing_in_query(given: Mapping[str, str], target: PostgresTarget) -> Iterator[Problem]:
    for option, names in (("columns", target.columns or ()), ("key", target.key)):
        for name in names:
            if name not in given:
                hint = nearest(name, given) or f"it has {', '.join(given)}"
                yield Problem(f"{_OPTION}.{option}", f"column {name!r} is not in the query", hint)


def _missing_in_table(given: Mapping[str, str], target: PostgresTarget, table: Layout) -> Iterator[Problem]:
    names = written(list(given), target)
    for name in names:
        if name in table.columns:
            continue
        if name in given and (problem := obstacle(name, given, target, table)) is not None:
            yield problem
        else:
            hint = nearest(name, table.columns) or "ALTER TABLE, or name the `columns` to write"
            yield Problem(f"column {name!r}", "is not in the table", hint)
    for name, column in table.columns.items():
        if column.is_required and name not in names:
            yield Problem(f"column {name!r}", "takes no null, has no default, and the query does not give it")


def _of_column(given: str, column: Column) -> Iterator[Problem]:
    if column.is_generated:
        yield Problem(f"column {column.name!r}", "is generated by Postgres", "leave it out of the query")
    elif conversion(given, column) is Conversion.REFUSED:
        what = f"is {column.kind}, and the query gives {given}"
        yield Problem(f"column {column.name!r}", what, _ANOTHER_TYPE)


def _of_table(target: PostgresTarget, table: Layout) -> Iterator[Problem]:
    obstacle = key_obstacle(target.table, target.key, table.indexes) if target.key else None
    if obstacle is not None:
        yield Problem(f"{_OPTION}.key", obstacle.what, obstacle.repair)
    if table.has_row_security:
        yield Problem(_OPTION, "row-level security is active for this login: COPY refuses it", UNBIND)
    if table.is_unlogged:
        hint = f"ALTER TABLE {target.table} SET LOGGED"
        yield Problem(_OPTION, "the table is unlogged: a crash of the server empties it", hint)
    if part := table.unlogged_partition:
        hint = f"ALTER TABLE {part} SET LOGGED"
        yield Problem(_OPTION, f"partition {part} is unlogged: a crash of the server empties it", hint)
    if part := table.foreign_partition:
        why, hint = elsewhere(target.table, part)
        yield Problem(_OPTION, f"partition {part} is on another server: {why}", hint)
    yield from _of_rules(target, table)


def _of_rules(target: PostgresTarget, table: Layout) -> Iterator[Problem]:
    """Find rules that one of our statements follows and another does not."""
    for rule, event in table.rules.items():
        hint = f"DROP RULE {rule} ON {target.table}; a trigger is followed by all"
        if target.key and (event != "DELETE" or target.tombstones is Tombstones.DELETE):
            yield Problem(_OPTION, f"rule {rule} acts on {event}: no upsert goes with it", hint)
        elif not target.key and event == "INSERT":
            what = f"rule {rule} acts on INSERT: COPY passes it by, and the search for bad rows follows it"
            yield Problem(_OPTION, what, hint)
