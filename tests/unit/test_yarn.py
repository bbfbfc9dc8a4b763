"""What a YARN resource manager says of a driver, and what a task makes of it."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from airflow_provider_sinks.core.errors import ExitCode, FencedError, RefusedError
from airflow_provider_sinks.core.launch.reconnect import GoOn, LaunchAnew, NotedLaunch, first_of
from airflow_provider_sinks.core.launch.status import SinkStatus
from airflow_provider_sinks.core.launch.yarn import (
    ALIVE,
    FATES,
    Application,
    AppState,
    Fate,
    FinalStatus,
    exit_code,
    fate,
    launch_tag,
    owner_tag,
    sink_tag,
)


def _app(
    state: str, final: str = "UNDEFINED", diagnostics: str = "", tags: frozenset[str] = frozenset()
) -> Application:
    return Application("application_1_0001", AppState(state), FinalStatus(final), diagnostics, tags=tags)


def test_every_pair_of_states_has_a_meaning() -> None:
    assert set(FATES) == set(itertools.product(AppState, FinalStatus))


@pytest.mark.parametrize(
    ("state", "final", "expected"),
    [
        pytest.param("NEW", "UNDEFINED", Fate.ALIVE, id="new"),
        pytest.param("NEW_SAVING", "UNDEFINED", Fate.ALIVE, id="being-saved"),
        pytest.param("SUBMITTED", "UNDEFINED", Fate.ALIVE, id="submitted"),
        pytest.param("ACCEPTED", "UNDEFINED", Fate.ALIVE, id="accepted"),
        pytest.param("RUNNING", "UNDEFINED", Fate.ALIVE, id="running"),
        pytest.param("RUNNING", "SUCCEEDED", Fate.ALIVE, id="said-goodbye-but-is-still-there"),
        pytest.param("FINISHED", "SUCCEEDED", Fate.SUCCEEDED, id="succeeded"),
        pytest.param("FINISHED", "FAILED", Fate.FAILED, id="failed-by-its-own-word"),
        pytest.param("FINISHED", "KILLED", Fate.KILLED, id="killed-by-its-own-word"),
        pytest.param("FINISHED", "UNDEFINED", Fate.FAILED, id="ended-without-a-word"),
        pytest.param("FAILED", "FAILED", Fate.FAILED, id="failed"),
        pytest.param("KILLED", "KILLED", Fate.KILLED, id="killed"),
    ],
)
def test_what_has_become_of_a_driver(state: str, final: str, expected: Fate) -> None:
    assert fate(_app(state, final)) is expected


def test_a_driver_that_the_manager_does_not_know_is_over() -> None:
    assert fate(None) is Fate.UNKNOWN
    assert {state.value for state in ALIVE} == {"NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING"}


_RUNNING = SinkStatus("orders", 1)
_DIED = "Diagnostics: ...\nERROR ApplicationMaster: User application exited with status 65\n"


@pytest.mark.parametrize(
    ("application", "status", "expected"),
    [
        pytest.param(_app("FINISHED", "SUCCEEDED"), None, 0, id="succeeded-status-unreadable"),
        pytest.param(_app("FINISHED", "SUCCEEDED"), _RUNNING.ended(), 0, id="stopped"),
        pytest.param(_app("KILLED"), _RUNNING, -9, id="killed"),
        pytest.param(_app("KILLED"), _RUNNING.ended(), 0, id="stopped-then-killed"),
        pytest.param(_app("FAILED", "FAILED", _DIED), None, 65, id="sparks-words"),
        pytest.param(
            _app("FAILED", "FAILED", "exited with  exitCode: 13"), None, 70, id="not-the-masters-code"
        ),
        pytest.param(_app("FAILED"), _RUNNING.ended(RefusedError("no")), 65, id="its-own-words"),
        pytest.param(_app("FAILED"), _RUNNING.ended(FencedError("no")), 66, id="fenced"),
        pytest.param(_app("FAILED"), _RUNNING.ended(ValueError("what")), 70, id="a-stranger's-error"),
        pytest.param(None, None, 70, id="nobody-knows"),
        pytest.param(None, _RUNNING.ended(), 0, id="forgotten-but-it-said-so"),
    ],
)
def test_exit_code_of_a_driver_that_is_over(
    application: Application | None, status: SinkStatus | None, expected: int
) -> None:
    assert exit_code(application, status) == expected


def test_exit_codes_are_those_of_the_job() -> None:
    assert exit_code(_app("FAILED"), None) == ExitCode.FAILED


def test_tags_fit_what_the_manager_keeps() -> None:
    name = "N" * 100

    tags = (sink_tag(name), owner_tag("owner", name), launch_tag("ABC"))

    assert all(len(tag) <= 100 and tag == tag.lower() and tag.isascii() for tag in tags)


def test_no_other_sink_and_no_other_airflow_has_the_tag_of_a_sink() -> None:
    tags = {owner_tag(owner, sink) for owner in ("us", "them") for sink in ("orders", "Orders")}

    assert len(tags) == 4


_KEPT = NotedLaunch("mine", launch=3, clears=5, status_uri="file:///status", id="application_1_0001")
_NO_ID = replace(_KEPT, id="")
_MINE = _app("RUNNING", tags=frozenset({launch_tag("mine")}))
_OTHER = replace(_app("RUNNING", tags=frozenset({launch_tag("other")})), id="application_1_0002")


@pytest.mark.parametrize(
    ("kept", "alive", "given", "expected"),
    [
        pytest.param(None, [], {}, LaunchAnew(), id="first-start"),
        pytest.param(_KEPT, [], {}, LaunchAnew(), id="its-driver-is-over"),
        pytest.param(_KEPT, [_MINE], {}, GoOn(_MINE, _KEPT), id="retry-after-a-lost-worker"),
        pytest.param(_NO_ID, [_MINE], {}, GoOn(_MINE, _NO_ID), id="worker-lost-before-it-knew-the-id"),
        pytest.param(_KEPT, [_MINE, _OTHER], {}, GoOn(_MINE, _KEPT, (_OTHER,)), id="a-second-one-is-ended"),
        pytest.param(
            _KEPT, [_MINE], {"generation": 6}, LaunchAnew((_MINE,), "the task was cleared"), id="cleared"
        ),
        pytest.param(
            _KEPT, [_MINE], {"stopping": True}, LaunchAnew((_MINE,), "it was asked to stop"), id="dying"
        ),
        pytest.param(
            _KEPT, [_MINE], {"changed": True}, LaunchAnew((_MINE,), "its connections changed"), id="changed"
        ),
        pytest.param(
            _KEPT, [_MINE], {"durable": False}, LaunchAnew((_MINE,), "durable is off"), id="not-durable"
        ),
        pytest.param(
            None, [_MINE], {}, LaunchAnew((_MINE,), "it is not the driver of this task"), id="state-discarded"
        ),
        pytest.param(
            _KEPT, [_OTHER], {}, LaunchAnew((_OTHER,), "it is not the driver of this task"), id="another-run"
        ),
    ],
)
def test_going_on_or_starting_anew(
    kept: NotedLaunch | None, alive: list[Application], given: dict[str, int], expected: GoOn | LaunchAnew
) -> None:
    generation = given.pop("generation", 5)
    facts = {"durable": True, "stopping": False, **{name: bool(value) for name, value in given.items()}}

    assert first_of(kept, generation, alive, **facts) == expected


def test_what_a_task_notes_down_is_read_back() -> None:
    assert NotedLaunch.from_mapping(_KEPT.to_mapping()) == _KEPT


def test_a_note_of_the_release_before_is_read_and_one_of_this_release_by_it() -> None:
    stored = {
        "launch_id": "mine",
        "launch": 3,
        "generation": 5,
        "status_uri": "file:///status",
        "id": "application_1_0001",
        "connections": {},
        "sink": {},
    }

    assert NotedLaunch.from_mapping(stored) == _KEPT
    assert _KEPT.to_mapping() == stored
