"""The last act of the demo: a connection is altered under a sink that runs, and no row is lost by it.

The sink runs without an end and is fed all the time. A person fills in the form of
``dags/alter_connection.py``: the connection shall lead to the broker's other listener, which demands a user.
The password is a Variable, and stands in no form. The sink is then launched again in place, and all that it
wrote, before and after, is audited.
"""

from __future__ import annotations

from collections.abc import Callable

from airflow_provider_sinks.clients.wait import look_until
from airflow_provider_sinks.core.launch.files import LaunchFiles
from airflow_provider_sinks.core.launch.status import SinkState, SinkStatus
from airflow_provider_sinks.local.processes import LocalServiceError, tail
from airflow_provider_sinks.local.progress import step
from airflow_provider_sinks.local.stack import PASSWORD_VARIABLE, USER, Stack
from scripts.demo.audit import audit
from scripts.demo.feed import Feed
from scripts.demo.runs import run_dag
from scripts.demo.say import quote

SINK, SOURCE, TARGET = "pageviews_clean", "pageviews", "pageviews-clean"
_FORM, _FORM_TASKS = "alter_connection", ("plan", "decide", "approve", "apply")
_SHOWN = ("keep: ", "commit: ", "watch: ", "undo: ", "forget: ", f"sink {SINK}: ")
_WAIT_SECONDS = 240.0
_POLL_SECONDS = 0.5


def move_a_running_sink(stack: Stack) -> None:
    """Start the sink, move it, end it, and compare its target with its source."""
    stack.airflow.unpause(SINK)
    with Feed(stack.broker, SOURCE) as feed:
        _wait(stack, "running", lambda seen: seen.rows >= feed.rows - 1000)
        before = feed.rows
        run = run_dag(stack, _FORM, tasks=_FORM_TASKS, form=_filled_in(stack))
        events = stack.airflow.task_events(run, "apply")
        quote(event for event in events if event.startswith(_SHOWN))
        _wait(stack, "running on the other listener", lambda seen: _total(seen) > before and seen.launch > 1)
    _wait(stack, "has written everything", lambda seen: _total(seen) >= feed.rows)
    quote([stack.airflow.command("sinks", "pause", SINK).strip()])
    _audit(stack, feed.rows)


def _filled_in(stack: Stack) -> dict[str, object]:
    """Return the form as it is filled in: the options that change, and the word to do it."""
    options = {**stack.broker.client_config(USER), "sasl.password": {"secret": PASSWORD_VARIABLE}}
    return {"conn_id": "kafka_prod", "set": options, "dry_run": False}


def _wait(stack: Stack, what: str, holds: Callable[[SinkStatus], bool]) -> None:
    """Wait for the status of the newest launch, and show it."""
    with step(f"Sink {SINK}") as line:

        def look() -> SinkStatus | None:
            seen = _newest(stack)
            line.say(seen.one_line() if seen else "waiting for its first launch")
            return seen

        def is_so(seen: SinkStatus | None) -> bool:
            return seen is not None and seen.state is SinkState.RUNNING and holds(seen)

        seen = look_until(look, is_so, _WAIT_SECONDS, pause_seconds=_POLL_SECONDS)
        if seen is None or not is_so(seen):
            raise LocalServiceError(f"sink {SINK}: not {what}", _last_words(stack))
        line.leave(f"{what}; launch {seen.launch}: {_total(seen):,} rows through epoch {seen.epoch}")


def _total(seen: SinkStatus) -> int:
    return sum(seen.positions.values())


def _launches(stack: Stack) -> list[LaunchFiles]:
    """Return the launches of the sink, oldest first."""
    return [LaunchFiles(file.parent) for file in sorted(stack.launches(SINK).glob("*/launch.json"))]


def _newest(stack: Stack) -> SinkStatus | None:
    """Return the status of the newest launch, or ``None`` before its first."""
    launches = _launches(stack)
    text = launches[-1].read_status() if launches else None
    return SinkStatus.from_json(text) if text else None


def _last_words(stack: Stack) -> str:
    launches = _launches(stack)
    return tail(launches[-1].driver_log) if launches else "It was not launched."


def _audit(stack: Stack, rows: int) -> None:
    with step("Audit") as line:
        result = audit(stack.broker, {}, source=SOURCE, target=TARGET, progress=f"_sinks-progress-{SINK}")
        line.leave(
            f"{result.rows_out:,} rows out of {result.rows_in:,} rows in, "
            f"missing {result.missing}, duplicates {result.duplicates}"
        )
    if not result.is_exact or result.rows_in != rows:
        raise LocalServiceError("the target is not what it should be", str(result))
