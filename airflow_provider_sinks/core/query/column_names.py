"""Whether the relations of a flat query have the columns that it names.

Only one SELECT from the source and lookups is judged, and only where the columns of a relation are known.
What is missed here is found by Spark, which analyses every query before the job makes a topic.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_sinks.core.errors import Problem, nearest
from airflow_provider_sinks.core.query.clauses import Clauses, relation
from airflow_provider_sinks.core.query.functions import TIME_WINDOWS
from airflow_provider_sinks.core.query.views import SOURCE

if TYPE_CHECKING:
    from sqlglot import exp

_CONSTANTS = frozenset({"current_date", "current_time", "current_timestamp", "localtimestamp"})
"""What Spark takes for a function where no column has that name."""
_UNITS = frozenset(
    {"year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond"}
)
_GENERATED = frozenset({"col", "key", "value", "pos"})
"""How the columns of a generator are named where the query gives them no names."""


@dataclass(frozen=True)
class _Scope:
    """What a query may name.

    :param relations: their columns by alias, in lower case; None where they are not known.
    :param made: names that the query itself makes: aliases, and columns of generators.
    """

    relations: Mapping[str, tuple[str, ...] | None]
    made: frozenset[str]

    @property
    def is_known(self) -> bool:
        """Every column of every relation is known."""
        return None not in self.relations.values()

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that are known, in their order."""
        found = [name for names in self.relations.values() for name in names or ()]
        return tuple(dict.fromkeys(found))


def column_problems(
    tree: exp.Query, clauses: Clauses | None, tables: Mapping[str, tuple[str, ...] | None]
) -> Iterator[Problem]:
    """Give the columns that no relation has, with the nearest one that there is.

    :param tables: columns of the source and of each lookup, by the lower-case name; None: not known.
    """
    from sqlglot import exp

    if clauses is None or not isinstance(tree, exp.Select) or (scope := _scope(tree, tables)) is None:
        return
    said = set()
    for column in tree.find_all(exp.Column):
        problem = _judged(column, scope)
        if problem is not None and problem.what not in said:
            said.add(problem.what)
            place = column.parts[-1].meta.get("start", 0)
            yield Problem(clauses.place_of(place), problem.what, problem.hint)
    yield from _using_problems(tree, scope, tables[SOURCE])


def _scope(select: exp.Select, tables: Mapping[str, tuple[str, ...] | None]) -> _Scope | None:
    """Return what a query may name, or None where that is not to be told."""
    from sqlglot import exp

    if sum(1 for _ in select.find_all(exp.Query)) > 1 or select.args.get("pivots"):
        return None
    relations = {}
    for table in select.find_all(exp.Table):
        if table.find_ancestor(exp.Hint) is not None:
            continue
        found = relation(table)
        if found.renames or found.name.lower() not in tables:
            return None
        relations[found.alias.lower()] = tables[found.name.lower()]
    return _Scope(relations, frozenset(_made(select)))


def _made(select: exp.Select) -> Iterator[str]:
    from sqlglot import exp

    yield from _CONSTANTS
    yield from TIME_WINDOWS
    for alias in select.find_all(exp.Alias):
        yield alias.alias.lower()
    for aliases in select.find_all(exp.Aliases):
        yield from (name.name.lower() for name in aliases.expressions)
    for lateral in select.args.get("laterals") or ():
        yield from _GENERATED
        table = lateral.args.get("alias")
        if table is not None:
            yield table.name.lower()
            yield from (name.name.lower() for name in table.args.get("columns") or ())


def _judged(column: exp.Column, scope: _Scope) -> Problem | None:
    from sqlglot import exp

    parts = [part.name for part in column.parts]
    first = parts[0].lower()
    is_unit = isinstance(column.parent, exp.Anonymous) and first in _UNITS
    if is_unit or column.find_ancestor(exp.Hint) is not None or first in _parameters(column):
        return None
    if len(parts) > 1 and first in scope.relations:
        columns = scope.relations[first]
        if column.is_star or columns is None or parts[1].lower() in _lower(columns):
            return None
        return _no_column(parts[1], parts[0], columns)
    if column.is_star or first in scope.made or not scope.is_known or first in _lower(scope.columns):
        return None
    whose = SOURCE if len(scope.relations) == 1 else f"{', '.join(scope.relations)}"
    return _no_column(parts[0], whose, scope.columns)


def _using_problems(select: exp.Select, scope: _Scope, source: tuple[str, ...] | None) -> Iterator[Problem]:
    for join in select.args.get("joins") or ():
        for identifier in join.args.get("using") or ():
            known = source if len(scope.relations) == 2 else None  # with more, an earlier lookup may have it
            if known is not None and identifier.name.lower() not in _lower(known):
                problem = _no_column(identifier.name, SOURCE, known)
                yield Problem("", f"USING: {problem.what}", problem.hint)


def _no_column(name: str, whose: str, columns: tuple[str, ...]) -> Problem:
    hint = nearest(name, columns) or f"columns: {', '.join(columns)}"
    return Problem("", f"{name!r} is no column of {whose}", hint)


def _parameters(node: exp.Expr) -> set[str]:
    """Return the parameters of the functions, such as ``x -> x + 1``, that a node stands in."""
    from sqlglot import exp

    found: set[str] = set()
    while (parent := node.find_ancestor(exp.Lambda)) is not None:
        found |= {parameter.name.lower() for parameter in parent.expressions}
        node = parent
    return found


def _lower(names: tuple[str, ...]) -> set[str]:
    return {name.lower() for name in names}
