"""Where the launches of sinks live on a worker: ``$AIRFLOW_HOME/sinks``, for its owner alone.

A launch's directory stays after its end, with the driver's log and the last status in it; of each sink the
newest few are kept.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from pathlib import Path

from airflow_provider_sinks.core.launch.files import LaunchFiles
from airflow_provider_sinks.core.launch.liveness_lock import is_held
from airflow_provider_sinks.core.spec.sink import SinkSpec

_KEPT = 5


def new_directory(sink: str, launch: int) -> Path:
    """Make and return the private directory of a new launch, and clear up after old ones of the same sink.

    :param sink: the sink's name.
    :param launch: the number of the launch.
    """
    launches = launches_of(sink)
    directory = launches / f"{launch:06d}-{uuid.uuid4().hex[:8]}"
    directory.mkdir(mode=0o700, parents=True)
    _forget_old(launches, directory)
    return directory


def launches_of(sink: str) -> Path:
    """Return the folder with the launch directories of a sink on this worker."""
    return _root() / "launches" / sink


def launched_sinks() -> list[str]:
    """Return the names of all sinks that were launched on this machine and left a directory."""
    folder = _root() / "launches"
    return sorted(sink.name for sink in folder.iterdir() if sink.is_dir()) if folder.is_dir() else []


def checkpoint_root(spec: SinkSpec) -> str:
    """Return the folder or URI for checkpoints: the spec's, or a folder of this worker."""
    return spec.checkpoint or str(_root() / "checkpoints")


def _root() -> Path:
    """Return our folder in Airflow's home, or a private temporary one where that is not writable."""
    root = Path(os.environ.get("AIRFLOW_HOME", "~/airflow")).expanduser() / "sinks"
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return _temporary_root()
    return root if os.access(root, os.W_OK) else _temporary_root()


def _temporary_root() -> Path:
    root = Path(tempfile.gettempdir()) / f"sinks-{os.getuid()}"
    root.mkdir(mode=0o700, exist_ok=True)
    if root.stat().st_uid != os.getuid():
        raise PermissionError(f"{root} belongs to another user")
    return root


def _forget_old(launches: Path, newest: Path) -> None:
    """Remove what workers left that were killed: their secrets, and all but the newest few directories.

    A launch that somebody holds is not over: it keeps what it has.
    """
    old = sorted((folder for folder in launches.iterdir() if folder != newest), reverse=True)
    over = [folder for folder in old if not is_held(LaunchFiles(folder).liveness_lock)]
    for folder in over:
        LaunchFiles(folder).forget_connections()
    for folder in set(over) & set(old[_KEPT - 1 :]):
        shutil.rmtree(folder, ignore_errors=True)
