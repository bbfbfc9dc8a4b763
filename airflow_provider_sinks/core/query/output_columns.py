"""The names of a query's output columns, as far as the SQL says them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sinks.core.errors import Problem
from airflow_provider_sinks.core.query.clauses import relation
from airflow_provider_sinks.core.query.views import SOURCE

if TYPE_CHECKING:
    from sqlglot import exp

    from airflow_provider_sinks.core.query.analysis import QueryShape


def output_columns(
    tree: exp.Expr, source_columns: tuple[str, ...] | None
) -> tuple[tuple[str, ...] | None, list[Problem]]:
    """Return the names, and what is wrong with them.

    The names are None when only Spark can know them: a star over a join, or over columns that are unknown.

    :param source_columns: the user's columns of the source, if they are known.
    """
    from sqlglot import exp

    select: Any = tree
    while isinstance(select, exp.SetOperation | exp.Subquery):
        select = select.this
    names: list[str] = []
    problems: list[Problem] = []
    whole = True
    for item in select.expressions if isinstance(select, exp.Select) else ():
        found = _names(item, select, source_columns)
        whole = whole and found is not None
        if found == ():
            what = f"the expression {item.sql('spark')} has no name"
            problems.append(Problem("", what, "write … AS name"))
        names += found or ()
    twice = sorted({n for n in names if [m.lower() for m in names].count(n.lower()) > 1}, key=str.lower)
    if twice:
        what = f"more than one output column is named {twice[0]!r}"
        problems.append(Problem("", what, "give each its own name by AS"))
    return (tuple(names) if whole and not problems else None), problems


def carried_columns(shape: QueryShape, source_columns: tuple[str, ...] | None) -> dict[str, str] | None:
    """Return those columns of a query without joins that are columns of the source as they are.

    :returns: by their names in the output the names in the source; ``None`` while nobody knows what a star
        stands for.
    """
    from sqlglot import exp

    if shape.clauses is None:
        return None
    select: Any = shape.clauses.statement.tree
    own = {name.lower(): name for name in source_columns or ()}
    found: dict[str, str] = {}
    for item in select.expressions:
        column = item.this if isinstance(item, exp.Alias) else item
        if item.is_star:
            names = _names(item, select, source_columns)
            if names is None:
                return None
            found |= dict(zip(names, names, strict=True))
        elif isinstance(column, exp.Column) and _is_of_source(column, select):
            found[item.output_name] = own.get(column.name.lower(), column.name)
    return found


def _is_of_source(column: exp.Column, select: exp.Select) -> bool:
    """Tell whether a name stands for a column, and for no field of one."""
    alias = relation(select.args["from_"].this).alias.lower()
    return [part.name.lower() for part in column.parts[:-1]] in ([], [alias])


def _names(
    item: exp.Expr, select: exp.Select, source_columns: tuple[str, ...] | None
) -> tuple[str, ...] | None:
    """Return the column names an expression makes: none if it needs one, None if only Spark knows."""
    from sqlglot import exp

    if isinstance(item, exp.Aliases):
        return tuple(identifier.name for identifier in item.expressions)
    if isinstance(item, exp.Dot):
        return (item.expression.name,) if not item.is_star else None
    if item.is_star:
        return _star_names(item, select, source_columns)
    return (item.output_name,) if item.output_name and isinstance(item, exp.Alias | exp.Column) else ()


def _star_names(
    item: exp.Expr, select: exp.Select, source_columns: tuple[str, ...] | None
) -> tuple[str, ...] | None:
    alone = not select.args.get("joins") and not select.args.get("laterals")
    first = select.args["from_"].this if select.args.get("from_") else None
    if source_columns is None or not alone or first is None or first.name.lower() != SOURCE:
        return None
    star = item.this if item.args.get("table") else item
    if item.args.get("table") and item.text("table").lower() != relation(first).alias.lower():
        return None
    dropped = {column.name.lower() for column in star.args.get("except_") or ()}
    return tuple(name for name in source_columns if name.lower() not in dropped)
