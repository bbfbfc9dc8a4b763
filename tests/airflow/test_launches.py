"""Launch directories on a worker: private, few, and never taken from a launch that runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_sinks.core.launch.files import LaunchFiles
from airflow_provider_sinks.core.launch.liveness_lock import held
from airflow_provider_sinks.drivers.launch_folders import launches_of, new_directory


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path))
    return tmp_path


def _numbers(sink: str) -> list[int]:
    return sorted(int(folder.name.partition("-")[0]) for folder in launches_of(sink).iterdir())


def test_the_newest_few_stay() -> None:
    for launch in range(1, 9):
        new_directory("orders", launch)

    assert _numbers("orders") == [4, 5, 6, 7, 8]


def test_a_directory_is_for_its_owner_alone() -> None:
    assert new_directory("orders", 1).stat().st_mode & 0o777 == 0o700


def test_a_launch_that_runs_keeps_what_it_has() -> None:
    old = LaunchFiles(new_directory("orders", 1))

    with held(old.liveness_lock):
        old.connections.write_text("not read yet")
        for launch in range(2, 9):
            new_directory("orders", launch)

        assert old.connections.exists()
    new_directory("orders", 9)
    assert not old.directory.is_dir()


def test_secrets_of_a_killed_task_are_gone_with_the_next_launch() -> None:
    killed = LaunchFiles(new_directory("orders", 1))
    killed.connections.write_text("secret")

    new_directory("orders", 2)

    assert not killed.connections.exists()


def test_sinks_do_not_count_for_each_other() -> None:
    for launch in range(1, 7):
        new_directory("orders", launch)
    new_directory("users", 1)

    assert _numbers("users") == [1]
    assert _numbers("orders") == [2, 3, 4, 5, 6]
