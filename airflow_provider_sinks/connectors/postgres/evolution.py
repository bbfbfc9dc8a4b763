"""What makes a table fit a query: columns to add, types to widen. Pure: types in, steps out.

A column is widened to a type that holds each value of its own and each that the query can give. For a text
with a length that is ``text``: Spark's texts have none. What must stay is left to :mod:`.fit` to refuse.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from psycopg import sql

from airflow_provider_sinks.connectors.postgres.creation import identifier
from airflow_provider_sinks.connectors.postgres.fit import obstacle, problems_of, written
from airflow_provider_sinks.connectors.postgres.layout import Layout
from airflow_provider_sinks.connectors.postgres.spec import PostgresTarget
from airflow_provider_sinks.connectors.postgres.types import (
    Column,
    Conversion,
    conversion,
    created,
)
from airflow_provider_sinks.connectors.table_format.types import digits_of, more_digits
from airflow_provider_sinks.core.evolution import (
    AddColumn,
    Compatible,
    NeedsMigration,
    OnSchemaChange,
    SchemaDiff,
    Step,
    WidenColumn,
    incompatible,
)

_WIDER: Mapping[str, tuple[str, ...]] = {
    "smallint": ("integer", "bigint"),
    "integer": ("bigint",),
    "real": ("double precision",),
}
_KIND = "postgres"


def compare(given: Mapping[str, str], target: PostgresTarget, table: Layout) -> SchemaDiff:
    """Compare the query's columns with the table's.

    :param given: Spark's types by column.
    """
    steps = tuple(_allowed(given, target, table, target.may_change))
    if problems := problems_of(given, target, evolved(table, steps)):
        possible = tuple(_allowed(given, target, table, OnSchemaChange.WIDEN))
        left = [step for step in possible if step not in steps]
        return incompatible(_KIND, target.table, target.may_change, problems, left=left)
    if not steps:
        return Compatible()
    texts = tuple(statement(target.table, step, table).as_string(None) for step in steps)
    return NeedsMigration(target.table, steps, texts)


def evolved(table: Layout, steps: Sequence[Step]) -> Layout:
    """Return a table as it is behind some steps."""
    columns = dict(table.columns)
    for step in steps:
        match step:
            case AddColumn():
                columns[step.name] = Column(step.name, step.kind, step.kind.partition("(")[0])
            case WidenColumn():
                columns[step.name] = _of_type(columns[step.name], step.after)
            case other:
                assert_never(other)
    return replace(table, columns=columns)


def widened(given: str, column: Column) -> str | None:
    """Return the type to which a column is widened for a query, or ``None`` where it stays, or must stay.

    :param given: Spark's type.
    """
    if column.is_fixed or column.is_generated or column.kind != (column.exact or column.kind):
        return None  # a domain has rules of its own
    if column.base == "character varying" and column.kind != column.base:
        return "text" if conversion(given, column) in (Conversion.NONE, Conversion.CAST) else None
    if conversion(given, column) not in (Conversion.CHECKED, Conversion.REFUSED):
        return None
    wider = (*_WIDER.get(column.base, ()), *_with_more_digits(given, column))
    return next((kind for kind in wider if _takes_all(given, _of_type(column, kind))), None)


def is_done(step: Step, table: Layout) -> bool:
    """Return whether a table has what a step gives it."""
    column = table.columns.get(step.name)
    match step:
        case AddColumn():
            return column is not None and column.kind == step.kind
        case WidenColumn():
            return column is not None and column.kind == step.after
        case other:
            assert_never(other)


def may_begin(step: Step, table: Layout) -> bool:
    """Return whether a table still is as it was when a step was decided."""
    column = table.columns.get(step.name)
    match step:
        case AddColumn():
            return column is None
        case WidenColumn():
            return column is not None and column.kind == step.before
        case other:
            assert_never(other)


def statement(name: str, step: Step, table: Layout) -> sql.Composed:
    """Return the SQL of a step. The types are Postgres's own words, everything else is quoted."""
    parts = {"table": identifier(name), "column": sql.Identifier(step.name)}
    match step:
        case AddColumn():
            kind = sql.SQL(step.kind)
            return sql.SQL("ALTER TABLE {table} ADD COLUMN {column} {kind} NULL").format(**parts, kind=kind)
        case WidenColumn():
            kind = sql.SQL(step.after + _collation(table.columns[step.name]))
            text = "ALTER TABLE {table} ALTER COLUMN {column} TYPE {kind}"
            return sql.SQL(text).format(**parts, kind=kind)
        case other:
            assert_never(other)


def _allowed(
    given: Mapping[str, str], target: PostgresTarget, table: Layout, policy: OnSchemaChange
) -> Iterator[Step]:
    """Give the steps that a policy lets a start do. A key is what tells rows apart: it stays as it is."""
    for name in written(list(given), target):
        if name not in given or name in target.key:
            continue
        column, kind = table.columns.get(name), created(given[name])
        if column is None:
            if policy.adds and kind is not None and obstacle(name, given, target, table) is None:
                yield AddColumn(name, kind, given[name])
        elif policy.widens and (after := widened(given[name], column)) is not None:
            yield WidenColumn(name, column.kind, after)


def _with_more_digits(given: str, column: Column) -> Iterator[str]:
    if column.digits is not None and (digits := more_digits(given, column.digits)) is not None:
        yield f"numeric({digits[0]},{digits[1]})"


def _takes_all(given: str, column: Column) -> bool:
    if digits := column.digits:
        new = digits_of(given)
        return new is not None and digits[0] - digits[1] >= new[0] - new[1]
    return conversion(given, column) in (Conversion.NONE, Conversion.CAST)


def _of_type(column: Column, kind: str) -> Column:
    return replace(column, kind=kind, base=kind.partition("(")[0], exact=kind, plain="")


def _collation(column: Column) -> str:
    """Return what keeps the collation of a text: a new type would have the database's own."""
    return f" COLLATE {column.collation}" if column.collation else ""
