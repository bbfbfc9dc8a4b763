"""The statement form of an alteration, for people who come from Materialize.

>>> parse_statement("ALTER CONNECTION kafka_prod SET (bootstrap.servers 'b:9092'), DROP (client.id)").conn_id
'kafka_prod'

An option may be written with or without quotes, ``=`` before a value may be left out, and the value of a
secret is ``SECRET`` with the name of an Airflow Variable::

    ALTER CONNECTION kafka_prod
      SET (sasl.username = 'new', sasl.password = SECRET sinks_secret_kafka),
      RESET (socket.timeout.ms)
      WITH (VALIDATE = false)

A message names places, and never what stands there, unless it is a word of ours: it may be a password.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from airflow_provider_sinks.core.alter.changes import Change, DropOption, ResetOption, Secret, SetOption
from airflow_provider_sinks.core.errors import ConfigurationError, Problem, nearest

FLAGS = {"VALIDATE": "validate", "DRY RUN": "dry_run", "RESTART": "restart", "ROLLBACK": "rollback"}
"""What ``WITH`` takes, and the argument of the operator that it stands for."""

_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*)
      | (?P<text>'(?:[^']|'')*')
      | (?P<quoted>"(?:[^"]|"")*")
      | (?P<word>[A-Za-z0-9_][A-Za-z0-9_.-]*)
      | (?P<mark>[(),=;])""",
    re.VERBOSE,
)
_KEYWORDS = frozenset({"ALTER", "CONNECTION", "SET", "DROP", "RESET", "WITH", "SECRET", *FLAGS})
_VERBS: Mapping[str, Callable[[str], Change]] = {"DROP": DropOption, "RESET": ResetOption}


@dataclass(frozen=True)
class Statement:
    """What a statement says.

    :param flags: what ``WITH`` says, by the operator's names.
    """

    conn_id: str
    changes: tuple[Change, ...]
    flags: Mapping[str, bool] = field(default_factory=dict)


def parse_statement(text: str) -> Statement:
    """Read a statement.

    :raises ConfigurationError: it cannot be read; with the place.
    """
    return _Parser(text).statement()


@dataclass(frozen=True)
class _Token:
    kind: str
    value: str
    place: int

    def is_word(self, word: str) -> bool:
        return self.kind == "word" and self.value.upper() == word

    @property
    def shown(self) -> str:
        if self.kind == "mark" or self.value.upper() in _KEYWORDS:
            return f'"{self.value}"'
        return {"end": "the end", "word": "another word"}.get(self.kind, "a text in quotes")


class _Parser:
    """Reads from left to right, one token at a time."""

    def __init__(self, text: str) -> None:
        self._tokens = [*_tokens(text), _Token("end", "", len(text))]

    def statement(self) -> Statement:
        for word in ("ALTER", "CONNECTION"):
            self._demand_word(word)
        conn_id = self._name("the id of a connection")
        changes = [*self._action()]
        while self._take_mark(","):
            changes += self._action()
        flags = dict(self._flags()) if self._take_word("WITH") else {}
        self._take_mark(";")
        if self._next.kind != "end":
            self._fail('"," and SET, DROP or RESET, or WITH, or the end')
        return Statement(conn_id, tuple(changes), flags)

    def _action(self) -> list[Change]:
        if self._take_word("SET"):
            return self._in_brackets(self._set)
        verb = next((verb for verb in _VERBS if self._take_word(verb)), None)
        if verb is None:
            self._fail("SET, DROP or RESET")
        return self._in_brackets(lambda: _VERBS[verb](self._name("an option")))

    def _set(self) -> Change:
        name = self._name("an option")
        self._take_mark("=")
        if self._take_word("SECRET"):
            return SetOption(name, Secret(self._name("the name of a Variable")))
        if self._next.kind not in ("text", "quoted", "word"):
            self._fail(f"a value for {name}")
        return SetOption(name, self._take().value)

    def _flags(self) -> Iterator[tuple[str, bool]]:
        return iter(self._in_brackets(self._flag))

    def _flag(self) -> tuple[str, bool]:
        place = self._next
        name = self._name("VALIDATE").upper().replace("_", " ")
        while self._next.kind == "word" and self._next.value.upper() not in ("TRUE", "FALSE"):
            name += f" {self._take().value.upper()}"
        if name not in FLAGS:
            hint = nearest(name, FLAGS) or f"one of {', '.join(FLAGS)}"
            raise _unreadable(f"WITH does not take {name}", hint, place)
        self._take_mark("=")
        if self._next.kind != "word":  # WITH (VALIDATE) means true
            return FLAGS[name], True
        return FLAGS[name], self._take().value.upper() == "TRUE"

    def _in_brackets(self, item: Callable[[], Any]) -> list[Any]:
        self._demand_mark("(")
        items = [item()]
        while self._take_mark(","):
            items.append(item())
        self._demand_mark(")")
        return items

    def _name(self, what: str) -> str:
        if self._next.kind not in ("word", "quoted"):
            self._fail(what)
        return self._take().value

    @property
    def _next(self) -> _Token:
        return self._tokens[0]

    def _take(self) -> _Token:
        return self._tokens.pop(0)

    def _take_word(self, word: str) -> bool:
        found = self._next.is_word(word)
        if found:
            self._take()
        return found

    def _take_mark(self, mark: str) -> bool:
        found = self._next.kind == "mark" and self._next.value == mark
        if found:
            self._take()
        return found

    def _demand_word(self, word: str) -> None:
        if not self._take_word(word):
            self._fail(word)

    def _demand_mark(self, mark: str) -> None:
        if not self._take_mark(mark):
            self._fail(f'"{mark}"')

    def _fail(self, expected: str) -> NoReturn:
        raise _unreadable(f"expected {expected}, found {self._next.shown}", "", self._next)


def _tokens(text: str) -> Iterator[_Token]:
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            token = _Token("mark", text[place], place)
            raise _unreadable("cannot be read from here on", "a quote may be open", token)
        kind, value = str(match.lastgroup), match.group()
        if kind in ("text", "quoted"):
            value = value[1:-1].replace(value[0] * 2, value[0])
        if kind != "space":
            yield _Token(kind, value, place)
        place = match.end()


def _unreadable(what: str, hint: str, token: _Token) -> ConfigurationError:
    problem = Problem(f"statement, character {token.place + 1}", what, hint)
    usage = "ALTER CONNECTION <id> SET (<option> = <value>, ...), DROP (<option>), RESET (<option>) "
    return ConfigurationError("the statement cannot be read", [problem], f"{usage}WITH (VALIDATE = false)")
