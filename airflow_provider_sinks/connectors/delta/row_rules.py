"""What a table demands of the values of each row: ``CHECK`` constraints, invariants, generated columns.

delta-rs checks none of it for files that it is handed, so Spark does, before the rows leave it
(:mod:`.encoding`). The expressions are Spark's SQL, and whoever may alter the table writes them: they may
call what a query may call, and nothing that reaches outside of the row.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from airflow_provider_sinks.connectors.delta.log import DeltaVersion
from airflow_provider_sinks.core.query.analysis import analyse, select_sql
from airflow_provider_sinks.core.query.sql import SqlError

CONSTRAINT: Final = "delta.constraints."
GENERATED: Final = "delta.generationExpression"
INVARIANTS: Final = "delta.invariants"


@dataclass(frozen=True)
class RowRules:
    """The rules of one table.

    :param checks: expressions that must be true, by what to call them.
    :param generated: expressions that columns have the value of, by column.
    """

    checks: Mapping[str, str] = field(default_factory=dict)
    generated: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, table: DeltaVersion) -> RowRules:
        """Return those of a table."""
        columns = {str(one["name"]): one.get("metadata") or {} for one in table.fields}
        checks = {
            f"constraint {key.removeprefix(CONSTRAINT)}": value
            for key, value in sorted(table.properties.items())
            if key.startswith(CONSTRAINT)
        }
        checks |= {
            f"invariant of column {name}": _invariant(metadata[INVARIANTS])
            for name, metadata in columns.items()
            if INVARIANTS in metadata
        }
        generated = {name: meta[GENERATED] for name, meta in columns.items() if GENERATED in meta}
        return cls(checks, generated)

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.checks or self.generated)

    def filled(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return columns that are written, with those that are computed."""
        return (*names, *(name for name in self.generated if name not in names))

    def expressions(self) -> Iterator[tuple[str, str]]:
        """Give each expression with what to call it."""
        yield from self.checks.items()
        yield from ((f"generated column {name}", expression) for name, expression in self.generated.items())


def obstacle(expression: str, columns: Sequence[str]) -> str:
    """Return why an expression is not computed here; nothing where it is.

    :param columns: of the table, of types that Spark has.
    """
    if not expression.strip() or expression.startswith("{"):
        return "it is no expression of SQL"
    try:
        shape = analyse(select_sql([f"({expression}\n) AS value"], None), (), columns)
    except SqlError as error:
        return str(error)
    if shape.generates or shape.obstacles:
        return "it is more than an expression of one row"
    problem = next(iter([*shape.problems, *shape.unknown_columns]), None)
    return "" if problem is None else problem.what


def _invariant(text: str) -> str:
    """Return the expression of an invariant; what is no SQL where it is of a form that is not known."""
    try:
        found: Any = json.loads(text)
        return str(found["expression"]["expression"])
    except (ValueError, TypeError, KeyError):
        return f"{{{text}}}"
