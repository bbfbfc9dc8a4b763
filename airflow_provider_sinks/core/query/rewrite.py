"""Writes the query that a row-wise sink runs: the user's own text, with what the writers need put into it.

What is put in, and why the result is the same for every row that parsed:

- The source coordinates join the end of the projection; ``*`` does not show internal columns.
- A record that did not parse (``__sinks_error`` is not NULL) must reach the writer, exactly once, whatever
  the query says: the condition lets it pass, joins become outer joins that it never matches, expressions
  are not evaluated for it, and generators give one row for it.
- An inner join is an outer join that keeps matched rows only (``__sinks_matched``).
- Lookups are broadcast, so that no row leaves the partition that it came from.

Where records are changes of rows (``__sinks_deleted`` is there), the result is to be what the query gives
over the rows as they are now. So WHERE leaves no record out: a row that it does not take is gone from the
result, as one that was deleted is, whatever it was before. Expressions are evaluated for neither; columns
are, for a delete needs its key.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.core.query.analysis import (
    DELETED_COLUMN,
    ERROR_COLUMN,
    MATCHED_COLUMN,
    SOURCE_COLUMNS,
    QueryShape,
)
from airflow_provider_sinks.core.query.clauses import Clauses, JoinText, Relation, is_star, quoted, relation
from airflow_provider_sinks.core.query.functions import GENERATORS, ONE_ROW_GENERATORS
from airflow_provider_sinks.core.query.sql import SqlToken


def row_wise_sql(shape: QueryShape, *, has_deletes: bool = False) -> str:
    """Return the query to run over the views ``source`` and the lookups.

    :param has_deletes: records are changes of rows; then a query joins nothing and makes no rows.
    :raises ConfigurationError: the query is not row-wise.
    """
    if not shape.row_wise or shape.clauses is None:
        found = [*shape.problems, *(Problem("", str(obstacle)) for obstacle in shape.obstacles)]
        raise ConfigurationError("the query is not row-wise", found, "use writers: single")
    return _apply(shape.clauses, list(_Rewriting.of(shape.clauses, has_deletes=has_deletes).edits()))


@dataclass(frozen=True)
class _Edit:
    """Replace the text between two places; equal places insert."""

    start: int
    end: int
    text: str


def _apply(clauses: Clauses, edits: list[_Edit]) -> str:
    text = clauses.statement.text
    pieces, place = [], clauses.head[0].start
    for edit in sorted(edits, key=lambda e: e.start):  # stable: edits at one place keep their order
        pieces += [text[place : edit.start], edit.text]
        place = edit.end
    return "".join([*pieces, text[place : clauses.statement.tokens[-1].end]])


def _before(token: SqlToken, text: str) -> _Edit:
    return _Edit(token.start, token.start, text)


def _after(token: SqlToken, text: str) -> _Edit:
    return _Edit(token.end, token.end, text)


@dataclass(frozen=True)
class _Rewriting:
    clauses: Clauses
    source: Relation
    joined: tuple[Relation, ...]
    has_deletes: bool

    @classmethod
    def of(cls, clauses: Clauses, *, has_deletes: bool) -> _Rewriting:
        tree = clauses.statement.tree
        joined = tuple(relation(join.this) for join in tree.args.get("joins") or ())
        return cls(clauses, relation(tree.args["from_"].this), joined, has_deletes)

    @property
    def parsed(self) -> str:
        return f"{self.source.column(ERROR_COLUMN)} IS NULL{self._is_there}"

    @property
    def _is_there(self) -> str:
        return f" AND NOT {self.source.column(DELETED_COLUMN)}" if self.has_deletes else ""

    @property
    def _internal(self) -> tuple[str, ...]:
        return (*SOURCE_COLUMNS, DELETED_COLUMN) if self.has_deletes else SOURCE_COLUMNS

    def edits(self) -> Iterator[_Edit]:
        yield from self._hint()
        for item, expression in zip(self.clauses.items, self.clauses.statement.tree.expressions, strict=True):
            yield from self._item(item, expression.alias)
        yield from self._stars()
        coordinates = ", ".join(self.source.column(name) for name in self._internal)
        yield _after(self.clauses.items[-1][-1], f", {coordinates}")
        if self.has_deletes:
            yield from self._filter()
            return
        matched: list[str] = []
        for join, joined in zip(self.clauses.joins, self.joined, strict=True):
            yield from self._join(join, [self.parsed, *matched])
            if not join.outer:
                matched.append(f"{joined.column(MATCHED_COLUMN)} IS NOT NULL")
        filled: list[str] = []
        for lateral in self.clauses.laterals:
            yield from self._lateral(lateral.words, lateral.body, filled)
        yield from self._where([*matched, *self._filled_items(), *filled])

    def _filter(self) -> Iterator[_Edit]:
        """Let a row be gone that the condition does not take, which is evaluated for rows that are there."""
        where, where_word, origin = self.clauses.where, self.clauses.where_word, self.clauses.origin
        if where_word is None:
            return
        condition = self.clauses.statement.slice(where)
        deleted, alias = self.source.column(DELETED_COLUMN), quoted(self.source.alias)
        is_gone = f"CASE WHEN {self.parsed} THEN NOT coalesce(({condition}), false) ELSE {deleted} END"
        star = f"{alias}.* EXCEPT ({deleted})"
        selected = f"{star}, {is_gone} AS {DELETED_COLUMN}"
        yield _before(origin[0], f"(SELECT {selected} FROM ")  # noqa: S608  the user's own text
        yield _after(origin[-1], f") AS {alias}")
        yield _Edit(where_word.start, where[-1].end, "")

    def _hint(self) -> Iterator[_Edit]:
        for token in self.clauses.head[1:]:
            if token.kind == "HINT":
                yield _Edit(token.start, token.end, "")
        if self.joined:
            names = ", ".join(quoted(joined.alias) for joined in self.joined)
            yield _after(self.clauses.head[0], f" /*+ BROADCAST({names}) */")

    def _item(self, item: tuple[SqlToken, ...], alias: str) -> Iterator[_Edit]:
        generator = _generator(item)
        body = _without_alias(item, alias)
        if generator is not None:
            yield from self._generator(generator)
        elif not _is_path(body) and body[0].word not in ONE_ROW_GENERATORS:
            yield _before(body[0], f"CASE WHEN {self.parsed} THEN (")
            yield _after(body[-1], ") END")

    def _generator(self, call: tuple[SqlToken, ...]) -> Iterator[_Edit]:
        yield _Edit(call[0].start, call[0].end, GENERATORS[call[0].word])
        yield _after(call[1], f"CASE WHEN {self.parsed} THEN (")
        yield _before(call[-1], ") END")

    def _filled_items(self) -> Iterator[str]:
        for item in self.clauses.items:
            call = _generator(item)
            if call is not None and not call[0].word.endswith("_outer"):
                yield self._is_filled(call)

    def _is_filled(self, call: tuple[SqlToken, ...]) -> str:
        return f"size({self.clauses.statement.slice(call[2:-1])}) > 0"

    def _stars(self) -> Iterator[_Edit]:
        tokens = self.clauses.statement.tokens
        for index in range(1, len(tokens)):
            if not is_star(tokens[index], tokens[index - 1]):
                continue
            hidden = ", ".join(self._hidden(tokens, index))
            excepts = index + 2 < len(tokens) and tokens[index + 1].kind == "EXCEPT"
            if hidden and excepts:
                yield _after(tokens[index + 2], f"{hidden}, ")
            elif hidden:
                yield _after(tokens[index], f" EXCEPT ({hidden})")

    def _hidden(self, tokens: tuple[SqlToken, ...], index: int) -> list[str]:
        """Return the internal columns that a star would show."""
        of_source = [self.source.column(name) for name in self._internal]
        if tokens[index - 1].kind != "DOT":
            return of_source + [joined.column(MATCHED_COLUMN) for joined in self.joined]
        if index > 2 and tokens[index - 3].kind == "DOT":
            return []
        qualifier = tokens[index - 2].word
        if qualifier == self.source.alias.lower():
            return of_source
        return [j.column(MATCHED_COLUMN) for j in self.joined if j.alias.lower() == qualifier]

    def _join(self, join: JoinText, conditions: list[str]) -> Iterator[_Edit]:
        yield _Edit(join.words[0].start, join.words[-1].end, "LEFT JOIN")
        if join.on is not None:
            yield _after(join.body[join.on], f" {' AND '.join(conditions)} AND (")
            yield _after(join.body[-1], ")")
        elif not join.has_using:
            yield _after(join.body[-1], f" ON {' AND '.join(conditions)}")

    def _lateral(
        self, words: tuple[SqlToken, ...], body: tuple[SqlToken, ...], filled: list[str]
    ) -> Iterator[_Edit]:
        if body[0].word in ONE_ROW_GENERATORS:
            return
        outer = any(word.kind == "OUTER" for word in words)
        call = body[: _closing(body) + 1]
        if not outer:
            yield _after(words[-1], " OUTER")
        yield _after(call[1], f"CASE WHEN {self.parsed} THEN (")
        yield _before(call[-1], ") END")
        if not outer and not call[0].word.endswith("_outer"):
            filled.append(self._is_filled(call))

    def _where(self, conditions: list[str]) -> Iterator[_Edit]:
        where = self.clauses.where
        failed = f"{self.source.column(ERROR_COLUMN)} IS NOT NULL"
        last = self.clauses.statement.tokens[-1]
        if where:
            also = "".join(f"{condition} AND " for condition in conditions)
            yield _before(where[0], f"{failed} OR ({also}(")
            yield _after(last, "))")
        elif conditions:
            yield _after(last, f" WHERE {failed} OR ({' AND '.join(conditions)})")


def _without_alias(item: tuple[SqlToken, ...], alias: str) -> tuple[SqlToken, ...]:
    """Return the tokens of the expression itself, without ``AS name``, ``name`` or ``AS (name, name)``."""
    for index in range(len(item) - 1, 0, -1):
        if item[index].kind == "ALIAS" and item[index].depth == 0:
            return item[:index]
    return item[:-1] if alias else item


def _is_path(body: tuple[SqlToken, ...]) -> bool:
    """Tell whether an expression is a column, a field or a star: NULL, or nothing, where nothing parsed."""
    if body[-1].kind == "R_PAREN" and any(t.kind == "EXCEPT" for t in body):
        body = body[: next(i for i, t in enumerate(body) if t.kind == "EXCEPT")]
    return all((token.kind == "DOT") == bool(index % 2) for index, token in enumerate(body))


def _generator(item: tuple[SqlToken, ...]) -> tuple[SqlToken, ...] | None:
    """Return the tokens of ``explode(…)`` where an item is that and nothing else."""
    if item[0].word not in GENERATORS or len(item) < 4 or item[1].kind != "L_PAREN":
        return None
    return item[: _closing(item) + 1]


def _closing(tokens: tuple[SqlToken, ...]) -> int:
    depth = tokens[0].depth
    return next(i for i, t in enumerate(tokens) if t.kind == "R_PAREN" and t.depth == depth)
