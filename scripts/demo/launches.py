"""The launches of a sink of the demo, as its status files tell of them."""

from __future__ import annotations

from collections.abc import Callable

from airflow_provider_sinks.clients.wait import look_until
from airflow_provider_sinks.core.launch.files import LaunchFiles
from airflow_provider_sinks.core.launch.status import SinkState, SinkStatus
from airflow_provider_sinks.local.processes import LocalServiceError, tail
from airflow_provider_sinks.local.stack import Stack
from scripts.demo.say import step

_WAIT_SECONDS = 240.0
_POLL_SECONDS = 0.1


def wait_while_it_runs(
    stack: Stack, sink: str, what: str, holds: Callable[[SinkStatus], bool]
) -> LaunchFiles:
    """Wait for the status of the newest launch, show it, and return that launch.

    :param what: what is waited for, to follow "not".
    :param holds: whether that is so, of a sink that runs.
    """
    with step(f"Sink {sink}") as line:

        def look() -> SinkStatus | None:
            seen = _newest_status(stack, sink)
            line.say(seen.one_line() if seen else "waiting for its first launch")
            return seen

        def is_so(seen: SinkStatus | None) -> bool:
            return seen is not None and seen.state is SinkState.RUNNING and holds(seen)

        seen = look_until(look, is_so, _WAIT_SECONDS, pause_seconds=_POLL_SECONDS)
        if seen is None or not is_so(seen):
            raise LocalServiceError(f"sink {sink}: not {what}", _last_words(stack, sink))
        line.leave(f"{what}; launch {seen.launch}: {rows_read(seen):,} rows through epoch {seen.epoch}")
    return launches(stack, sink)[-1]


def rows_read(seen: SinkStatus) -> int:
    """Return how many rows of the source the sink has behind it."""
    return sum(seen.positions.values())


def launches(stack: Stack, sink: str) -> list[LaunchFiles]:
    """Return the launches of a sink, oldest first."""
    return [LaunchFiles(file.parent) for file in sorted(stack.launches(sink).glob("*/launch.json"))]


def _newest_status(stack: Stack, sink: str) -> SinkStatus | None:
    """Return the status of the newest launch, or ``None`` before its first."""
    found = launches(stack, sink)
    text = found[-1].read_status() if found else None
    return SinkStatus.from_json(text) if text else None


def _last_words(stack: Stack, sink: str) -> str:
    found = launches(stack, sink)
    return tail(found[-1].driver_log) if found else "It was not launched."
