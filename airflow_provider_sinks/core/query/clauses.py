"""The clauses of a flat SELECT, as places in the user's text.

Found by walking over the tokens that stand in no bracket, and compared with sqlglot's tree: where the two
do not agree, nothing is rewritten.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_sinks.core.query.sql import SqlToken, Statement

if TYPE_CHECKING:
    from sqlglot import exp

JOIN_WORDS = frozenset({"INNER", "CROSS", "LEFT", "OUTER"})


@dataclass(frozen=True)
class Relation:
    """A table in FROM, or after JOIN.

    :param name: the name of the view.
    :param alias: how the query speaks of it.
    :param renames: the alias gives the columns new names too.
    """

    name: str
    alias: str
    renames: bool = False

    def column(self, name: str) -> str:
        """Return a column of this relation, quoted."""
        return f"{quoted(self.alias)}.{name}"


@dataclass(frozen=True)
class JoinText:
    """``LEFT JOIN users u ON …`` in the text.

    :param words: its first words, up to JOIN.
    :param body: all tokens after JOIN.
    :param on: index in ``body`` of the word ON, or None.
    :param has_using: it has a USING clause.
    :param outer: it is a LEFT JOIN.
    """

    words: tuple[SqlToken, ...]
    body: tuple[SqlToken, ...]
    on: int | None
    has_using: bool
    outer: bool


@dataclass(frozen=True)
class LateralText:
    """``LATERAL VIEW OUTER explode(…) t AS c`` in the text: its words up to the generator, and the rest."""

    words: tuple[SqlToken, ...]
    body: tuple[SqlToken, ...]


@dataclass(frozen=True)
class Clauses:
    """A flat SELECT: what stands where.

    :param head: SELECT and the words that belong to it.
    :param items: the tokens of each expression.
    :param origin: the tokens between FROM and WHERE.
    :param joins: the joins, in their order.
    :param laterals: the LATERAL VIEWs.
    :param where: the tokens after WHERE.
    """

    statement: Statement
    head: tuple[SqlToken, ...]
    items: tuple[tuple[SqlToken, ...], ...]
    origin: tuple[SqlToken, ...]
    joins: tuple[JoinText, ...]
    laterals: tuple[LateralText, ...]
    where: tuple[SqlToken, ...]
    where_word: SqlToken | None

    @classmethod
    def of(cls, statement: Statement) -> Clauses | None:
        """Cut a statement into its clauses; None if it does not start with SELECT or has no FROM."""
        tokens = statement.tokens
        starts = {
            token.kind: index
            for index, token in reversed(list(statement.outermost()))
            if token.kind in ("SELECT", "WHERE")
        }
        from_ = _first_from(statement)
        if starts.get("SELECT") != 0 or from_ is None:
            return None
        first = next(i for i in range(1, len(tokens)) if tokens[i].kind not in ("HINT", "ALL"))
        where = starts.get("WHERE", len(tokens))
        joins, laterals = _cut_from(tokens[from_ + 1 : where])
        return cls(
            statement=statement,
            head=tokens[:first],
            items=tuple(_split(tokens[first:from_])),
            origin=tokens[from_ + 1 : where],
            joins=joins,
            laterals=laterals,
            where=tokens[where + 1 :],
            where_word=tokens[where] if where < len(tokens) else None,
        )

    def place_of(self, start: int) -> str:
        """Name the clause that a place in the text belongs to: ``where``, the item ``[0]``, or nothing."""
        if self.where_word is not None and start > self.where_word.start:
            return "where"
        for index, item in enumerate(self.items):
            if item and item[0].start <= start < item[-1].end:
                return f"[{index}]"
        return ""

    def agree_with(self, tree: exp.Select) -> bool:
        """Tell whether the tree has just as many parts."""
        from sqlglot import exp

        return (
            len(self.items) == len(tree.expressions)
            and all(self.items)
            and [(j.outer, j.has_using) for j in self.joins]
            == [(j.side == "LEFT", bool(j.args.get("using"))) for j in tree.args.get("joins") or ()]
            and len(self.laterals) == len(tree.args.get("laterals") or ())
            and bool(self.where) == bool(tree.args.get("where"))
            and sum(map(is_star, *self._with_previous())) == len(list(tree.find_all(exp.Star)))
        )

    def _with_previous(self) -> tuple[Sequence[SqlToken], Sequence[SqlToken]]:
        tokens = self.statement.tokens
        return tokens[1:], tokens


def quoted(name: str) -> str:
    """Return a name in backticks."""
    return "`" + name.replace("`", "``") + "`"


def relation(table: exp.Table) -> Relation:
    """Return the relation that a table in FROM stands for."""
    alias = table.args.get("alias")
    renames = bool(alias is not None and alias.args.get("columns"))
    return Relation(table.name, table.alias_or_name, renames)


def is_star(token: SqlToken, before: SqlToken) -> bool:
    """Tell the star that stands for columns from the star that multiplies."""
    return token.kind == "STAR" and before.kind in ("SELECT", "HINT", "ALL", "COMMA", "L_PAREN", "DOT")


def _first_from(statement: Statement) -> int | None:
    for index, token in statement.outermost():
        if token.kind == "FROM" and statement.tokens[index - 1].kind != "DISTINCT":
            return index
    return None


def _split(tokens: Sequence[SqlToken]) -> list[tuple[SqlToken, ...]]:
    parts: list[list[SqlToken]] = [[]]
    for token in tokens:
        if token.kind == "COMMA" and token.depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return [tuple(part) for part in parts]


def _cut_from(tokens: Sequence[SqlToken]) -> tuple[tuple[JoinText, ...], tuple[LateralText, ...]]:
    starts = [i for i, t in enumerate(tokens) if t.depth == 0 and t.kind in ("JOIN", "LATERAL")]
    begins = [_first_word(tokens, i) for i in starts]
    joins, laterals = [], []
    for start, begin, end in zip(starts, begins, [*begins, len(tokens)][1:], strict=True):
        if tokens[start].kind == "JOIN":
            joins.append(_join(tuple(tokens[begin : start + 1]), tuple(tokens[start + 1 : end])))
        elif start and tokens[start - 1].kind != "JOIN":
            laterals.append(_lateral(tuple(tokens[start:end])))
    return tuple(joins), tuple(laterals)


def _first_word(tokens: Sequence[SqlToken], index: int) -> int:
    while tokens[index].kind != "LATERAL" and index and tokens[index - 1].kind in JOIN_WORDS:
        index -= 1
    return index


def _join(words: tuple[SqlToken, ...], body: tuple[SqlToken, ...]) -> JoinText:
    on = next((i for i, t in enumerate(body) if t.kind == "ON" and t.depth == 0), None)
    has_using = any(t.kind == "USING" and t.depth == 0 for t in body)
    return JoinText(words, body, on, has_using, any(t.kind == "LEFT" for t in words))


def _lateral(tokens: tuple[SqlToken, ...]) -> LateralText:
    count = next((i for i, t in enumerate(tokens) if t.kind not in ("LATERAL", "VIEW", "OUTER")), len(tokens))
    return LateralText(tokens[:count], tokens[count:])
