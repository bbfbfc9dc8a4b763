"""The driver's side of a launch on a cluster, without a cluster: when it writes, and what it deletes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from py4j.protocol import Py4JError  # type: ignore[import-untyped]

from airflow_provider_sinks.core.launch.files import LaunchFiles
from airflow_provider_sinks.streaming import cluster_files, daemon
from airflow_provider_sinks.streaming.cluster_files import ClusterFiles


@dataclass
class Remote:
    """A folder that can be away."""

    written: list[str] = field(default_factory=list)
    stop: bool = False
    away: bool = False

    def write(self, name: str, text: str) -> None:
        if self.away:
            raise Py4JError("no route to host")
        assert name == "status.json"
        self.written.append(text)

    def has(self, name: str) -> bool:
        if self.away:
            raise Py4JError("no route to host")
        return name == "stop" and self.stop


@pytest.fixture
def remote() -> Remote:
    """The folder that both sides reach."""
    return Remote()


@pytest.fixture
def files(remote: Remote, tmp_path: Path) -> ClusterFiles:
    """The files of one launch."""
    return ClusterFiles(tmp_path, remote=remote)  # type: ignore[arg-type]


def _status(state: str, epoch: int) -> str:
    return json.dumps({"state": state, "epoch": epoch})


def test_a_new_state_is_written_at_once_and_an_epoch_when_it_is_due(
    files: ClusterFiles, remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.write_status(_status("running", 1))
    files.write_status(_status("running", 2))
    files.write_status(_status("running", 3))
    at_once = list(remote.written)
    monkeypatch.setattr(cluster_files, "_PAUSE_SECONDS", 0.0)
    files.end_wanted()
    files.write_status(_status("stopped", 3))

    assert at_once == [_status("running", 1)]
    assert remote.written[1:] == [_status("running", 3), _status("stopped", 3)]


def test_a_store_that_is_away_ends_no_sink_and_is_said_once(
    files: ClusterFiles, remote: Remote, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cluster_files, "_PAUSE_SECONDS", 0.0)
    remote.away = True

    files.write_status(_status("running", 1))
    wanted = [files.end_wanted() for _ in range(3)]
    remote.away = False
    files.end_wanted()

    assert wanted == [None] * 3
    assert remote.written == [_status("running", 1)]
    assert capfd.readouterr().err.count("no route to host") == 1


def test_a_driver_that_is_asked_to_stop_sees_it(files: ClusterFiles, remote: Remote) -> None:
    remote.stop = True

    assert files.end_wanted() == "asked to stop"


def _container(folder: Path) -> tuple[Path, Path]:
    """Make a working directory as a node does: what was shipped is linked from elsewhere."""
    shipped = folder / "filecache" / "connections.json"
    shipped.parent.mkdir()
    shipped.write_text("secret")
    for name in ("launch.json", "connections.json"):
        (folder / "container").mkdir(exist_ok=True)
        (folder / "container" / name).symlink_to(shipped)
    return folder / "container", shipped


def test_secrets_are_deleted_where_they_are_and_not_only_their_link(tmp_path: Path) -> None:
    container, shipped = _container(tmp_path)

    text = LaunchFiles(container).take_connections()
    LaunchFiles(container).forget_connections()

    assert text == "secret"
    assert not shipped.exists()
    assert not (container / "connections.json").is_symlink()


@pytest.mark.parametrize("in_container", [True, False])
def test_an_executor_forgets_secrets_in_a_container_and_touches_nobodys_files_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_container: bool
) -> None:
    container, shipped = _container(tmp_path)
    monkeypatch.chdir(container)
    monkeypatch.delenv("CONTAINER_ID", raising=False)
    if in_container:
        monkeypatch.setenv("CONTAINER_ID", "container_1_0001_01_000002")

    daemon.forget_connections()

    assert shipped.exists() is not in_container
