"""The steps of an alteration: which comes next, from what is seen. A dry run prints what a run does.

Nothing is remembered between tries but what the world shows: the connection, and ``<id>.before`` with the old
options. So a try that comes after a crash looks, and goes on or undoes.

Why no end is half:

* The connection changes by one PATCH at a time, to options that were judged as a whole, or back.
* ``<id>.before`` stands before the first PATCH and until nothing more is to be decided: while it stands, the
  connection holds the old options, or the new ones, or somebody else's.
* Going back is marked on ``<id>.before`` before it is done, so that nobody goes forward again after it.
* Somebody else's options are never overwritten. Only a secret that was edited between two tries is taken for
  ours: see ``core/alter/standing.py``.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any


class Step(enum.StrEnum):
    """One thing that is done."""

    READ = "read"
    VALIDATE = "validate"
    PREFLIGHT = "preflight"
    KEEP = "keep"
    COMMIT = "commit"
    WATCH = "watch"
    UNDO = "undo"
    WATCH_OLD = "watch_old"
    FORGET = "forget"


class End(enum.StrEnum):
    """How an alteration ended."""

    ALTERED = "altered"
    UNCHANGED = "unchanged"
    UNDONE = "undone"
    NOT_UNDONE = "not undone"
    OVERTAKEN = "overtaken"
    LOCKED = "locked"


class Row(enum.StrEnum):
    """Which options the connection holds."""

    OLD = "old"
    NEW = "new"
    SAME = "same"
    """The new options are the old ones."""
    OTHER = "other"
    """Somebody else's: seen only while ``<id>.before`` stands."""


class Before(enum.StrEnum):
    """What ``<id>.before`` is."""

    ABSENT = "absent"
    OURS = "ours"
    UNDOING = "undoing"
    """Ours, and marked: the old options are being put back."""
    THEIRS = "theirs"


class Watch(enum.StrEnum):
    """How the dependents did that were watched."""

    NONE = "none"
    BACK = "back"
    FAILED = "failed"


@dataclass(frozen=True)
class Wishes:
    """What the user asked for."""

    validate: bool = True
    restart: bool = True
    rollback: bool = True


@dataclass(frozen=True)
class Facts:
    """What is known: of the world, and of this try.

    :param validated: the new options were found well in this try.
    :param preflighted: so was each dependent with them.
    :param watch: how the dependents did on the new options, in this try.
    :param watched_old: whether they were watched on the old options again.
    :param end: how it ended, once ``<id>.before`` is gone for good.
    """

    row: Row
    before: Before
    validated: bool = False
    preflighted: bool = False
    watch: Watch = Watch.NONE
    watched_old: bool = False
    end: End | None = None


def next_step(facts: Facts | None, wishes: Wishes) -> Step | End:
    """Return what is to be done next, or how it ended.

    :param facts: ``None`` before anything was looked at.
    """
    if facts is None:
        return Step.READ
    if end := _end(facts):
        return end
    if facts.row in (Row.OTHER, Row.SAME):
        return Step.FORGET
    if facts.before is Before.UNDOING:
        return _back(facts, wishes)
    return _forth(facts, wishes) if facts.row is Row.OLD else _committed(facts, wishes)


def plan(facts: Facts, wishes: Wishes) -> tuple[Step, ...]:
    """Return all steps that are still to be done if all goes well."""
    steps: list[Step] = []
    while isinstance(step := next_step(facts, wishes), Step):
        steps.append(step)
        facts = after(step, facts)
    return tuple(steps)


def after(step: Step, facts: Facts) -> Facts:
    """Return what is known when a step has gone well. A run looks instead of assuming it."""
    if step is Step.FORGET:
        return replace(facts, before=Before.ABSENT, end=end_of(facts))
    return replace(facts, **_AFTER[step])


_AFTER: Mapping[Step, Mapping[str, Any]] = {
    Step.READ: {},
    Step.VALIDATE: {"validated": True},
    Step.PREFLIGHT: {"preflighted": True},
    Step.KEEP: {"before": Before.OURS},
    Step.COMMIT: {"row": Row.NEW},
    Step.WATCH: {"watch": Watch.BACK},
    Step.UNDO: {"before": Before.UNDOING, "row": Row.OLD},
    Step.WATCH_OLD: {"watched_old": True},
}


def end_of(facts: Facts) -> End:
    """Return what it means that ``<id>.before`` is removed now."""
    if facts.row is Row.OTHER:
        return End.OVERTAKEN
    if facts.row is Row.SAME:
        return End.UNCHANGED
    if facts.row is Row.OLD:
        return End.UNDONE
    return End.NOT_UNDONE if facts.watch is Watch.FAILED else End.ALTERED


def _end(facts: Facts) -> End | None:
    if facts.end is not None:
        return facts.end
    if facts.before is Before.THEIRS:
        return End.LOCKED
    return End.UNCHANGED if facts.before is Before.ABSENT and facts.row is Row.SAME else None


def _forth(facts: Facts, wishes: Wishes) -> Step:
    if wishes.validate and not facts.validated:
        return Step.VALIDATE
    if wishes.validate and not facts.preflighted:
        return Step.PREFLIGHT
    return Step.KEEP if facts.before is Before.ABSENT else Step.COMMIT


def _committed(facts: Facts, wishes: Wishes) -> Step:
    if wishes.restart and facts.watch is Watch.NONE:
        return Step.WATCH
    if facts.watch is Watch.FAILED and wishes.rollback:
        return Step.UNDO
    return Step.FORGET


def _back(facts: Facts, wishes: Wishes) -> Step:
    if facts.row is Row.NEW:
        return Step.UNDO
    if wishes.restart and not facts.watched_old:
        return Step.WATCH_OLD
    return Step.FORGET
