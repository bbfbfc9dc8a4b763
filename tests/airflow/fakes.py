"""A ``spark-submit`` for tests: it lies on the PATH, runs as a process, and does what a test tells it."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow_provider_sinks.core.launch.status import SinkStatus
from airflow_provider_sinks.core.progress.identity import Identities, Identity

SINK: dict[str, Any] = {"name": "orders", "source": "kafka_test/orders", "target": "kafka_test/orders-out"}
KAFKA = {"conn_type": "kafka", "extra": {"bootstrap.servers": "127.0.0.1:1"}}
SPARK = {"conn_type": "spark", "host": "local[2,4]"}

_TOPIC = Identity("cluster", "topic", "id", 1)
IDENTITIES = Identities(_TOPIC, _TOPIC, _TOPIC)


@dataclass
class FakeSpark:
    """One ``spark-submit`` in a folder that stands first on the PATH.

    :param folder: takes the command, its script, and what it saw.
    """

    folder: Path

    def install(self) -> Path:
        """Put the command into the folder and return the folder for the PATH."""
        bin_folder = self.folder / "bin"
        bin_folder.mkdir()
        command = bin_folder / "spark-submit"
        program = Path(__file__).with_name("fake_spark_submit.py")
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{program}" "$@"\n')
        command.chmod(0o755)
        self.play()
        return bin_folder

    @property
    def script_file(self) -> Path:
        """What the command does next; its environment names it."""
        return self.folder / "script.json"

    def play(self, **script: Any) -> None:
        """Say what the next runs do: see ``fake_spark_submit.py``."""
        self.script_file.write_text(json.dumps(script))

    @property
    def seen(self) -> dict[str, Any]:
        """What the newest run saw."""
        return dict(json.loads((self.folder / "seen.json").read_text()))

    @property
    def launches(self) -> int:
        """How many runs there were."""
        counted = self.folder / "launches"
        return len(counted.read_text()) if counted.exists() else 0

    @property
    def directory(self) -> Path:
        """The launch directory of the newest run."""
        argv = self.seen["argv"]
        return Path(argv[argv.index("--launch") + 1])


def status(**fields: Any) -> dict[str, Any]:
    """Return a status document; the fake fills in ``sink``, ``launch`` and ``owner``."""
    document = SinkStatus("", 0, run="run", identities=IDENTITIES, generation=1).to_json()
    written = {**json.loads(document), **fields}
    for name in ("sink", "launch", "owner"):
        written.pop(name)
    return written
