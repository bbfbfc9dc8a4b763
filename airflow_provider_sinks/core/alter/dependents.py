"""The sinks that use a connection: what each does, and whether it came back after the connection changed.

A sink counts its launches, and counts one before it reads its connections. So a launch that is counted after
a change was read back runs on the new options. One that was counted while the change was made may run on
either: if on the old ones, it will launch again within :data:`SETTLED_SECONDS`; if it is still there then, it
runs on the new ones.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from airflow_provider_sinks.core.connection.follow import LAUNCH_SECONDS
from airflow_provider_sinks.core.errors import FencedError, kind_of
from airflow_provider_sinks.core.launch.status import SinkState
from airflow_provider_sinks.core.retries import RETRIES
from airflow_provider_sinks.core.spec.sink import SinkSpec

SETTLED_SECONDS = LAUNCH_SECONDS + 60.0
"""A sink reads its connections every few seconds, and launches again at most once a minute."""

_AT_WORK = frozenset({"running", "deferred"})
_ABOUT_TO = frozenset({"queued", "scheduled", "restarting", "up_for_reschedule", "awaiting_input"})


class Activity(enum.StrEnum):
    """What a sink does; its value completes *the sink is ...*."""

    RUNNING = "running"
    STARTING = "starting"
    QUEUED = "queued"
    RETRYING = "waiting for its retry"
    PAUSED = "paused"
    STOPPED = "not running"


@dataclass(frozen=True)
class NewestLaunch:
    """What a sink says of its newest launch.

    :param counted: how many launches the sink has begun.
    :param launch: the number of the launch that the rest tells of; 0 before the first.
    :param epoch_done: an epoch of this launch has ended.
    :param error: why it ended, if it did: ``kind``, ``primary``, ``detail`` and ``hint``.
    """

    counted: int = 0
    launch: int = 0
    state: SinkState | None = None
    epoch_done: bool = False
    error: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, status: Mapping[str, Any] | None, memory: Mapping[str, Any] | None) -> NewestLaunch:
        """Read what stands in the state store of a sink's asset.

        :param status: under ``status``; the sink's published status.
        :param memory: under ``witness``; it counts the launches.
        """
        counted = int((memory or {}).get("launch", 0))
        if not status:
            return cls(counted)
        launch = int(status["launch"])
        epoch_done = status.get("lag") is not None or bool(status.get("rows"))
        state = SinkState(status["state"])
        error = status.get("error") or None
        if (
            error and error.get("launch", launch) != launch
        ):  # of a launch before, and shown until this commits
            error = None
        return cls(max(counted, launch), launch, state, epoch_done, error)


@dataclass(frozen=True)
class Dependent:
    """A sink that uses the connection.

    :param spec: the sink's spec as its asset tells it; ``None`` where it is only known when the task runs.
    :param follows: it launches again by itself when a connection changes.
    :param states: of the newest run of each task that runs the sink.
    :param paused: its DAG is paused.
    """

    sink: str
    spec: SinkSpec | None
    follows: bool
    states: tuple[str, ...]
    paused: bool
    newest: NewestLaunch

    @property
    def activity(self) -> Activity:
        """What the sink does."""
        at_work = _AT_WORK & set(self.states)
        if at_work == {"deferred"} and self.paused:
            return Activity.PAUSED  # Airflow does not take up a deferred task of a paused DAG
        if at_work:
            return Activity.RUNNING if self.newest.state is SinkState.RUNNING else Activity.STARTING
        if "up_for_retry" in self.states:
            return Activity.RETRYING
        if _ABOUT_TO & set(self.states):
            return Activity.QUEUED
        return Activity.PAUSED if self.paused else Activity.STOPPED

    @property
    def is_watched(self) -> bool:
        """Whether it must come back: it was running, and follows."""
        return self.follows and self.activity is Activity.RUNNING

    def why_unwatched(self) -> str:
        """Return why nobody waits for it."""
        if not self.follows and self.activity in (Activity.RUNNING, Activity.STARTING):
            return "runs on with the old options until it is launched again: follow_connections=False"
        return f"is {self.activity}; its next launch takes the options that stand then"


@dataclass(frozen=True)
class Baseline:
    """Where a watched sink was when the connection changed.

    :param before: the launches counted before the change.
    :param after: the launches counted when the change had been read back.
    :param stays: a launch that need not be followed by another one; 0 for none.
    """

    before: int
    after: int
    stays: int = 0


class Came(enum.StrEnum):
    """Whether a sink came back."""

    BACK = "back"
    NOT_YET = "not yet"
    SETTLING = "settling"
    """It runs, and a little later it is known on which options."""
    FAILED = "failed"
    ENDED = "ended"


@dataclass(frozen=True)
class Return:
    """What became of a watched sink.

    :param why: in words, such as ``launch 4 is running``.
    :param detail: why it failed, in its own words.
    """

    came: Came
    why: str
    detail: str = ""
    hint: str = ""


def judge(baseline: Baseline, now: Dependent, elapsed_seconds: float, *, rows_waiting: bool | None) -> Return:
    """Decide whether a sink came back.

    :param elapsed_seconds: since the connection changed.
    :param rows_waiting: whether its source has rows for it; ``None`` where nobody can tell. A sink that has
        none commits nothing, and is back when it runs.
    """
    newest = now.newest
    launch = f"launch {newest.launch}"
    stays = newest.launch == baseline.stays == newest.counted
    if newest.launch <= baseline.before and not stays:
        return _ended(now) or Return(Came.NOT_YET, f"{launch} has not been replaced yet")
    if newest.state is SinkState.RUNNING:
        if not stays and newest.launch <= baseline.after and elapsed_seconds < SETTLED_SECONDS:
            return Return(Came.SETTLING, f"{launch} began while the connection changed")
        if rows_waiting and not newest.epoch_done:
            return _ended(now) or Return(Came.NOT_YET, f"{launch} is running, and has not committed yet")
        return _ended(now) or Return(Came.BACK, f"{launch} is running")
    return _failed(now, launch) or _ended(now) or _later(now, launch)


def positions_of(memory: Mapping[str, Any] | None) -> Mapping[int, int]:
    """Return where each source partition goes on, from what a sink's asset remembers; empty if unknown."""
    offsets = (memory or {}).get("offsets") or {}
    return {int(partition): int(offset) for partition, offset in offsets.items()}


def newest_states(instances: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return what counts of the instances of a task: all that live, else the newest.

    :param instances: as Airflow's API returns them, newest first.
    """
    states = [str(instance["state"] or "scheduled") for instance in instances]
    alive = [state for state in states if state in _AT_WORK | _ABOUT_TO | {"up_for_retry"}]
    return tuple(alive or states[:1])


def _failed(now: Dependent, launch: str) -> Return | None:
    """Return the failure of a launch that the same options would bring again."""
    kind = kind_of((now.newest.error or {}).get("kind", ""))
    if kind is FencedError:  # by a launch that has words of its own
        return None
    if RETRIES[kind.trouble].task.goes_on():
        return None
    return Return(Came.FAILED, f"{launch} {now.newest.state}", *_words(now.newest.error))


def _later(now: Dependent, launch: str) -> Return:
    """Return what a launch that is not running yet, or that a retry may mend, says of itself."""
    return Return(Came.NOT_YET, f"{launch} is {now.newest.state}", *_words(now.newest.error))


def _words(error: Mapping[str, Any] | None) -> tuple[str, str]:
    """Return what happened, and what helps, in the words of the sink."""
    found = error or {}
    detail = "\n".join(filter(None, [found.get("primary", ""), found.get("detail", "").strip()]))
    return detail, found.get("hint", "")


def _ended(now: Dependent) -> Return | None:
    """Return what the end of the sink's task means: nobody launches it again by itself."""
    if set(now.states) & (_AT_WORK | _ABOUT_TO | {"up_for_retry"}):
        return None
    if "failed" in now.states or "upstream_failed" in now.states:
        error = now.newest.error or {}
        return Return(
            Came.FAILED, "its task failed", error.get("primary", "see its log"), error.get("hint", "")
        )
    return Return(Came.ENDED, "was ended meanwhile, and is not waited for")
