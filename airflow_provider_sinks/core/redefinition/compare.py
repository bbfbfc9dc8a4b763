"""Compares a declared spec with the one in force. Pure: two specs and what was written in, differences out.

The spec in force is the one in the driver's record: what wrote the newest rows. Secrets stand in neither.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.core.query.column_texts import column_texts
from airflow_provider_sinks.core.query.sql import SqlError, read
from airflow_provider_sinks.core.redefinition.bearing import Bearing, When
from airflow_provider_sinks.core.redefinition.options import COMMON, QUERY
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.core.wording import one_line

_SHOWN_LENGTH = 120
_COLUMNS = "columns of the target"
_Path: TypeAlias = tuple[str, ...]
_QUERY_PATHS: tuple[_Path, ...] = tuple((name,) for name in QUERY)


@dataclass(frozen=True)
class WrittenSoFar:
    """What the comparison must know of the progress.

    :param has_rows: rows were written, by this generation or one before.
    :param has_letters: dead letters were, likewise.
    :param has_checkpoint: Spark has a checkpoint that the run in force has announced.
    """

    has_rows: bool = True
    has_letters: bool = True
    has_checkpoint: bool = True


class RedefinitionState(enum.Enum):
    """What the differences together come to."""

    NOT_COMPARED = "not compared"
    SAME = "same"
    GOES_ON = "goes on"
    ELSEWHERE = "needs a new generation, if what is there is another one"
    NEW_GENERATION = "needs a new generation"
    NEW_STATE = "needs a new generation, and the state is of another query"

    @property
    def told(self) -> str:
        """What a person is told."""
        needs = (RedefinitionState.ELSEWHERE, RedefinitionState.NEW_STATE)
        return RedefinitionState.NEW_GENERATION.value if self in needs else self.value


@dataclass(frozen=True)
class Difference:
    """One option that is another one than in the spec in force.

    :param before: its value there, as JSON has it; ``None`` where it is not set.
    :param needs_new_generation: the same generation must not take it.
    :param why: what it means, or why it needs one.
    """

    option: str
    before: Any
    now: Any
    bearing: Bearing
    needs_new_generation: bool
    why: str

    @property
    def stops(self) -> bool:
        """Whether nothing but this difference stops a start."""
        return self.needs_new_generation and not self.bearing.by_ids

    def __str__(self) -> str:
        needs = f"needs a new generation: {self.why}" if self.needs_new_generation else self.why
        return f"{self.option}: {_shown(self.before)} -> {_shown(self.now)}: {needs}"

    def to_mapping(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {
            "option": self.option,
            "before": self.before,
            "now": self.now,
            "needs_new_generation": self.needs_new_generation,
            "why": self.why,
        }


@dataclass(frozen=True)
class Redefinition:
    """What a declared spec changes of the one in force.

    :param unread: why they could not be compared; empty where they were.
    """

    differences: tuple[Difference, ...] = ()
    unread: str = ""

    @property
    def state(self) -> RedefinitionState:
        """What the differences together come to."""
        stopping = [one for one in self.differences if one.stops]
        if self.unread:
            return RedefinitionState.NOT_COMPARED
        if any(one.bearing.needs is When.HAS_STATE for one in stopping):
            return RedefinitionState.NEW_STATE
        if stopping:
            return RedefinitionState.NEW_GENERATION
        if any(one.needs_new_generation for one in self.differences):
            return RedefinitionState.ELSEWHERE
        return RedefinitionState.GOES_ON if self.differences else RedefinitionState.SAME

    def to_mapping(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        changes = [one.to_mapping() for one in self.differences]
        return {"state": self.state.told, "changes": changes, "reason": self.unread}


def compare(in_force: str, declared: str, progress: WrittenSoFar) -> Redefinition:
    """Return what a declared spec changes.

    :param in_force: the spec in the driver's record, as JSON text.
    :param declared: the one that is to be started, likewise.
    """
    return Redefinition() if in_force == declared else _compare(in_force, declared, progress)


@lru_cache(maxsize=64)
def _compare(in_force: str, declared: str, progress: WrittenSoFar) -> Redefinition:
    now = SinkSpec.parse(json.loads(declared))
    try:
        before = SinkSpec.parse(json.loads(in_force))
    except (ConfigurationError, ValueError) as error:
        return Redefinition(unread=f"this release cannot read the spec in force: {one_line(str(error))}")
    conditions = _conditions(before, now, progress)
    said = {**COMMON, **before.bearings, **now.bearings}
    table = {tuple(path.split(".")): bearing for path, bearing in said.items()}
    found = [
        *_query(before, now),
        *_keys(before, now),
        *_columns(before, now),
        *_walk((), before.to_mapping(), now.to_mapping(), table),
    ]
    return Redefinition(tuple(_judged(*one, conditions) for one in found))


_Found: TypeAlias = tuple[str, Any, Any, Bearing]


def _judged(option: str, before: Any, now: Any, bearing: Bearing, conditions: frozenset[When]) -> Difference:
    needs = bearing.needs in conditions
    return Difference(option, before, now, bearing, needs, bearing.why if needs else bearing.goes_on)


def _conditions(before: SinkSpec, now: SinkSpec, progress: WrittenSoFar) -> frozenset[When]:
    keyed = before.keeps_one_row_of_a_key or now.keeps_one_row_of_a_key
    stateful = before.shape.stateful or now.shape.stateful
    holds = {
        When.ALWAYS: True,
        When.WRITTEN: progress.has_rows,
        When.KEYED: progress.has_rows and keyed,
        When.SET_ASIDE: progress.has_letters,
        When.HAS_STATE: progress.has_checkpoint and stateful,
    }
    return frozenset(when for when, does in holds.items() if does)


def _query(before: SinkSpec, now: SinkSpec) -> Iterator[_Found]:
    """Compare what the SQL says, however it is written and laid out."""
    if _words(before.sql) != _words(now.sql):
        yield "query", _sql(before), _sql(now), COMMON["query"]


def _sql(spec: SinkSpec) -> str:
    """Return the query on one line; one that was made of ``select`` has a comma at the head of each line."""
    return one_line(spec.sql.replace("\n  , ", ", ") if spec.query is None else spec.sql)


def _words(sql: str) -> list[tuple[str, str]] | str:
    try:
        return [(token.kind, token.text) for token in read(sql).tokens]
    except SqlError:
        return sql


def _keys(before: SinkSpec, now: SinkSpec) -> Iterator[_Found]:
    """Compare from what the query makes the columns of the key: under the same name it may be another key."""
    old, new = (column_texts(one.shape, one.source_columns) for one in (before, now))
    for name in now.key_columns:
        was, is_now = old.get(name.lower()), new.get(name.lower())
        if name in before.key_columns and was is not None and is_now is not None and was != is_now:
            yield f"key column {name} of the query", was, is_now, Bearing.KEY


def _columns(before: SinkSpec, now: SinkSpec) -> Iterator[_Found]:
    """Compare the columns that a target has apart from each other, as far as the SQL tells their names."""
    old, new = before.columns_apart, now.columns_apart
    if old is None or new is None:
        return
    for bearing, names, others in ((Bearing.LOST_COLUMNS, old, new), (Bearing.NEW_COLUMNS, new, old)):
        known = {name.lower() for name in others}
        if found := [name for name in names if name.lower() not in known]:
            is_lost = bearing is Bearing.LOST_COLUMNS
            yield _COLUMNS, found if is_lost else None, None if is_lost else found, bearing


def _walk(path: _Path, before: Any, now: Any, table: Mapping[_Path, Bearing]) -> Iterator[_Found]:
    """Give each option below a path that differs."""
    if before == now or path in _QUERY_PATHS:
        return
    bearing = _bearing(path, table)
    parts = [one for one in (before, now) if isinstance(one, Mapping)]
    is_option = path in table and not any(len(known) > len(path) == _alike(path, known) for known in table)
    if parts and (bearing is None or (len(parts) == 2 and not is_option)):
        for name in sorted({str(key) for part in parts for key in part}):
            yield from _walk((*path, name), _part(before, name), _part(now, name), table)
    else:
        yield ".".join(path), before, now, bearing or Bearing.UNSAID


def _part(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else None


def _bearing(path: _Path, table: Mapping[_Path, Bearing]) -> Bearing | None:
    if path in table:
        return table[path]
    return next((bearing for known, bearing in table.items() if _fits(path, known)), None)


def _fits(path: _Path, known: _Path) -> bool:
    return len(path) == len(known) == _alike(path, known)


def _alike(path: _Path, known: _Path) -> int:
    """Return how many names two paths begin with alike."""
    pairs = enumerate(zip(path, known, strict=False))
    return next((index for index, (a, b) in pairs if b not in ("*", a)), min(len(path), len(known)))


def _shown(value: Any) -> str:
    """Return a value for people; none of them is a secret, for a spec holds none."""
    if value is None:
        return "none"
    is_text = isinstance(value, str) and bool(value)
    text = one_line(value if is_text else json.dumps(value, ensure_ascii=False))
    return text if len(text) <= _SHOWN_LENGTH else f"{text[:_SHOWN_LENGTH]}..."
