"""What a query calls that it may not: read from its tokens, because they are what Spark will read.

A name in front of a bracket is a function that a query may call, a word of SQL, or a problem. Nothing is
trusted to the tree: sqlglot knows fewer ways to write a call than Spark does. The driver takes the same
functions out of Spark's own registry before it reads the query, so what slips through finds nothing there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator
from itertools import pairwise

from airflow_provider_sinks.core.errors import Problem, nearest
from airflow_provider_sinks.core.query.clauses import Clauses
from airflow_provider_sinks.core.query.functions import ALLOWED, ARGUMENTS_MAX, INSTEAD, REFUSED
from airflow_provider_sinks.core.query.sql import SqlToken, Statement

_SQL = """
    all and any as between both by case cube distinct div else end escape except exclude exists filter for
    from group having ilike in intersect interval into is join lateral leading like limit minus not of offset
    on or outer over partition percent pivot qualify regexp rlike rollup select sets some struct then trailing
    union unpivot using values view when where window with within
    char character dec decimal numeric string time timestamp varchar
    """
_WORDS = frozenset(_SQL.split())
"""Words of SQL that may stand in front of a bracket and call nothing; the last line are types."""
_NO_HOME = frozenset({("builtin",), ("system", "builtin")})
"""The only places that functions may be taken from by a qualified name."""
_CALLED_BARE = frozenset(
    {"current_catalog", "current_database", "current_schema", "current_user", "session_user", "user"}
)
"""Functions that Spark calls by their names alone, in backticks too, where no column is named like them."""
_DOUBTFUL_COMMENT = re.compile(r"/\*\+|\{#|--[^\n]*\\\r?\n|--[^\n]*\r(?!\n)")
"""A hint in a comment, Jinja's comment, a line that goes on behind a backslash: read otherwise by Spark."""


def call_problems(
    statement: Statement, clauses: Clauses | None, columns: Collection[str] = ()
) -> Iterator[Problem]:
    """Give what a query calls, or runs, and may not.

    :param clauses: the same, cut into clauses, to name the one that a call stands in.
    :param columns: those that its tables are known to have.
    """
    yield from _function_problems(statement, clauses)
    yield from _word_problems(statement)
    yield from _parameter_problems(statement)
    yield from _bare_problems(statement, {name.lower() for name in columns})
    yield from _comment_problems(statement)


def _function_problems(statement: Statement, clauses: Clauses | None) -> Iterator[Problem]:
    renamed = _relations_with_columns(statement)
    said: set[str] = set()
    for index, token in statement.calls():
        if not _is_word(token) and (token.word not in renamed or token.word in REFUSED):
            for problem in _judged(statement.tokens, index):
                if problem.what not in said:
                    said.add(problem.what)
                    where = clauses.place_of(token.start) if clauses is not None else ""
                    yield Problem(where, problem.what, problem.hint)
        elif token.word in renamed:
            renamed[token.word] -= 1
            renamed += Counter()  # as often as the alias was given, and no more


def _judged(tokens: tuple[SqlToken, ...], index: int) -> Iterator[Problem]:
    name = tokens[index].word
    if name in REFUSED:
        yield Problem("", f"calls {name}(), which no query may: {REFUSED[name]}", INSTEAD.get(name, ""))
    elif name not in ALLOWED:
        hint = nearest(name, ALLOWED) or "Spark's own functions, see the page Sinks"
        yield Problem("", f"calls {tokens[index].text}(), which is no function for queries", hint)
    elif (home := _home(tokens, index)) and home not in _NO_HOME:
        yield Problem("", f"calls {'.'.join(home)}.{name}(), a function of a catalog", f"write {name}()")
    elif name in ARGUMENTS_MAX and _count_arguments(tokens, index + 1) > ARGUMENTS_MAX[name]:
        what = f"gives {name}() options, and options of {name}() can name files to read"
        yield Problem("", what, "leave the options out")


def _is_word(token: SqlToken) -> bool:
    return token.kind not in ("IDENTIFIER", "STRING") and token.word.split()[-1] in _WORDS


def _home(tokens: tuple[SqlToken, ...], index: int) -> tuple[str, ...]:
    """Return the qualifier of a name, from its first part to its last."""
    parts: list[str] = []
    while index >= 2 and tokens[index - 1].kind == "DOT":
        index -= 2
        parts.insert(0, tokens[index].word)
    return tuple(parts)


def _count_arguments(tokens: tuple[SqlToken, ...], opening: int) -> int:
    depth, commas = tokens[opening].depth, 0
    for token in tokens[opening + 1 :]:
        if token.depth == depth and token.kind == "R_PAREN":
            break
        commas += token.kind == "COMMA" and token.depth == depth + 1
    return commas + 1


def _relations_with_columns(statement: Statement) -> Counter[str]:
    """Return how often each name is given to a relation with names for its columns: ``AS s(x, y)``."""
    from sqlglot import exp

    aliases = statement.tree.find_all(exp.TableAlias)
    return Counter(alias.name.lower() for alias in aliases if alias.args.get("columns"))


def _word_problems(statement: Statement) -> Iterator[Problem]:
    for token, following in pairwise(statement.tokens):
        if token.kind == "PIPE_GT":
            yield Problem("", "uses |>, which cannot be read here", "write SELECT … FROM … WHERE …")
        elif token.word == "using" and token.kind != "IDENTIFIER" and following.kind != "L_PAREN":
            what = "has USING without a bracket: with a text it would run a command on the machine"
            yield Problem("", what, "to join, write USING (column); commands are not for queries")


def _parameter_problems(statement: Statement) -> Iterator[Problem]:
    from sqlglot import exp

    called = {token.word for _, token in statement.calls()}
    names: dict[type[exp.Expr], str] = {exp.CurrentUser: "current_user", exp.SessionUser: "session_user"}
    for node in statement.tree.find_all(exp.Placeholder, exp.Parameter, *names):
        name = names.get(type(node))
        if name is None:
            what = f"has a parameter, {node.sql('spark')}, that nobody gives a value"
            yield Problem("", what, "write the value")
        elif name not in called:
            what = f"reads {name}, which no query may: {REFUSED[name]}"
            yield Problem("", what, _column_hint(name))


def _bare_problems(statement: Statement, columns: Collection[str]) -> Iterator[Problem]:
    from sqlglot import exp

    alone = (column for column in statement.tree.find_all(exp.Column) if len(column.parts) == 1)
    named = {column.name.lower() for column in alone}
    for name in sorted((named & _CALLED_BARE) - set(columns)):
        yield Problem("", f"reads {name}, which no query may: {REFUSED[name]}", _column_hint(name))


def _column_hint(name: str) -> str:
    return f"a column of that name stands behind its table: source.{name}"


def _comment_problems(statement: Statement) -> Iterator[Problem]:
    if not any(mark in statement.text for mark in ("--", "/*", "{#")):
        return
    places = [
        0,
        *(place for token in statement.tokens for place in (token.start, token.end)),
        len(statement.text),
    ]
    for start, end in zip(places[::2], places[1::2], strict=True):
        between = statement.text[start:end]
        if _DOUBTFUL_COMMENT.search(between) or between.count("/*") != between.count("*/"):
            hint = "close each /*, write hints behind SELECT, and end no line of a comment with a backslash"
            yield Problem("", f"has a comment that Spark reads otherwise: {between.strip()[:40]!r}", hint)
