"""The thread that turns a status file into lines and a witness."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from airflow_provider_sinks.core.launch.files import LaunchFiles
from airflow_provider_sinks.core.launch.status import SinkState, SinkStatus
from airflow_provider_sinks.core.progress.witness import Witness
from tests.airflow.fakes import IDENTITIES

RUNNING = SinkStatus("orders", 7, SinkState.RUNNING, owner="us", generation=1, epoch=1, identities=IDENTITIES)


class Memory:
    """Remembers witnesses and what is shown in lists; ``works`` says whether writing succeeds."""

    def __init__(self) -> None:
        self.kept: list[Witness] = []
        self.shown: list[SinkStatus] = []
        self.works = True

    def show(self, status: SinkStatus) -> bool:
        self.shown.append(status)
        return self.works

    def keep(self, witness: Witness) -> bool:
        self.kept.append(witness)
        return self.works


@pytest.fixture
def files(tmp_path: Path) -> LaunchFiles:
    return LaunchFiles(tmp_path)


@pytest.fixture
def memory() -> Memory:
    return Memory()


@pytest.fixture
def watch(files: LaunchFiles, memory: Memory, caplog: pytest.LogCaptureFixture) -> Any:
    from airflow_provider_sinks.operators.submit.status_watch import StatusWatch

    caplog.set_level(logging.INFO)
    return StatusWatch(files.read_status, cast("Any", memory), cast("Any", logging.getLogger("task")))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Moves the time on by so many seconds."""
    now = [time.monotonic()]
    monkeypatch.setattr("airflow_provider_sinks.operators.submit.status_watch.time.monotonic", lambda: now[0])

    def move(seconds: float) -> None:
        now[0] += seconds

    return move


def see(watch: Any, files: LaunchFiles, status: SinkStatus) -> None:
    """Let the watch look at a status, as its thread does twice a second."""
    files.write_status(status.to_json())
    watch.look()


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "task"]


def test_many_epochs_in_a_second_are_one_line(
    watch: Any, files: LaunchFiles, caplog: pytest.LogCaptureFixture
) -> None:
    for epoch in range(1, 30):
        see(watch, files, replace(RUNNING, epoch=epoch))
    watch.finish()

    assert [re.findall(r"^launch 7: .*epoch (\d+)", line) for line in lines(caplog)] == [["1"], ["29"]]


def test_a_change_of_state_is_said_and_remembered_at_once(
    watch: Any, files: LaunchFiles, memory: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    see(watch, files, replace(RUNNING, state=SinkState.STARTING, identities=None))
    see(watch, files, RUNNING)
    see(watch, files, replace(RUNNING, epoch=2, state=SinkState.STOPPED))

    assert len(lines(caplog)) == 3
    assert [witness.epoch for witness in memory.kept] == [1, 2]


def test_a_status_that_does_not_change_is_remembered_once(
    watch: Any, files: LaunchFiles, memory: Memory
) -> None:
    see(watch, files, RUNNING)
    for _ in range(5):
        watch.look()
        watch._keep(RUNNING)

    assert len(memory.kept) == 1


def test_of_many_each_is_remembered_within_ten_minutes_and_at_changes_of_state(
    files: LaunchFiles, memory: Memory, clock: Callable[[float], None]
) -> None:
    from airflow_provider_sinks.operators.submit.status_watch import StatusWatch

    log = cast("Any", logging.getLogger("task"))
    watch = StatusWatch(files.read_status, cast("Any", memory), log, is_one_of_many=True)
    see(watch, files, RUNNING)
    at_first = len(memory.kept)
    clock(601)
    see(watch, files, replace(RUNNING, epoch=2))
    clock(599)
    see(watch, files, replace(RUNNING, epoch=3))
    see(watch, files, replace(RUNNING, epoch=4, state=SinkState.STOPPED))

    assert at_first == 0
    assert [witness.epoch for witness in memory.kept] == [2, 4]


def test_a_witness_that_was_not_written_is_written_again(
    watch: Any, files: LaunchFiles, memory: Memory
) -> None:
    memory.works = False
    see(watch, files, RUNNING)
    memory.works = True
    watch.finish()

    assert [witness.epoch for witness in memory.kept] == [1, 1]


def test_a_torn_or_strange_status_is_a_warning_once(
    watch: Any, files: LaunchFiles, caplog: pytest.LogCaptureFixture
) -> None:
    files.write_status('{"state": "dancing"')
    for _ in range(3):
        watch.look()

    assert watch.finish() is None
    assert len(lines(caplog)) == 1
    assert "the status of the launch could not be read" in lines(caplog)[0]


def test_a_torn_status_is_forgotten_when_a_whole_one_follows(
    watch: Any, files: LaunchFiles, caplog: pytest.LogCaptureFixture
) -> None:
    files.write_status('{"state": "dancing"')
    watch.look()
    see(watch, files, RUNNING)

    assert watch.finish() == RUNNING
    assert [line.split(":")[0] for line in lines(caplog)] == [
        "the status of the launch could not be read",
        "launch 7",
    ]


def test_the_status_is_shown_at_each_change_of_state_and_else_now_and_then(
    watch: Any, files: LaunchFiles, memory: Memory
) -> None:
    see(watch, files, replace(RUNNING, state=SinkState.STARTING, epoch=0))
    for epoch in range(1, 30):
        see(watch, files, replace(RUNNING, epoch=epoch))
    see(watch, files, replace(RUNNING, epoch=29, state=SinkState.STOPPED))
    watch.finish()

    shown = [(status.state.value, status.epoch) for status in memory.shown]
    assert shown == [("starting", 0), ("running", 1), ("stopped", 29)]


@pytest.mark.parametrize(
    ("seconds", "change", "shown"),
    [
        pytest.param(9, {"epoch": 2}, 1, id="an-epoch-too-soon"),
        pytest.param(11, {"epoch": 2}, 2, id="an-epoch"),
        pytest.param(11, {"at": "later"}, 1, id="a-sign-of-life-too-soon"),
        pytest.param(61, {"at": "later"}, 2, id="a-sign-of-life"),
        pytest.param(61, {}, 1, id="nothing-new"),
    ],
)
def test_how_often_the_status_is_shown(  # noqa: PLR0917  four fixtures and a row of the table
    watch: Any,
    files: LaunchFiles,
    memory: Memory,
    clock: Callable[[float], None],
    seconds: float,
    change: dict[str, Any],
    shown: int,
) -> None:
    see(watch, files, RUNNING)
    clock(seconds)
    see(watch, files, replace(RUNNING, **change))

    assert len(memory.shown) == shown


def test_a_status_that_could_not_be_shown_is_shown_again(
    watch: Any, files: LaunchFiles, memory: Memory
) -> None:
    memory.works = False
    see(watch, files, RUNNING)
    memory.works = True
    watch.finish()

    assert memory.shown == [RUNNING, RUNNING]


def test_a_fenced_launch_shows_nothing_over_its_successor(
    watch: Any, files: LaunchFiles, memory: Memory
) -> None:
    see(watch, files, replace(RUNNING, state=SinkState.FENCED))
    watch.finish()

    assert memory.shown == []


def test_silence_of_the_driver_is_said_once_and_so_is_its_return(
    watch: Any, files: LaunchFiles, clock: Callable[[float], None], caplog: pytest.LogCaptureFixture
) -> None:
    see(watch, files, RUNNING)
    clock(121)
    watch.look()
    watch.look()
    see(watch, files, replace(RUNNING, epoch=2))

    assert lines(caplog)[1:3] == [
        "nothing was heard of the driver for 120 s; last: running, goes on after epoch 1",
        "launch 7: the driver reports again",
    ]


def test_a_driver_that_never_reports_is_said(
    watch: Any, clock: Callable[[float], None], caplog: pytest.LogCaptureFixture
) -> None:
    clock(121)
    watch.look()

    assert lines(caplog) == ["nothing was heard of the driver for 120 s; it has not reported yet"]


def test_a_launch_that_is_over_is_not_missed(
    watch: Any, files: LaunchFiles, clock: Callable[[float], None], caplog: pytest.LogCaptureFixture
) -> None:
    see(watch, files, replace(RUNNING, state=SinkState.STOPPED))
    clock(121)
    watch.look()

    assert len(lines(caplog)) == 1


def test_a_listener_that_fails_is_a_warning(files: LaunchFiles, caplog: pytest.LogCaptureFixture) -> None:
    from airflow_provider_sinks.operators.submit.status_watch import StatusWatch

    def fail(status: SinkStatus) -> None:
        raise OSError(f"no link for epoch {status.epoch}")

    watch = StatusWatch(
        files.read_status, cast("Any", Memory()), cast("Any", logging.getLogger("task")), fail
    )
    see(watch, files, RUNNING)

    assert watch.finish() == RUNNING
    assert lines(caplog)[0] == "launch 7: no link for epoch 1"


def test_before_the_first_status_there_is_nothing_to_say(
    watch: Any, caplog: pytest.LogCaptureFixture
) -> None:
    watch.start()

    assert watch.finish() is None
    assert lines(caplog) == []


def test_a_status_that_could_not_be_told_is_told_again(
    watch: Any, files: LaunchFiles, clock: Callable[[float], None], caplog: pytest.LogCaptureFixture
) -> None:
    told: list[SinkStatus] = []
    fails = [True, True, False]

    def tell(status: SinkStatus) -> None:
        told.append(status)
        if fails.pop(0):
            raise ConnectionError("Airflow is away")

    watch._tell = tell
    files.write_status(RUNNING.to_json())
    watch.look()
    watch.look()
    clock(11)
    watch.look()
    watch.finish()

    assert told == [RUNNING] * 3
    assert caplog.text.count("Airflow is away") == 1
