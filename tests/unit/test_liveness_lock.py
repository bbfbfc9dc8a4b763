"""A driver knows by a lock whether its task lives."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from airflow_provider_sinks.core.launch.files import LaunchFiles
from airflow_provider_sinks.core.launch.liveness_lock import held, is_abandoned, is_held

_HOLDER = """
import subprocess, sys, time
from pathlib import Path
from airflow_provider_sinks.core.launch.liveness_lock import held
with held(Path(sys.argv[1])):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    print(child.pid, flush=True)
    time.sleep(60)
"""


def test_what_was_never_held_is_not_abandoned(tmp_path: Path) -> None:
    assert not is_abandoned(tmp_path / "hold")
    assert not is_held(tmp_path / "hold")


def test_held_then_abandoned(tmp_path: Path) -> None:
    with held(tmp_path / "hold"):
        assert (is_held(tmp_path / "hold"), is_abandoned(tmp_path / "hold")) == (True, False)

    assert (is_held(tmp_path / "hold"), is_abandoned(tmp_path / "hold")) == (False, True)


def test_nobody_else_can_hold_it(tmp_path: Path) -> None:
    with held(tmp_path / "hold"), pytest.raises(BlockingIOError), held(tmp_path / "hold"):
        pass

    assert is_abandoned(tmp_path / "hold")


def test_without_locks_nothing_is_ever_abandoned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, f"no locks for {descriptor}, {operation}")

    monkeypatch.setattr("airflow_provider_sinks.core.launch.liveness_lock.fcntl.flock", refuse)
    with held(tmp_path / "hold"):
        pass

    assert not is_abandoned(tmp_path / "hold")


def test_a_killed_holder_lets_go_although_its_child_lives(tmp_path: Path) -> None:
    import os
    import signal

    command = [sys.executable, "-c", _HOLDER, str(tmp_path / "hold")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        child = int(holder.stdout.readline())
        before = is_held(tmp_path / "hold")
        holder.kill()
        holder.wait()

        assert before
        assert is_abandoned(tmp_path / "hold")
        os.kill(child, signal.SIGKILL)


def test_a_driver_is_told_why_it_shall_end(tmp_path: Path) -> None:
    files = LaunchFiles(tmp_path)
    assert files.end_wanted() is None

    with held(files.liveness_lock):
        assert files.end_wanted() is None
    assert files.end_wanted() == "the task that started this launch is gone"

    files.ask_to_stop()
    assert files.end_wanted() == "asked to stop"
