"""From what a query makes its columns, as texts by which two queries are compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sinks.core.query.clauses import relation
from airflow_provider_sinks.core.query.output_columns import carried_columns
from airflow_provider_sinks.core.query.views import SOURCE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlglot import exp

    from airflow_provider_sinks.core.query.analysis import QueryShape


def column_texts(shape: QueryShape, source_columns: tuple[str, ...] | None) -> dict[str, str]:
    """Return what each column of a flat query is made of, by its name in lower case.

    The same text is the same column, whatever alias the query gives its tables. A column that a star over a
    join gives is left out: only Spark knows it.
    """
    if shape.clauses is None:
        return {}
    select: Any = shape.clauses.statement.tree
    is_alone = not select.args.get("joins") and not select.args.get("laterals")
    named = {one.alias.lower(): one.name.lower() for one in map(relation, _tables(select))}
    found = {
        item.output_name.lower(): _text(item, named, is_alone)
        for item in select.expressions
        if item.output_name and not item.is_star
    }
    carried = carried_columns(shape, source_columns) if is_alone else None
    return found | {name.lower(): f"{SOURCE}.{of.lower()}" for name, of in (carried or {}).items()}


def _tables(select: Any) -> list[exp.Table]:
    from sqlglot import exp

    return list(select.find_all(exp.Table))


def _text(item: Any, named: Mapping[str, str], is_alone: bool) -> str:
    from sqlglot import exp

    def resolved(node: Any) -> Any:
        if not isinstance(node, exp.Column) or len(node.parts) > 2:
            return node
        table = named.get(node.table.lower(), SOURCE if is_alone and not node.table else node.table.lower())
        return exp.column(node.name.lower(), table=table or None)

    made = item.this if isinstance(item, exp.Alias) else item
    text: str = made.copy().transform(resolved).sql("spark", comments=False)
    return text
