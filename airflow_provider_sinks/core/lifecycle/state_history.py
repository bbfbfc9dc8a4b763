"""Where a sink stands in its life, since when, and what came before: a short history that does not flap.

::

    created --> starting --> running --> stopped
                   ^  |         |
                   |  `---------+-----> stalled   Airflow tries again by itself
                   |                    failed    a person is needed
                   `--- paused (its DAG is, and no task is left), dropped

    orphaned: it runs, and no DAG names it any more

An entry of the history is written by the task that runs the sink, when its status changes. A launch that
begins after a stall is not news before it runs, and the same error again counts up: a sink that fails at
every try has one entry, however long it does. *Created*, *paused* and silence come from what Airflow shows.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, assert_never

from airflow_provider_sinks.core.errors import kind_of
from airflow_provider_sinks.core.launch.status import SinkState, SinkStatus, StatusError
from airflow_provider_sinks.core.progress.record import utc_now

HISTORY_MAX = 20
"""How many entries are kept."""
SILENCE = timedelta(minutes=3)
"""After so long without a word a running sink counts as stalled; an idle one is shown once a minute."""
_TEXT_MAX = 400


class HistoryState(enum.StrEnum):
    """Where a sink stands."""

    CREATED = "created"
    STARTING = "starting"
    RUNNING = "running"
    STALLED = "stalled"
    STOPPED = "stopped"
    PAUSED = "paused"
    FAILED = "failed"
    DROPPED = "dropped"
    ORPHANED = "orphaned"


@dataclass(frozen=True)
class Entry:
    """One part of a sink's life.

    :param since: when it began, in UTC.
    :param at: when it was seen last.
    :param launch: the newest launch in it.
    :param times: how often the same thing came again, from 1.
    """

    state: HistoryState
    since: str
    at: str = ""
    launch: int = 0
    times: int = 1
    error: StatusError | None = None

    @classmethod
    def from_mapping(cls, data: Mapping[str, Any]) -> Entry:
        """Read an entry as :func:`to_mappings` wrote it."""
        error = StatusError.from_mapping(data["error"]) if data.get("error") else None
        return cls(**{**data, "state": HistoryState(data["state"]), "error": error})


StateHistory = tuple[Entry, ...]


def told(history: StateHistory, status: SinkStatus) -> StateHistory:
    """Return the history after a status was heard; the very same one if that is no news."""
    state = _state_of(status)
    last = history[-1] if history else None
    if state is None or (last is not None and _is_over(last, status.launch)):
        return history
    entry = Entry(state, status.at, status.at, status.launch, error=_short(status.error))
    if last is None or not _is_more_of(last, entry):
        return (*history, entry)[-HISTORY_MAX:]
    if last.launch == entry.launch:
        return history
    came_again = entry.state is last.state and entry.error is not None
    times = last.times + 1 if came_again else last.times
    launch = last.launch if last.state is not entry.state else entry.launch
    return (*history[:-1], replace(last, at=entry.at, launch=launch, times=times))


def noted(history: StateHistory, state: HistoryState) -> StateHistory:
    """Return the history after a verb: *paused* or *dropped*."""
    now = utc_now()
    if history and history[-1].state is state:
        return history
    launch = history[-1].launch if history else 0
    return (*history, Entry(state, now, now, launch))[-HISTORY_MAX:]


def standing(
    history: StateHistory,
    *,
    is_active: bool,
    is_paused: bool,
    heard_at: str,
    is_orphan: bool = False,
    now: datetime | None = None,
) -> Entry:
    """Return where a sink stands now.

    :param is_active: a task of it runs, waits or is about to.
    :param is_paused: no DAG starts it any more.
    :param heard_at: when its driver was last heard of, in UTC, or empty.
    :param is_orphan: a task or a driver of it runs, and no DAG names it.
    """
    if is_orphan:
        return Entry(HistoryState.ORPHANED, "")
    last = history[-1] if history else Entry(HistoryState.CREATED, "")
    if not is_active:
        return _at_rest(last, heard_at, is_paused=is_paused)
    if last.state in (HistoryState.RUNNING, HistoryState.STARTING):
        silent = _silence(heard_at, now or datetime.now(UTC))
        return replace(last, state=HistoryState.STALLED, error=silent) if silent else last
    return last if last.state is HistoryState.STALLED else Entry(HistoryState.STARTING, "")


def to_mappings(history: Iterable[Entry]) -> list[dict[str, Any]]:
    """Return a history as plain JSON values."""
    return [json.loads(json.dumps(asdict(entry))) for entry in history]


def from_mappings(data: Iterable[Mapping[str, Any]]) -> StateHistory:
    """Read a history as :func:`to_mappings` wrote it."""
    return tuple(Entry.from_mapping(entry) for entry in data)


def _at_rest(last: Entry, heard_at: str, *, is_paused: bool) -> Entry:
    if last.state in (HistoryState.CREATED, HistoryState.FAILED, HistoryState.DROPPED):
        return last
    if last.state is HistoryState.PAUSED and is_paused:
        return last
    if last.state is HistoryState.STALLED:  # its tries are used up
        return replace(last, state=HistoryState.FAILED)
    return replace(
        last, state=HistoryState.PAUSED if is_paused else HistoryState.STOPPED, since=heard_at or last.at
    )


def _is_over(last: Entry, launch: int) -> bool:
    """Return whether a launch has nothing to tell any more: a newer one has, or a person ended it."""
    if last.state in (HistoryState.PAUSED, HistoryState.DROPPED):
        return last.launch >= launch
    return last.launch > launch


def _is_more_of(last: Entry, entry: Entry) -> bool:
    """Return whether an entry says nothing that the last one does not."""
    if entry.state is HistoryState.STARTING and last.state is HistoryState.STALLED:
        return True
    return entry.state is last.state and _kind(entry.error) == _kind(last.error)


def _kind(error: StatusError | None) -> tuple[str, str] | None:
    return (error.kind, error.primary) if error else None


def _state_of(status: SinkStatus) -> HistoryState | None:
    match status.state:
        case SinkState.STARTING:
            found = HistoryState.STARTING
        case SinkState.RUNNING:
            found = HistoryState.RUNNING
        case SinkState.STOPPED:
            found = HistoryState.STOPPED
        case SinkState.REFUSED:
            found = HistoryState.FAILED
        case SinkState.FENCED:
            return None  # its successor tells
        case SinkState.FAILED:
            heals = status.error is None or kind_of(status.error.kind).retryable
            found = HistoryState.STALLED if heals else HistoryState.FAILED
        case _:
            assert_never(status.state)
    return found


def _short(error: StatusError | None) -> StatusError | None:
    if error is None:
        return None
    primary, detail, hint = (
        text if len(text) <= _TEXT_MAX else f"{text[: _TEXT_MAX - 1]}…"
        for text in (error.primary, error.detail, error.hint)
    )
    return StatusError(error.kind, primary, detail, hint)


def _silence(heard_at: str, now: datetime) -> StatusError | None:
    try:
        silent = now - datetime.fromisoformat(heard_at)
    except (TypeError, ValueError):
        return None
    if silent <= SILENCE:
        return None
    seconds = int(silent.total_seconds())
    return StatusError("UnavailableError", f"nothing was heard of the driver for {seconds} s")
