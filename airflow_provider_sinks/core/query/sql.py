"""Reading a user's SQL: tokens with their places in the text, and the tree that sqlglot makes of them.

The text is never printed anew from the tree. sqlglot writes *its* idea of a function (``listagg(a)`` comes
back as ``LISTAGG(a, ',')``, another result), so a rewritten query is made of slices of what the user wrote.

sqlglot is imported when the first query is read: a DAG file that names no query does not pay for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from airflow_provider_sinks.core.errors import Problem

if TYPE_CHECKING:
    from sqlglot import exp

OPENING = frozenset({"(", "[", "{"})
CLOSING = frozenset({")", "]", "}"})
_QUOTED = frozenset({"STRING", "IDENTIFIER", "RAW_STRING"})
_LITERALS = frozenset({"STRING", "NUMBER"})
_COMMAS = frozenset({"COMMA"})
_LITERALS_KEPT = 10


@dataclass(frozen=True)
class SqlToken:
    """One token of the text.

    :param kind: sqlglot's name of its type, such as ``SELECT`` or ``VAR``.
    :param text: the characters as written, without quotes.
    :param start: place of its first character.
    :param end: place after its last character.
    :param depth: how many brackets stand open around it.
    """

    kind: str
    text: str
    start: int
    end: int
    depth: int

    @property
    def word(self) -> str:
        """The text in lower case: Spark's names and words do not know case."""
        return self.text.lower()


@dataclass(frozen=True)
class Statement:
    """One parsed statement: the text, its tokens and its tree."""

    text: str
    tokens: tuple[SqlToken, ...]
    tree: exp.Query

    def slice(self, tokens: Sequence[SqlToken]) -> str:
        """Return the user's text from the first to the last of these tokens, comments included."""
        return self.text[tokens[0].start : tokens[-1].end] if tokens else ""

    def outermost(self) -> Iterator[tuple[int, SqlToken]]:
        """Give the tokens that stand in no bracket, with their index."""
        return ((index, token) for index, token in enumerate(self.tokens) if token.depth == 0)

    def calls(self) -> Iterator[tuple[int, SqlToken]]:
        """Give each name, word or text that stands in front of a bracket, with its index."""
        for index, (token, following) in enumerate(pairwise(self.tokens)):
            if following.kind == "L_PAREN" and (token.kind in _QUOTED or re.search(r"\w", token.text)):
                yield index, token


class SqlError(ValueError):
    """The text is not SQL that can be read; carries one problem, without its place in the spec."""

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint

    def at(self, where: str) -> Problem:
        """Return the problem for the option that held the text."""
        return Problem(where, self.what, self.hint)


@lru_cache(maxsize=1024)
def read(text: str) -> Statement:
    """Read one SELECT statement in Spark's dialect.

    :raises SqlError: it cannot be read, is empty, is no query, or is more than one.
    """
    from sqlglot import exp
    from sqlglot.dialects.spark import Spark
    from sqlglot.errors import ParseError, SqlglotError

    dialect = Spark()
    try:
        raw = _short_lists(_functions_named_window(dialect.tokenize(text)))
        parsed = dialect.parser().parse(raw, text)
        trees = [tree for tree in parsed if not isinstance(tree, exp.Semicolon | None)]
    except ParseError as error:
        raise SqlError(_parse_message(error)) from error
    except (SqlglotError, RecursionError) as error:
        raise SqlError(f"is not SQL that Spark can read: {str(error).splitlines()[0]}") from error
    if len(trees) != 1:
        raise SqlError(f"holds {len(trees)} statements, not one", "write a single SELECT")
    if not isinstance(trees[0], exp.Query):
        raise SqlError(f"is {_article(trees[0].key)} statement, not a query", "write a single SELECT")
    return Statement(text, _located(raw), trees[0])


def _functions_named_window(tokens: list[Any]) -> list[Any]:
    """Let ``GROUP BY window(ts, '1 minute')`` be a call: sqlglot takes it for a WINDOW clause."""
    from sqlglot.tokens import Token as RawToken
    from sqlglot.tokens import TokenType

    def fix(token: Any, following: Any) -> Any:
        if token.token_type != TokenType.WINDOW or following.token_type != TokenType.L_PAREN:
            return token
        return RawToken(
            TokenType.VAR, token.text, token.line, token.col, token.start, token.end, token.comments
        )

    return [fix(*pair) for pair in zip(tokens, [*tokens[1:], tokens[-1]], strict=True)] if tokens else []


def _short_lists(tokens: list[Any]) -> list[Any]:
    """Leave out all but the first literals of long IN lists: how many there are changes nothing of its shape.

    A hundred thousand values would else be as many nodes of the tree, which everything here walks over.
    """
    kept: list[Any] = []
    index = 0
    while index < len(tokens):
        kept.append(tokens[index])
        index += 1
        if tokens[index - 1].token_type.name == "L_PAREN" and _is_word_in(tokens, index - 2):
            end = _end_of_literals(tokens, index)
            if end - index > 2 * _LITERALS_KEPT:
                kept += tokens[index : index + 2 * _LITERALS_KEPT]
                index = end - 1  # the last literal, behind the comma that was kept
    return kept


def _is_word_in(tokens: list[Any], index: int) -> bool:
    return index >= 0 and tokens[index].token_type.name == "IN"


def _end_of_literals(tokens: list[Any], index: int) -> int:
    """Return the place behind ``literal, literal, …`` that begins here; the same place where none does."""
    names = [_LITERALS, _COMMAS]
    start = index
    while index < len(tokens) and tokens[index].token_type.name in names[(index - start) % 2]:
        index += 1
    return index if (index - start) % 2 else max(index - 1, start)


def _located(raw: list[Any]) -> tuple[SqlToken, ...]:
    tokens, depth = [], 0
    for token in raw:
        if token.token_type.name == "SEMICOLON":
            break
        depth -= token.text in CLOSING and not _quoted(token)
        tokens.append(SqlToken(token.token_type.name, token.text, token.start, token.end + 1, depth))
        depth += token.text in OPENING and not _quoted(token)
    return tuple(tokens)


def _quoted(token: Any) -> bool:
    return token.token_type.name in _QUOTED


def _parse_message(error: Any) -> str:
    first = error.errors[0] if error.errors else {}
    place = f" at line {first['line']}, near {first['highlight']!r}" if first.get("highlight") else ""
    what = first.get("description", "unreadable").rstrip(".")
    return f"is not SQL that Spark can read: {what[:1].lower()}{what[1:]}{place}"


def _article(word: str) -> str:
    return f"an {word.upper()}" if word[:1] in "aeiou" else f"a {word.upper()}"
