"""A driver without a task that does not end by itself is ended for good."""

from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path

import pytest

from airflow_provider_sinks.core.errors import ExitCode
from airflow_provider_sinks.core.launch.files import LaunchFiles
from airflow_provider_sinks.core.launch.liveness_lock import held
from airflow_provider_sinks.core.launch.status import SinkState, SinkStatus
from airflow_provider_sinks.streaming import orphan
from airflow_provider_sinks.streaming.orphan import OrphanWatch

_FEW_LOOKS_SECONDS = 0.2


class Ends:
    """What a watch ended the process with, if it did."""

    def __init__(self) -> None:
        self.codes: list[int] = []
        self.at = 0.0
        self.ended = threading.Event()

    def __call__(self, code: int) -> None:
        self.at = time.monotonic()
        self.codes.append(code)
        self.ended.set()


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LaunchFiles:
    """A launch that runs; its watch looks often."""
    monkeypatch.setattr(orphan, "_LOOK_SECONDS", 0.01)
    made = LaunchFiles(tmp_path)
    made.write_status(SinkStatus(sink="orders", launch=3, owner="me", state=SinkState.RUNNING).to_json())
    return made


def test_while_its_task_lives_it_goes_on_and_after_that_for_as_long_as_patience_lasts(
    files: LaunchFiles,
) -> None:
    end = Ends()
    watch = OrphanWatch(files, patience_seconds=_FEW_LOOKS_SECONDS, end=end)
    with held(files.liveness_lock):
        watch.start()
        assert not end.ended.wait(2 * _FEW_LOOKS_SECONDS)
        let_go = time.monotonic()

    assert end.ended.wait(60)
    assert end.at - let_go >= _FEW_LOOKS_SECONDS
    assert end.codes == [ExitCode.FAILED]


def test_its_last_status_says_why(files: LaunchFiles) -> None:
    with held(files.liveness_lock):
        pass

    OrphanWatch(files, patience_seconds=0.0, end=Ends()).run()

    status = SinkStatus.from_json(files.read_status() or "")
    assert status.state is SinkState.FAILED
    assert status.error is not None
    assert status.error.primary == "the task that started this launch is gone"


def test_it_is_ended_also_where_no_status_can_be_read(files: LaunchFiles) -> None:
    files.status.write_text("no JSON")
    with held(files.liveness_lock):
        pass
    end = Ends()

    OrphanWatch(files, patience_seconds=0.0, end=end).run()

    assert end.codes == [ExitCode.FAILED]


def test_a_driver_whose_directory_was_removed_with_its_task_is_ended(files: LaunchFiles) -> None:
    end = Ends()
    with held(files.liveness_lock):
        OrphanWatch(files, patience_seconds=0.0, end=end).start()
        assert not end.ended.wait(_FEW_LOOKS_SECONDS)
        shutil.rmtree(files.directory)

    assert end.ended.wait(10)


def test_a_launch_that_nobody_holds_is_on_a_cluster_and_goes_on(files: LaunchFiles) -> None:
    end = Ends()

    OrphanWatch(files, patience_seconds=0.0, end=end).start()

    assert not end.ended.wait(_FEW_LOOKS_SECONDS)
