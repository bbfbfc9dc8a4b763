"""Where a sink stands, its history, and what the verbs of its life come to."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.errors import ConfigurationError, RefusedError
from airflow_provider_sinks.core.launch.status import SinkState, SinkStatus, StatusError
from airflow_provider_sinks.core.lifecycle.sink_home import SinkDag, SinkHome, SinkTask
from airflow_provider_sinks.core.lifecycle.state_history import (
    HISTORY_MAX,
    HistoryState,
    StateHistory,
    from_mappings,
    noted,
    standing,
    to_mappings,
    told,
)
from airflow_provider_sinks.core.lifecycle.steps import TaskKey
from airflow_provider_sinks.core.lifecycle.verbs import (
    demand_stopped,
    outputs_to_delete,
    plan_drop,
    plan_pause,
    plan_restart,
    plan_resume,
)
from airflow_provider_sinks.core.spec.sink import SinkSpec
from tests.facts import DATA, PROGRESS, missing, present

AWAY = StatusError("UnavailableError", "Kafka could not be reached")
BROKEN = StatusError("JobFailedError", "the job stopped")
REFUSED = StatusError("RefusedError", "output is lost", "long " * 500)
S = SinkState


def _history(*heard: tuple[int, SinkState, StatusError | None]) -> StateHistory:
    """Tell statuses one after another: launch, state and error."""
    history: StateHistory = ()
    for second, (launch, state, error) in enumerate(heard):
        at = f"2026-11-21T10:00:{second:02}Z"
        history = told(history, SinkStatus("orders", launch, state, error=error, at=at))
    return history


def _states(history: StateHistory) -> list[str]:
    return [f"{entry.state}{f' x{entry.times}' if entry.times > 1 else ''}" for entry in history]


@pytest.mark.parametrize(
    ("heard", "states"),
    [
        pytest.param(
            [(1, S.STARTING, None), (1, S.RUNNING, None), (1, S.RUNNING, None), (1, S.STOPPED, None)],
            ["starting", "running", "stopped"],
            id="a-whole-life",
        ),
        pytest.param(
            [(n, state, error) for n in (1, 2, 3) for state, error in ((S.STARTING, None), (S.FAILED, AWAY))],
            ["starting", "stalled x3"],
            id="the-same-error-counts-up-and-does-not-flap",
        ),
        pytest.param(
            [(1, S.FAILED, AWAY), (2, S.STARTING, None), (2, S.FAILED, BROKEN)],
            ["stalled", "stalled"],
            id="another-error-is-news",
        ),
        pytest.param(
            [(1, S.FAILED, AWAY), (2, S.STARTING, None), (2, S.RUNNING, None)],
            ["stalled", "running"],
            id="it-heals",
        ),
        pytest.param([(1, S.REFUSED, REFUSED)], ["failed"], id="a-person-is-needed"),
        pytest.param(
            [(2, S.RUNNING, None), (1, S.FENCED, None), (1, S.FAILED, AWAY)], ["running"], id="overtaken"
        ),
    ],
)
def test_a_history_tells_what_changed(heard: list[Any], states: list[str]) -> None:
    assert _states(_history(*heard)) == states


def test_a_history_stays_short_and_small() -> None:
    history = _history(
        *((launch, S.REFUSED, StatusError("RefusedError", f"{launch}", "x" * 9999)) for launch in range(60))
    )

    assert len(history) == HISTORY_MAX
    assert len(json.dumps(to_mappings(history))) < 20_000
    assert from_mappings(to_mappings(history)) == history


def test_what_a_person_ended_has_nothing_to_tell_any_more() -> None:
    paused = noted(_history((4, S.RUNNING, None)), HistoryState.PAUSED)

    assert told(paused, SinkStatus("orders", 4, S.STOPPED)) is paused
    assert _states(told(paused, SinkStatus("orders", 5))) == ["running", "paused", "starting"]


def test_nothing_new_is_the_very_same_history() -> None:
    history = _history((1, S.RUNNING, None))

    assert told(history, SinkStatus("orders", 1, S.RUNNING, epoch=7)) is history


RUNNING = _history((1, S.STARTING, None), (1, S.RUNNING, None))
STALLED = _history((1, S.FAILED, AWAY))


@pytest.mark.parametrize(
    ("history", "active", "paused", "silent_seconds", "state"),
    [
        ((), False, True, 0, HistoryState.CREATED),
        ((), True, False, 0, HistoryState.STARTING),
        (RUNNING, True, False, 10, HistoryState.RUNNING),
        (RUNNING, True, False, 999, HistoryState.STALLED),
        (RUNNING, False, True, 10, HistoryState.PAUSED),
        (RUNNING, False, False, 10, HistoryState.STOPPED),
        (STALLED, True, False, 10, HistoryState.STALLED),
        (STALLED, False, True, 10, HistoryState.FAILED),
        (_history((1, S.REFUSED, REFUSED)), False, True, 10, HistoryState.FAILED),
        (_history((1, S.REFUSED, REFUSED)), True, False, 10, HistoryState.STARTING),
        (_history((1, S.STOPPED, None)), True, False, 10, HistoryState.STARTING),
        (noted(RUNNING, HistoryState.DROPPED), False, True, 10, HistoryState.DROPPED),
        (noted(RUNNING, HistoryState.PAUSED), False, True, 10, HistoryState.PAUSED),
        (noted(RUNNING, HistoryState.PAUSED), False, False, 10, HistoryState.STOPPED),
        (noted(RUNNING, HistoryState.PAUSED), True, False, 10, HistoryState.STARTING),
    ],
)
def test_where_a_sink_stands(
    history: StateHistory, active: bool, paused: bool, silent_seconds: int, state: HistoryState
) -> None:
    now = datetime(2026, 11, 21, 11, 0, tzinfo=UTC)
    heard = datetime.fromtimestamp(now.timestamp() - silent_seconds, UTC).isoformat()

    found = standing(history, is_active=active, is_paused=paused, heard_at=heard, now=now)

    assert found.state is state


# The verbs.

PLACE = TaskKey("orders", "run-1", "submit")
TASK = SinkTask(PLACE, "running")
SPEC = {"name": "orders", "source": "src/orders-in", "target": "dst/orders-out"}


def home(
    *tasks: SinkTask, is_paused: bool = False, schedule: str = "@continuous", **changes: Any
) -> SinkHome:
    dag = SinkDag("orders", is_paused, schedule, changes.pop("others", ()))
    return SinkHome("orders", SPEC, dags=(dag,), tasks=tasks, **changes)


@pytest.mark.parametrize(
    ("given", "steps"),
    [
        pytest.param(
            home(TASK), ['pause DAG "orders"', f"end task {PLACE} by marking it as failed"], id="runs"
        ),
        pytest.param(home(), ['pause DAG "orders"'], id="at-rest"),
        pytest.param(home(is_paused=True), [], id="paused"),
        pytest.param(home(others=("a", "b")), ['pause DAG "orders"; it also runs a, b'], id="with-others"),
    ],
)
def test_pausing(given: SinkHome, steps: list[str]) -> None:
    assert [str(step) for step in plan_pause(given).steps] == steps


@pytest.mark.parametrize(
    ("given", "steps"),
    [
        pytest.param(home(is_paused=True), ['unpause DAG "orders"'], id="the-schedule-starts-it"),
        pytest.param(
            home(is_paused=True, schedule=""),
            ['unpause DAG "orders"', 'start a run of DAG "orders"'],
            id="no-schedule",
        ),
        pytest.param(home(TASK), [], id="runs"),
        pytest.param(home(schedule=""), ['start a run of DAG "orders"'], id="was-never-paused"),
    ],
)
def test_resuming(given: SinkHome, steps: list[str]) -> None:
    assert [str(step) for step in plan_resume(given).steps] == steps


def test_restarting_clears_what_runs() -> None:
    assert [str(step) for step in plan_restart(home(TASK)).steps] == [f"clear task {PLACE}: it begins anew"]
    with pytest.raises(RefusedError, match="airflow sinks resume orders"):
        plan_restart(home())


@pytest.mark.parametrize("state", ["running", "deferred", "queued", "up_for_retry", "restarting"])
def test_only_a_stopped_sink_can_be_rewound(state: str) -> None:
    demand_stopped(home(), "rewound")
    with pytest.raises(RefusedError, match=f"orders.submit of run run-1 is {state.replace('_', ' ')}"):
        demand_stopped(home(SinkTask(PLACE, state)), "rewound")


def test_dropping_stops_fences_deletes_what_was_named_and_forgets() -> None:
    plan = plan_drop(
        home(TASK), ("driver", "p0"), {Role.DATA: present(DATA), Role.PROGRESS: missing(PROGRESS)}
    )

    assert [str(step) for step in plan.steps] == [
        'pause DAG "orders"',
        f"end task {PLACE} by marking it as failed",
        "fence 2 writers: driver, p0",
        'delete data topic "orders-out" with up to 200 records',
        'forget what Airflow remembers of sink "orders"',
    ]


def test_dropping_says_what_stays() -> None:
    assert plan_drop(home(), (), {}).warnings == (
        "its progress records stay: a sink of this name would go on from them",
        'DAG "orders" stays, paused, until its file is gone',
    )


def test_topics_are_deleted_by_name_only() -> None:
    spec = SinkSpec.parse({**SPEC, "dead_letter": {"topic": "orders-dlq"}})

    assert outputs_to_delete(spec, []) == {}
    assert outputs_to_delete(spec, ["orders-dlq", "_sinks-progress-orders"]) == {
        Role.PROGRESS: "_sinks-progress-orders",
        Role.DEAD_LETTER: "orders-dlq",
    }


def test_topics_that_are_not_the_sinks_own_are_all_named() -> None:
    spec = SinkSpec.parse({**SPEC, "progress": {"topic": "shared"}})

    with pytest.raises(ConfigurationError) as refused:
        outputs_to_delete(spec, ["orders-in", "order-out", "shared"])

    text = str(refused.value)
    assert "orders-in: is its source" in text
    assert 'order-out: is nothing of its own (did you mean "orders-out"?)' in text
    assert "shared: is named by the spec as its progress" in text
