"""Is this query row-wise? Read from the SQL, never guessed from Spark's plan.

A query is row-wise when each source row leads to its own output rows and to nobody else's: one ``SELECT``
from ``source``, joined with lookups only. Whatever stands in the way is an :class:`Obstacle` that names the
clause; what can never run on a stream is a :class:`~airflow_provider_sinks.core.errors.Problem`.

>>> analyse("SELECT p.userid, u.region FROM source p LEFT JOIN users u USING (userid)").row_wise
True
>>> [str(o) for o in analyse("SELECT userid, count(*) AS n FROM source GROUP BY userid").obstacles][0]
'GROUP BY: one output row comes from many source rows'
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from airflow_provider_sinks.core.errors import Problem, nearest
from airflow_provider_sinks.core.query.calls import call_problems
from airflow_provider_sinks.core.query.clauses import Clauses
from airflow_provider_sinks.core.query.column_names import column_problems
from airflow_provider_sinks.core.query.functions import AGGREGATES, GENERATORS, OTHER_GENERATORS
from airflow_provider_sinks.core.query.obstacles import Obstacle, obstacles
from airflow_provider_sinks.core.query.output_columns import output_columns
from airflow_provider_sinks.core.query.sql import SqlError, Statement, read
from airflow_provider_sinks.core.query.views import (
    DELETED_COLUMN,
    ERROR_COLUMN,
    INTERNAL,
    MATCHED_COLUMN,
    SOURCE,
    SOURCE_COLUMNS,
)

if TYPE_CHECKING:
    from sqlglot import exp


@dataclass(frozen=True)
class QueryShape:
    """What the SQL says about itself.

    :param sql: the query as the user wrote it.
    :param obstacles: what keeps it from being row-wise, in the order of the clauses.
    :param problems: what keeps it from running at all; each with the clause it stands in, as far as known.
    :param unknown_columns: the columns that it names and no table has, as far as the tables are known.
    :param stateful: Spark has to remember something from epoch to epoch.
    :param generates: it calls a function that may make many rows of one.
    :param lookups: the lookups that it reads, as declared.
    :param columns: names of its output columns; None when only Spark can know them (``*`` over a join).
    """

    sql: str
    obstacles: tuple[Obstacle, ...] = ()
    problems: tuple[Problem, ...] = ()
    unknown_columns: tuple[Problem, ...] = ()
    stateful: bool = False
    generates: bool = False
    lookups: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None
    clauses: Clauses | None = field(default=None, repr=False, compare=False)

    @property
    def row_wise(self) -> bool:
        """Each source row leads to its own output rows and to nobody else's."""
        return not self.obstacles and not self.problems

    @property
    def may_multiply(self) -> bool:
        """One source row may lead to several output rows; no lookup promises to have a value only once."""
        return self.generates or bool(self.lookups)


def analyse(
    sql: str,
    lookups: Collection[str] | None = None,
    source_columns: Sequence[str] | None = None,
    lookup_columns: Mapping[str, Sequence[str]] | None = None,
) -> QueryShape:
    """Read a query.

    :param sql: one SELECT in Spark's dialect.
    :param lookups: the declared lookups; None takes every table but ``source`` for a lookup.
    :param source_columns: the user's columns of ``source``, to know what ``*`` stands for, and what is none.
    :param lookup_columns: the columns of those lookups that name them.
    """
    known = None if lookups is None else tuple(lookups)
    columns = tuple((name.lower(), tuple(found)) for name, found in (lookup_columns or {}).items())
    return _analyse(sql, known, None if source_columns is None else tuple(source_columns), columns)


def select_sql(select: Sequence[str] | None, where: str | None) -> str:
    """Write the query that ``select`` and ``where`` stand for.

    :raises SqlError: an item is not exactly one expression.
    """
    return _select_sql(None if select is None else tuple(select), where)


@lru_cache(maxsize=1024)
def _select_sql(select: tuple[str, ...] | None, where: str | None) -> str:
    for item in select or ():
        _check_alone(f"SELECT {item}", item, 1)
    if where is not None:
        _check_alone(f"SELECT 1 WHERE {where}", where, 1)
    lines = ["SELECT " + "\n  , ".join(select or ["*"]), f"FROM {SOURCE}"]  # an item may end in a comment
    return "\n".join([*lines, f"WHERE {where}"] if where is not None else lines)


def _check_alone(sql: str, written: str, expressions: int) -> None:
    tree = read(sql).tree
    extra = [key for key, value in tree.args.items() if value and key not in ("expressions", "where")]
    if extra or len(tree.expressions) != expressions:
        raise SqlError(
            f"{written!r} is not one expression", "one item per expression; write `query` for more"
        )


def _columns(tables: Sequence[exp.Table], columns: Mapping[str, Sequence[str] | None]) -> tuple[str, ...]:
    """Return the columns that the tables of a query are known to have."""
    return tuple(name for table in tables for name in columns.get(table.name.lower()) or ())


@lru_cache(maxsize=1024)
def _analyse(
    sql: str,
    known: tuple[str, ...] | None,
    source_columns: tuple[str, ...] | None,
    lookup_columns: tuple[tuple[str, tuple[str, ...]], ...],
) -> QueryShape:
    try:
        statement = read(sql)
    except SqlError as error:
        return QueryShape(sql, problems=(error.at(""),))
    tables = tuple(_tables(statement.tree))
    lookups = [t.name for t in tables if t.name.lower() != SOURCE] if known is None else list(known)
    declared = {name.lower(): name for name in lookups}
    clauses = Clauses.of(statement)
    found = obstacles(statement, clauses)
    stateful = _stateful(statement.tree, tables)
    if stateful and not found:  # the two ways to look for aggregates do not agree: trust neither
        found = (Obstacle("aggregate", "one output row comes from many source rows"),)
    unknown: dict[str, tuple[str, ...] | None] = dict.fromkeys(declared)
    of_tables = {**unknown, **dict(lookup_columns), SOURCE: source_columns}
    columns, unnamed = output_columns(statement.tree, source_columns)
    problems = [*_table_problems(tables, statement.tree, declared), *unnamed]
    problems += [*_name_problems(statement), *call_problems(statement, clauses, _columns(tables, of_tables))]
    problems += [Problem("", f"{o.clause} cannot run on a stream: {o.why}") for o in found if not o.on_stream]
    used = {t.name.lower() for t in tables} & set(declared)
    return QueryShape(
        sql=sql,
        obstacles=found,
        problems=tuple(problems),
        unknown_columns=() if problems else tuple(column_problems(statement.tree, clauses, of_tables)),
        stateful=stateful,
        generates=_generates(statement),
        lookups=tuple(name for key, name in declared.items() if key in used),
        columns=columns,
        clauses=clauses,
    )


def _tables(tree: exp.Expr) -> Iterator[exp.Table]:
    from sqlglot import exp

    ctes = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        hinted = table.find_ancestor(exp.Hint) is not None
        of_with = not table.db and table.name.lower() in ctes  # csv.`x` is a file, whatever WITH names
        if not hinted and (not of_with or table.name.lower() == SOURCE):
            yield table


def _table_problems(
    tables: Sequence[exp.Table], tree: exp.Expr, declared: dict[str, str]
) -> Iterator[Problem]:
    from sqlglot import exp

    reads = sum(table.name.lower() == SOURCE for table in tables)
    if reads != 1:
        how_often = "does not read" if not reads else f"reads {reads} times"
        yield Problem("", f"{how_often} from {SOURCE}", f"write FROM {SOURCE} exactly once")
    for table in tables:
        if table.name.lower() not in (SOURCE, *declared) or table.db:
            name = table.sql("spark").split(" AS ")[0]
            hint = nearest(table.name, [SOURCE, *declared.values()]) or "declare it under lookups"
            yield Problem("", f"reads {name!r}, which is neither {SOURCE!r} nor a lookup", hint)
    for cte in tree.find_all(exp.CTE):
        if cte.alias.lower() in (SOURCE, *declared):
            yield Problem("", f"WITH {cte.alias} hides what is already named so", "choose another name")


def _name_problems(statement: Statement) -> Iterator[Problem]:
    for token in statement.tokens:
        if token.kind != "STRING" and token.word.startswith(INTERNAL):
            yield Problem("", f"names {token.text!r}; names with {INTERNAL} are the sink's own")


def _stateful(tree: exp.Expr, tables: Sequence[exp.Table]) -> bool:
    """Tell whether a query *around the source* combines rows; a subquery over a lookup does not count."""
    from sqlglot import exp

    for table in tables:
        if table.name.lower() != SOURCE:
            continue
        node: Any = table
        while node is not None:
            if isinstance(node, exp.Intersect | exp.Except) or (
                isinstance(node, exp.Select) and _combines_rows(node)
            ):
                return True
            node = _reader_of(node, tree) if isinstance(node, exp.CTE) else node.parent
    return False


def _generates(statement: Statement) -> bool:
    return any(token.word in GENERATORS or token.word in OTHER_GENERATORS for _, token in statement.calls())


def _reader_of(cte: exp.CTE, tree: exp.Expr) -> Any:
    from sqlglot import exp

    readers = [t for t in tree.find_all(exp.Table) if t.name.lower() == cte.alias.lower()]
    return readers[0] if readers else None


def _combines_rows(select: exp.Select) -> bool:
    from sqlglot import exp

    if any(select.args.get(key) for key in ("distinct", "group", "having", "limit", "offset", "pivots")):
        return True
    for node in select.find_all(exp.AggFunc, exp.Anonymous):
        named = isinstance(node, exp.Anonymous) and node.name.lower() in AGGREGATES
        if (named or isinstance(node, exp.AggFunc)) and node.find_ancestor(exp.Select) is select:
            return True
    return False


__all__ = [
    "DELETED_COLUMN",
    "ERROR_COLUMN",
    "INTERNAL",
    "MATCHED_COLUMN",
    "SOURCE",
    "SOURCE_COLUMNS",
    "Obstacle",
    "QueryShape",
    "analyse",
    "select_sql",
]
