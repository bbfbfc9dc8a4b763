"""What the sinks of a connection do, and whether they came back after it changed."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_sinks.core.alter.dependents import (
    SETTLED_SECONDS,
    Activity,
    Baseline,
    Came,
    Dependent,
    NewestLaunch,
    judge,
    newest_states,
)
from airflow_provider_sinks.core.launch.status import SinkState

RUNNING, FAILED, STARTING = SinkState.RUNNING, SinkState.FAILED, SinkState.STARTING
DENIED = {
    "kind": "ConfigurationError",
    "primary": "id is denied",
    "detail": "\n  Write",
    "hint": "kafka-acls",
}


def sink(
    launch: int = 1,
    state: SinkState | None = RUNNING,
    *,
    states: tuple[str, ...] = ("running",),
    counted: int = 0,
    **given: Any,
) -> Dependent:
    """Return a sink, by default one that runs."""
    seen = NewestLaunch(counted or launch, launch, state, given.pop("done", True), given.pop("error", None))
    follows, paused = given.pop("follows", True), given.pop("paused", False)
    return Dependent("a", None, follows, states, paused, seen)


@pytest.mark.parametrize(
    ("dependent", "activity", "is_watched"),
    [
        pytest.param(sink(), Activity.RUNNING, True, id="running"),
        pytest.param(sink(states=("deferred",)), Activity.RUNNING, True, id="deferred"),
        pytest.param(sink(paused=True), Activity.RUNNING, True, id="running-while-its-dag-is-paused"),
        pytest.param(
            sink(states=("deferred",), paused=True), Activity.PAUSED, False, id="deferred-and-paused"
        ),
        pytest.param(sink(follows=False), Activity.RUNNING, False, id="does-not-follow"),
        pytest.param(sink(state=STARTING), Activity.STARTING, False, id="starting"),
        pytest.param(sink(state=None), Activity.STARTING, False, id="for-the-first-time"),
        pytest.param(sink(states=("up_for_retry",)), Activity.RETRYING, False, id="in-a-retry"),
        pytest.param(sink(states=("queued",)), Activity.QUEUED, False, id="queued"),
        pytest.param(sink(states=("failed",)), Activity.STOPPED, False, id="failed"),
        pytest.param(sink(states=(), paused=True), Activity.PAUSED, False, id="paused"),
        pytest.param(sink(states=()), Activity.STOPPED, False, id="never-run"),
    ],
)
def test_only_what_was_running_is_waited_for(
    dependent: Dependent, activity: Activity, is_watched: bool
) -> None:
    assert dependent.activity is activity
    assert dependent.is_watched is is_watched
    assert is_watched or dependent.why_unwatched()


@pytest.mark.parametrize(
    ("now", "elapsed", "rows_waiting", "came", "why"),
    [
        pytest.param(
            sink(3), 5, None, Came.NOT_YET, "launch 3 has not been replaced yet", id="the-old-launch"
        ),
        pytest.param(sink(5), 5, None, Came.BACK, "launch 5 is running", id="a-new-launch"),
        pytest.param(sink(5, done=False), 5, False, Came.BACK, "launch 5 is running", id="an-idle-sink"),
        pytest.param(
            sink(5, done=False),
            5,
            True,
            Came.NOT_YET,
            "launch 5 is running, and has not committed yet",
            id="rows",
        ),
        pytest.param(
            sink(4), 5, None, Came.SETTLING, "launch 4 began while the connection changed", id="in-between"
        ),
        pytest.param(
            sink(4), SETTLED_SECONDS, None, Came.BACK, "launch 4 is running", id="in-between-and-stayed"
        ),
        pytest.param(sink(5, STARTING), 5, None, Came.NOT_YET, "launch 5 is starting", id="starting"),
        pytest.param(
            sink(5, FAILED, states=("up_for_retry",), error=DENIED),
            5,
            None,
            Came.FAILED,
            "launch 5 failed",
            id="the-same-options-would-fail-again",
        ),
        pytest.param(
            sink(5, FAILED, states=("up_for_retry",), error={"kind": "UnavailableError"}),
            5,
            None,
            Came.NOT_YET,
            "launch 5 is failed",
            id="a-retry-may-help",
        ),
        pytest.param(
            sink(3, states=("failed",)), 5, None, Came.FAILED, "its task failed", id="no-launch-at-all"
        ),
        pytest.param(
            sink(3, SinkState.STOPPED, states=("success",)),
            5,
            None,
            Came.ENDED,
            "was ended meanwhile, and is not waited for",
            id="ended-by-a-person",
        ),
    ],
)
def test_a_sink_came_back(
    now: Dependent, elapsed: float, rows_waiting: bool | None, came: Came, why: str
) -> None:
    result = judge(Baseline(before=3, after=4), now, elapsed, rows_waiting=rows_waiting)

    assert (result.came, result.why) == (came, why)


def test_a_failure_is_told_in_the_sinks_own_words() -> None:
    now = sink(5, FAILED, states=("up_for_retry",), error=DENIED)

    result = judge(Baseline(3, 4), now, 1, rows_waiting=None)
    later = judge(
        Baseline(3, 4),
        sink(5, FAILED, states=("up_for_retry",), error={**DENIED, "kind": "UnavailableError"}),
        1,
        rows_waiting=None,
    )

    assert (result.detail, result.hint) == ("id is denied\nWrite", "kafka-acls")
    assert (later.came, later.detail) == (Came.NOT_YET, "id is denied\nWrite")


@pytest.mark.parametrize(
    ("now", "came"),
    [
        pytest.param(sink(3), Came.BACK, id="never-left"),
        pytest.param(sink(3, counted=4), Came.NOT_YET, id="is-about-to-leave"),
        pytest.param(sink(5), Came.BACK, id="came-back"),
    ],
)
def test_a_sink_that_never_left_the_old_options_is_back_on_them(now: Dependent, came: Came) -> None:
    assert judge(Baseline(3, 3, stays=3), now, 1, rows_waiting=None).came is came


def test_a_launch_is_read_from_what_the_asset_holds() -> None:
    status = {"launch": 4, "state": "running", "lag": None, "rows": 0, "error": None}

    assert NewestLaunch.of(None, None) == NewestLaunch()
    assert NewestLaunch.of(None, {"launch": 2}) == NewestLaunch(counted=2)
    assert NewestLaunch.of(status, {"launch": 5}) == NewestLaunch(5, 4, RUNNING)
    assert NewestLaunch.of({**status, "lag": 0}, None) == NewestLaunch(4, 4, RUNNING, epoch_done=True)


def test_the_instances_that_live_count_else_the_newest() -> None:
    def states(*names: str | None) -> tuple[str, ...]:
        return newest_states([{"state": name} for name in names])

    assert states("success", "running", "failed") == ("running",)
    assert states("failed", "success") == ("failed",)
    assert states(None, "success") == ("scheduled",)
    assert states() == ()


def test_the_error_of_a_launch_before_is_not_held_against_the_one_that_starts() -> None:
    error = {"launch": 3, "kind": "RefusedError", "primary": "lost"}
    status = {"launch": 4, "state": "starting", "error": error}

    assert NewestLaunch.of(status, None).error is None
    assert NewestLaunch.of({**status, "launch": 3, "state": "refused"}, None).error == error
