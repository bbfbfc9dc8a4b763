"""The far end of a launch on a cluster, read and written by fsspec."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_sinks.clients.launch_store import LaunchStore, forget_old_launches, fsspec_uri
from airflow_provider_sinks.core.errors import UnavailableError


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        pytest.param("s3a://bucket/sinks", "s3://bucket/sinks", id="s3a"),
        pytest.param("s3n://bucket/sinks", "s3://bucket/sinks", id="s3n"),
        pytest.param("hdfs://name/sinks", "hdfs://name/sinks", id="hdfs"),
        pytest.param("file:///sinks", "file:///sinks", id="file"),
        pytest.param("/sinks/s3a://", "/sinks/s3a://", id="path"),
    ],
)
def test_what_hadoop_calls_a_store_fsspec_may_call_otherwise(uri: str, expected: str) -> None:
    assert fsspec_uri(uri) == expected


def test_a_status_that_is_not_there_yet_is_none(tmp_path: Path) -> None:
    assert LaunchStore((tmp_path / "later").as_uri()).read_status() is None


def test_a_status_is_read_anew_each_time(tmp_path: Path) -> None:
    folder = tmp_path / "with a space"
    folder.mkdir()
    store = LaunchStore(f"file://{folder}/")

    (folder / "status.json").write_text("old")
    old = store.read_status()
    (folder / "status.json").write_text("new")

    assert (old, store.read_status()) == ("old", "new")


def test_a_driver_is_asked_to_stop_before_its_folder_exists(tmp_path: Path) -> None:
    store = LaunchStore(str(tmp_path / "later"))
    before = store.stop_asked()

    store.ask_to_stop()
    store.ask_to_stop()

    assert (before, store.stop_asked()) == (False, True)
    assert (tmp_path / "later" / "stop").exists()


def test_a_store_that_this_worker_cannot_read_is_unavailable_and_says_what_helps() -> None:
    store = LaunchStore("nonsense://bucket/sinks")

    for call in (store.read_status, store.ask_to_stop, store.stop_asked):
        with pytest.raises(UnavailableError, match="nonsense://bucket/sinks") as caught:
            call()
        assert "status_uri" in caught.value.hint


def test_the_newest_launches_stay_and_what_is_no_launch_is_left_alone(tmp_path: Path) -> None:
    for name in (*(f"{number:06d}-0123abcd" for number in range(1, 5)), "notes", "000001-notes"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "status.json").write_text("{}")

    forget_old_launches(tmp_path.as_uri(), kept=2)
    forget_old_launches(f"{tmp_path}/absent", kept=2)

    left = sorted(folder.name for folder in tmp_path.iterdir())
    assert left == ["000001-notes", "000003-0123abcd", "000004-0123abcd", "notes"]
