"""A launch: one start of a sink's driver, and the private directory through which it is told what to do.

Airflow writes ``launch.json`` and ``connections.json`` and later perhaps ``stop``; the driver writes
``status.json``, and ends by itself when the task is gone that started it. The directory is readable by its
owner alone (0700), the connections once more (0600), and the driver deletes them as soon as it has read them:
a secret lives on disk for the seconds that Spark takes to start.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from airflow_provider_sinks.core.launch.liveness_lock import is_abandoned

STATUS_NAME = "status.json"
STOP_NAME = "stop"


@dataclass(frozen=True)
class Launch:
    """What a driver is told at its start. Holds no secret.

    :param spec: the sink's spec, as the JSON object that ``SinkSpec.parse`` takes.
    :param number: how many launches the sink has had, this one included.
    :param owner: random text, made once per Airflow: whose sink this is.
    :param checkpoint_root: folder or URI under which each sink has its checkpoints.
    :param witness: what Airflow remembers of the sink's progress, as JSON, or ``None``.
    :param accept: a one-time answer to one refusal, or ``None``.
    :param status_uri: where status and ``stop`` stand when the driver is on a cluster; empty for the
        launch's own directory.
    """

    spec: Mapping[str, Any]
    number: int
    owner: str
    checkpoint_root: str
    witness: Mapping[str, Any] | None = None
    accept: str | None = None
    status_uri: str = ""

    def to_json(self) -> str:
        """Return the launch as JSON text with sorted keys."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Launch:
        """Read back what :meth:`to_json` wrote."""
        return cls(**json.loads(text))


@dataclass(frozen=True)
class LaunchFiles:
    """The files of one launch, by name.

    :param directory: the launch's private directory.
    """

    directory: Path

    @property
    def launch(self) -> Path:
        """What to run; written by Airflow before the start."""
        return self.directory / "launch.json"

    @property
    def connections(self) -> Path:
        """The resolved connections with their secrets; deleted by the driver once read."""
        return self.directory / "connections.json"

    @property
    def status(self) -> Path:
        """The newest status; replaced by the driver as a whole, so that a reader never sees half of it."""
        return self.directory / STATUS_NAME

    @property
    def stop(self) -> Path:
        """Exists when the driver shall end between two epochs."""
        return self.directory / STOP_NAME

    @property
    def liveness_lock(self) -> Path:
        """Held by the task that watches this launch, as long as it lives (``liveness_lock.py``)."""
        return self.directory / "hold"

    @property
    def driver(self) -> Path:
        """Which process the driver is; written by Airflow as soon as there is one."""
        return self.directory / "driver.json"

    @property
    def driver_log(self) -> Path:
        """What spark-submit and the driver print."""
        return self.directory / "driver.log"

    def write(self, launch: Launch, connections_json: str) -> None:
        """Make the directory and put the launch and its connections there.

        :param connections_json: the text of ``ResolvedConnections.to_json``; holds secrets.
        """
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.directory.chmod(0o700)
        _write_private(self.launch, launch.to_json())
        _write_private(self.connections, connections_json)

    def read(self) -> Launch:
        """Return the launch."""
        return Launch.from_json(self.launch.read_text())

    def take_connections(self) -> str:
        """Return the text of the connections and delete the file."""
        text = self.connections.read_text()
        self.forget_connections()
        return text

    def forget_connections(self) -> None:
        """Delete the connections; does nothing when they are gone.

        In a container the file is a link to where the node put it.
        """
        self.connections.resolve().unlink(missing_ok=True)
        self.connections.unlink(missing_ok=True)

    def write_status(self, text: str) -> None:
        """Replace the status by ``text``."""
        replacement = self.status.with_suffix(".tmp")
        _write_private(replacement, text)
        replacement.replace(self.status)

    def read_status(self) -> str | None:
        """Return the text of the newest status, or ``None`` before the first."""
        try:
            return self.status.read_text()
        except FileNotFoundError:
            return None

    def ask_to_stop(self) -> None:
        """Ask the driver to end between two epochs; asking twice is the same."""
        self.stop.touch(mode=0o600)

    def end_wanted(self) -> str | None:
        """Return why the driver shall end between two epochs, or ``None`` while it shall go on."""
        if self.stop.exists():
            return "asked to stop"
        return "the task that started this launch is gone" if is_abandoned(self.liveness_lock) else None


def _write_private(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
