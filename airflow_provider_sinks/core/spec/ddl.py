"""Reads a schema in Spark's DDL, such as ``viewtime long, userid string``: its columns, and misspelt types.

A small reader of its own, because the columns must be known without a Spark session: to check the key, and
to know what ``*`` stands for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from airflow_provider_sinks.core.errors import nearest
from airflow_provider_sinks.core.spec.problems import UnfitError

_TYPES = """
    boolean byte tinyint short smallint int integer long bigint float real double string binary date
    timestamp timestamp_ntz timestamp_ltz decimal dec numeric char character varchar interval variant void
    array map struct
    """
TYPES = frozenset(_TYPES.split())
DEEPEST = 50
_TOKEN = re.compile(r"\s+|--[^\n]*|(`(?:[^`]|``)*`|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\w+|[<>(),:])")


@dataclass
class _Reader:
    tokens: list[str]
    place: int = 0

    @property
    def next(self) -> str:
        return self.tokens[self.place] if self.place < len(self.tokens) else ""

    def take(self, *expected: str) -> str:
        token = self.next
        if not token or (expected and token.lower() not in expected):
            found = f"{token!r}" if token else "the end"
            raise UnfitError(
                f"expected {' or '.join(expected) or 'more'}, found {found}", "name type, name type, …"
            )
        self.place += 1
        return token

    def skip(self, token: str) -> bool:
        found = self.next.lower() == token
        self.place += found
        return found


@lru_cache(maxsize=1024)
def columns_of(ddl: str) -> tuple[str, ...]:
    """Return the names of the columns, in order.

    :raises UnfitError: it is not DDL that Spark reads, with the nearest type where one is misspelt.
    """
    reader = _Reader(_tokens(ddl))
    names = _fields(reader, "", 0)
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise UnfitError(f"column {name!r} stands twice")
        seen.add(name.lower())
    return tuple(names)


def struct_fields(kind: str) -> tuple[str, ...]:
    """Return the names of the fields of a struct.

    :param kind: its type, ``struct<…>``.
    """
    reader = _Reader(_tokens(kind))
    reader.take("struct")
    reader.take("<")
    return tuple(_fields(reader, ">", 1))


def _tokens(ddl: str) -> list[str]:
    tokens, place = [], 0
    while place < len(ddl):
        match = _TOKEN.match(ddl, place)
        if match is None:
            raise UnfitError(f"{ddl[place : place + 20]!r} cannot be read", "name type, name type, …")
        tokens += [match.group(1)] if match.group(1) else []
        place = match.end()
    return tokens


def _fields(reader: _Reader, end: str, depth: int) -> list[str]:
    if end and reader.next == end:
        return []
    names = [_field(reader, depth)]
    while reader.skip(","):
        names.append(_field(reader, depth))
    if reader.next != end:
        reader.take(",", *([end] if end else []))
    return names


def _field(reader: _Reader, depth: int) -> str:
    name = reader.take()
    if not re.match(r"[\w`]", name):
        raise UnfitError(f"expected a column's name, found {name!r}", "name type, name type, …")
    if depth:  # Spark takes the colon in struct<a: int>, and not in front
        reader.skip(":")
    _type(reader, depth)
    if reader.skip("not"):
        reader.take("null")
    if reader.skip("comment"):
        reader.take()
    if reader.skip("collate"):
        reader.take()
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


def _type(reader: _Reader, depth: int) -> None:
    if depth > DEEPEST:
        raise UnfitError("types are nested too deeply")
    if not reader.next:
        raise UnfitError("the last column has no type", "name type, name type, …")
    kind = reader.take().lower()
    if kind not in TYPES:
        raise UnfitError(f"{kind!r} is not a type of Spark", nearest(kind, TYPES))
    if kind in ("array", "map", "struct"):
        _nested(reader, kind, depth + 1)
    elif kind == "interval":
        while re.fullmatch(r"(?i)year|month|day|hour|minute|second|to", reader.next):
            reader.take()
    elif reader.skip("("):
        while not reader.skip(")"):
            reader.take()
    if kind == "string" and reader.skip("collate"):
        reader.take()


def _nested(reader: _Reader, kind: str, depth: int) -> None:
    reader.take("<")
    if kind == "struct":
        _fields(reader, ">", depth)
    else:
        _type(reader, depth)
        if kind == "map":
            reader.take(",")
            _type(reader, depth)
    reader.take(">")
