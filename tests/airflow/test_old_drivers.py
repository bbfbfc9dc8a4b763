"""Drivers that outlived their task, played by real processes."""

from __future__ import annotations

import contextlib
import logging
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import psutil
import pytest

from airflow_provider_sinks.core.launch.files import LaunchFiles
from airflow_provider_sinks.core.launch.liveness_lock import held
from airflow_provider_sinks.drivers import abandoned as old_drivers
from airflow_provider_sinks.drivers.abandoned import DriverMark, end_abandoned

_LOG = cast("Any", logging.getLogger("task"))
_DRIVER = """
import signal, sys, time
from pathlib import Path
if "stubborn" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("up", flush=True)
while not (Path(sys.argv[1]) / "stop").exists() or len(sys.argv) > 2:
    time.sleep(0.05)
"""


@contextlib.contextmanager
def _driver(files: LaunchFiles, *more: str) -> Iterator[subprocess.Popen[str]]:
    """A process with the launch directory in its command line, in a group of its own, and its mark."""
    files.directory.mkdir(parents=True)
    command = [sys.executable, "-c", _DRIVER, str(files.directory), *more]
    process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        DriverMark.of(process.pid).write(files)
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def files(tmp_path: Path) -> LaunchFiles:
    return LaunchFiles(tmp_path / "launches" / "000001-abc")


def _sweep(files: LaunchFiles, *, hurry: bool = False) -> None:
    end_abandoned(files.directory.parent, _LOG, lambda: hurry)


def test_an_abandoned_driver_is_asked_and_ends(files: LaunchFiles) -> None:
    with _driver(files) as process:
        with held(files.liveness_lock):
            pass
        _sweep(files)

        assert process.wait(5) == 0


def test_one_that_does_not_listen_is_killed(files: LaunchFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(old_drivers, "_POLITE_SECONDS", 0.2)
    monkeypatch.setattr(old_drivers, "_SIGTERM_SECONDS", 0.2)
    with _driver(files, "stubborn") as process:
        with held(files.liveness_lock):
            pass
        _sweep(files)

        assert process.wait(5) == -9


def test_a_driver_whose_task_lives_is_left_alone(
    files: LaunchFiles, caplog: pytest.LogCaptureFixture
) -> None:
    with _driver(files) as process, held(files.liveness_lock):
        _sweep(files)

        assert process.poll() is None
        assert not files.stop.exists()
    assert "another task runs this sink" in caplog.text


def test_a_start_that_is_called_off_does_not_wait(files: LaunchFiles) -> None:
    with _driver(files, "waits for a signal") as process:
        with held(files.liveness_lock):
            pass
        started = time.monotonic()
        _sweep(files, hurry=True)

        assert time.monotonic() - started < 2
        assert process.wait(5) != 0


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"started": 1.0}, id="pid-was-given-to-another-process"),
        pytest.param({"host": "elsewhere"}, id="pid-of-another-machine"),
        pytest.param({"pid": psutil.Process().ppid()}, id="other-process"),
    ],
)
def test_a_strangers_process_is_never_touched(files: LaunchFiles, change: dict[str, Any]) -> None:
    with _driver(files) as process:
        with held(files.liveness_lock):
            pass
        replace(DriverMark.of(process.pid), **change).write(files)
        _sweep(files)

        assert process.poll() is None
        assert not files.stop.exists()


def test_a_process_of_another_launch_is_never_touched(files: LaunchFiles) -> None:
    with _driver(LaunchFiles(files.directory.with_name("other"))) as process:
        files.directory.mkdir()
        with held(files.liveness_lock):
            pass
        DriverMark.of(process.pid).write(files)
        _sweep(files)

        assert process.poll() is None


@pytest.mark.parametrize("text", ["", "{}", '{"pid": 1', '["x"]'])
def test_a_mark_that_cannot_be_read_is_no_mark(files: LaunchFiles, text: str) -> None:
    files.directory.mkdir(parents=True)
    files.driver.write_text(text)

    assert DriverMark.read(files) is None
    _sweep(files)


def test_a_process_that_is_gone_leaves_a_mark_that_fits_none(files: LaunchFiles) -> None:
    files.directory.mkdir(parents=True)
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    DriverMark.of(process.pid).write(files)
    mark = DriverMark.read(files)

    assert mark is not None
    assert not mark.lives(files)


def test_a_sink_without_launches_has_nothing_to_end(tmp_path: Path) -> None:
    end_abandoned(tmp_path / "none", _LOG, lambda: False)
