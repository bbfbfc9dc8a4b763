"""Runs a DAG of the demo to its end, demands how it ends, and shows the log that tells why it did not."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from airflow_provider_sinks.clients.wait import look_until
from airflow_provider_sinks.local.airflow_rest_api import DagRun
from airflow_provider_sinks.local.processes import LocalServiceError, tail
from airflow_provider_sinks.local.stack import Stack
from scripts.demo.say import step

SINK_TASKS = ("validate", "check_topics", "submit")
_ENDS = ("success", "failed")
_TASK_ENDS = (*_ENDS, "skipped", "upstream_failed")
_RUN_SECONDS = 300.0
_POLL_SECONDS = 1.0
_LAST_LINES = 30
_ASKS = "approve"
_READS_SECONDS = 3.0


def run_dag(
    stack: Stack,
    dag_id: str,
    expected: str = "success",
    *,
    tasks: Sequence[str] = SINK_TASKS,
    form: Mapping[str, object] | None = None,
) -> DagRun:
    """Run a DAG to its end, and demand how it ends; what asks a person is approved.

    :param expected: the state at its end.
    :param tasks: in their order.
    :param form: what a person would fill in.
    """
    return await_end(stack, stack.airflow.trigger(dag_id, form), expected, tasks=tasks)


def await_end(
    stack: Stack, run: DagRun, expected: str = "success", *, tasks: Sequence[str] = SINK_TASKS
) -> DagRun:
    """Wait until a run has ended, and demand how."""
    dag_id = run.dag_id
    approver = _Approver(stack, run)
    with step(f"DAG {dag_id}") as line:

        def look() -> str:
            states = stack.airflow.task_states(run)
            line.say(_in_words(states, tasks))
            approver.look(states)
            # One question for each look: the API server is not to take the processor from what it watches.
            is_over = all(states.get(task) in _TASK_ENDS for task in tasks)
            return stack.airflow.run_state(run) if is_over else "running"

        state = look_until(look, _ENDS.__contains__, _RUN_SECONDS, pause_seconds=_POLL_SECONDS)
        demand(state in _ENDS, f"DAG {dag_id} did not end", stack, run, tasks)
        line.leave(f"{state}; {_in_words(stack.airflow.task_states(run), tasks)}")
    ended = f"the run of DAG {dag_id} ended as {state}, not as {expected}"
    demand(state == expected, ended, stack, run, tasks)
    return run


class _Approver:
    """Approves what a run asks, a moment later, as a person does: Airflow may lose an answer at once."""

    def __init__(self, stack: Stack, run: DagRun) -> None:
        self._stack = stack
        self._run = run
        self._asked_at: dict[int, float] = {}
        self._answered: set[int] = set()

    def look(self, states: Mapping[str, str | None]) -> None:
        """Answer a question once, where one has been asked for some seconds."""
        if states.get(_ASKS) != "awaiting_input":
            return
        airflow = self._stack.airflow
        number = airflow.call("GET", f"{self._run.path}/taskInstances/{_ASKS}")["try_number"]
        asked_at = self._asked_at.setdefault(number, time.monotonic())
        if number not in self._answered and time.monotonic() - asked_at > _READS_SECONDS:
            airflow.answer(self._run, _ASKS, "Approve")
            self._answered.add(number)


def demand(holds: bool, otherwise: str, stack: Stack, run: DagRun, tasks: Sequence[str] = SINK_TASKS) -> None:
    """Go on only if something holds.

    :raises LocalServiceError: it does not; with the log that tells why.
    """
    if not holds:
        raise LocalServiceError(
            otherwise, _last_words(stack, run, tasks), "make demo KEEP=1 leaves everything up for a look"
        )


def _in_words(states: Mapping[str, str | None], tasks: Sequence[str]) -> str:
    """Return the states of a run's tasks, in their order."""
    return ", ".join(f"{task} {states.get(task) or 'waiting'}" for task in tasks)


def _last_words(stack: Stack, run: DagRun, tasks: Sequence[str]) -> str:
    """Return the end of the log of the task that a run ended or hangs in, and of its Spark driver."""
    states = stack.airflow.task_states(run)
    begun = [task for task in tasks if states.get(task) not in (None, "upstream_failed", "skipped")]
    if not begun:
        return "No task has begun."
    lines = stack.airflow.task_log(run, begun[-1]).splitlines()[-_LAST_LINES:]
    drivers = sorted(stack.launches(run.dag_id).glob("*/driver.log"))
    hangs = drivers and states.get("submit") == "running"  # one that has ended shows its driver's last lines
    driver = ["", "Last lines of the Spark driver:", tail(drivers[-1])] if hangs else []
    return "\n".join([f"Last lines of task {begun[-1]}:", *lines, *driver])
