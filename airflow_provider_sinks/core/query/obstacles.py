"""What keeps a query from being row-wise, clause by clause, and what no stream can run at all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_sinks.core.query.clauses import Clauses, relation
from airflow_provider_sinks.core.query.functions import (
    AGGREGATES,
    GENERATORS,
    ONE_ROW_GENERATORS,
    OTHER_GENERATORS,
    RANKINGS,
    TIME_WINDOWS,
)
from airflow_provider_sinks.core.query.sql import Statement
from airflow_provider_sinks.core.query.views import SOURCE

if TYPE_CHECKING:
    from sqlglot import exp

BROADCAST_HINTS = frozenset({"BROADCAST", "BROADCASTJOIN", "MAPJOIN"})
TEXT = "text"
MIXES = "one output row comes from many source rows"
MOVES = "rows would leave the partition that they came from"
SEES_OTHERS = "the result for a row depends on other rows"


@dataclass(frozen=True)
class Obstacle:
    """A clause that keeps a query from being row-wise.

    :param clause: the clause, as a user would write it.
    :param why: what it does that a row-wise query cannot have.
    :param on_stream: False if Spark cannot run it on a stream at all, with any kind of writer.
    """

    clause: str
    why: str
    on_stream: bool = True

    def __str__(self) -> str:
        return f"{self.clause}: {self.why}"


def obstacles(statement: Statement, clauses: Clauses | None) -> tuple[Obstacle, ...]:
    """Find what keeps a query from being row-wise, in the order of its clauses.

    :param clauses: the same, cut into clauses; None where that cannot be done.
    """
    found = list(_all(statement, clauses))
    return tuple(o for o in found if o.clause != TEXT) or tuple(found)


def _all(statement: Statement, clauses: Clauses | None) -> Iterator[Obstacle]:
    from sqlglot import exp

    tree = statement.tree
    yield from _set_operations(tree)
    if tree.args.get("with_"):
        yield Obstacle("WITH", "the source is read through another query")
    if any(node is not tree for node in tree.find_all(exp.Query) if not _within_set_or_with(node)):
        yield Obstacle("subquery", "a row-wise query is one SELECT; join lookups instead")
    selects = list(tree.find_all(exp.Select))
    for select in selects:
        yield from _clause_obstacles(select)
    yield from _function_obstacles(statement)
    if len(selects) == 1 and selects[0] is tree:
        yield from _from_obstacles(selects[0], clauses)


def _set_operations(tree: exp.Expr) -> Iterator[Obstacle]:
    from sqlglot import exp

    for node in tree.find_all(exp.SetOperation):
        yield Obstacle(type(node).__name__.upper(), "Spark unites no stream with a table that is none", False)


def _within_set_or_with(node: exp.Expr) -> bool:
    from sqlglot import exp

    return isinstance(node.parent, exp.SetOperation | exp.CTE)


_CLAUSES: tuple[tuple[str, str, str, bool], ...] = (
    ("distinct", "DISTINCT", MIXES, True),
    ("group", "GROUP BY", MIXES, True),
    ("having", "HAVING", MIXES, True),
    ("qualify", "QUALIFY", SEES_OTHERS, False),
    ("order", "ORDER BY", "a stream has no last row, so it cannot be sorted", False),
    ("sort", "SORT BY", "a stream has no last row, so it cannot be sorted", False),
    ("cluster", "CLUSTER BY", MOVES, False),
    ("distribute", "DISTRIBUTE BY", MOVES, True),
    ("limit", "LIMIT", "a stream has no end, so its first rows are no result", False),
    ("offset", "OFFSET", "a stream has no end, so its first rows are no result", False),
    ("windows", "WINDOW", SEES_OTHERS, False),
    ("pivots", "PIVOT", MIXES, False),
    ("sample", "TABLESAMPLE", "which rows are taken is chance", False),
    ("operation_modifiers", "modifier after SELECT", "it is not known here", True),
)


def _clause_obstacles(select: exp.Expr) -> Iterator[Obstacle]:
    from sqlglot import exp

    for key, clause, why, on_stream in _CLAUSES:
        if select.args.get(key):
            yield Obstacle(clause, why, on_stream)
    if any(
        isinstance(node, exp.Window) and node.find_ancestor(exp.Select) is select
        for node in select.find_all(exp.Window)
    ) and not select.args.get("windows"):
        yield Obstacle("OVER", "windows over rows see the whole table, and a stream has no whole", False)


def _function_obstacles(statement: Statement) -> Iterator[Obstacle]:
    seen = set()
    for index, token in statement.calls():
        before = statement.tokens[index - 1].kind if index else ""
        if token.word in seen or before in ("LIKE", "ILIKE", "RLIKE"):  # LIKE ANY ('a', 'b') is no call
            continue
        seen.add(token.word)
        if token.word in AGGREGATES:
            yield Obstacle(f"{token.word}()", MIXES)
        elif token.word in RANKINGS:
            yield Obstacle(f"{token.word}()", SEES_OTHERS, False)
        elif token.word in TIME_WINDOWS:
            yield Obstacle(f"{token.word}()", "time windows drop rows without a time and repeat others")
        elif token.word in OTHER_GENERATORS:
            yield Obstacle(f"{token.word}()", "a record that did not parse would be repeated by it")


def _from_obstacles(select: exp.Select, clauses: Clauses | None) -> Iterator[Obstacle]:
    from sqlglot import exp

    first = select.args["from_"].this if select.args.get("from_") else None
    if isinstance(first, exp.Table) and first.name.lower() == SOURCE:
        yield from _relation_obstacles(first)
    else:
        yield Obstacle("FROM", f"a row-wise query starts with FROM {SOURCE}")
    for join in select.args.get("joins") or ():
        yield from _join_obstacles(join)
    if clauses is not None:
        yield from _hint_obstacles(clauses)
        yield from _lateral_obstacles(clauses)
    if clauses is not None and len(clauses.joins) < len(select.args.get("joins") or ()):
        yield Obstacle("comma in FROM", "a row-wise query joins by JOIN, LEFT JOIN or CROSS JOIN")
    elif clauses is None or not clauses.agree_with(select):
        yield Obstacle(TEXT, "its expressions cannot be told apart (write CAST(x AS t) for x::t)")


def _hint_obstacles(clauses: Clauses) -> Iterator[Obstacle]:
    for token in clauses.head:
        for name in re.findall(r"([A-Za-z_]+)\s*(?:\(|,|\*/|$)", token.text) if token.kind == "HINT" else ():
            if name.upper() not in BROADCAST_HINTS:
                yield Obstacle(f"hint {name.upper()}", MOVES)


def _lateral_obstacles(clauses: Clauses) -> Iterator[Obstacle]:
    for lateral in clauses.laterals:
        name = lateral.body[0].word if lateral.body else ""
        if name not in GENERATORS and name not in ONE_ROW_GENERATORS and name not in OTHER_GENERATORS:
            yield Obstacle(f"LATERAL VIEW {name}", "how many rows it makes is not known here")


def _relation_obstacles(table: exp.Table) -> Iterator[Obstacle]:
    if table.args.get("joins"):
        yield Obstacle("brackets in FROM", "joins are written without brackets in a row-wise query")
    if relation(table).renames:
        yield Obstacle("alias with columns", "columns keep their names in a row-wise query")
    for key, clause in (("sample", "TABLESAMPLE"), ("pivots", "PIVOT"), ("version", "AS OF")):
        if table.args.get(key):
            yield Obstacle(clause, "a stream is read row by row, each row once, as it is", False)


def _join_obstacles(join: exp.Join) -> Iterator[Obstacle]:
    from sqlglot import exp

    words = " ".join(w for w in (join.method, join.side, join.kind) if w and w not in ("INNER", "OUTER"))
    if words not in ("", "LEFT", "CROSS"):
        outer = join.side in ("RIGHT", "FULL")
        why = "rows of the lookup without a source row belong to no source row" if outer else _JOIN_WHY
        yield Obstacle(f"{words} JOIN", why, not outer)
    if not isinstance(join.this, exp.Table) or not join.this.name:
        yield Obstacle("JOIN", "only lookups can be joined, by their names")
    elif join.this.name.lower() == SOURCE:
        yield Obstacle("JOIN", f"{SOURCE} stands first, and lookups are joined to it")
    else:
        yield from _relation_obstacles(join.this)


_JOIN_WHY = "a row-wise query joins by JOIN, LEFT JOIN or CROSS JOIN"
