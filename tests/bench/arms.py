"""The arms: each copies the same source topic into a fresh topic of its own, in a driver of its own."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from airflow_provider_sinks.core.connection.resolved import KafkaOptions, ResolvedConnections
from airflow_provider_sinks.core.launch.files import Launch, LaunchFiles
from airflow_provider_sinks.core.spec.sink import SinkSpec, Writers
from airflow_provider_sinks.local.processes import LocalServiceError
from airflow_provider_sinks.local.spark import submit_command, submit_environment

_APP = Path(__file__).with_name("app.py")
_TIMEOUT_SECONDS = 600


@dataclass(frozen=True)
class Work:
    """What every arm of a round gets.

    :param bootstrap: the broker.
    :param source: the topic to copy.
    :param rows_per_epoch: the largest epoch.
    :param folder: for launches, checkpoints and logs; fresh for each run.
    """

    bootstrap: str
    source: str
    rows_per_epoch: int
    folder: Path


@dataclass(frozen=True)
class Arm:
    """One way to copy.

    :param name: for the table.
    :param writers: ours with these writers, or ``None`` for Spark's own sink.
    """

    name: str
    writers: Writers | None

    def run(self, work: Work, target: str) -> Path:
        """Copy everything and return the file with the epochs.

        :param target: the topic to write, which exists already.
        :raises LocalServiceError: with the end of the log, when the driver fails.
        """
        work.folder.mkdir(parents=True)
        epochs = work.folder / "epochs.jsonl"
        arguments = self._spark(work, target) if self.writers is None else self._ours(work, target)
        kind = "spark" if self.writers is None else "ours"
        _submit(work.folder / "driver.log", [str(_APP), kind, str(epochs), *arguments])
        return epochs

    def _spark(self, work: Work, target: str) -> list[str]:
        checkpoint = str(work.folder / "checkpoint")
        return [work.bootstrap, work.source, target, str(work.rows_per_epoch), checkpoint]

    def _ours(self, work: Work, target: str) -> list[str]:
        spec = SinkSpec.parse(
            {
                "name": target,
                "source": {
                    "kafka": {
                        "connection": "kafka",
                        "topic": work.source,
                        "format": "bytes",
                        "max_offsets_per_epoch": work.rows_per_epoch,
                    }
                },
                # Spark's own sink does not compress unless it is told to; so nobody does.
                "target": {"kafka": {"connection": "kafka", "topic": target, "compression": "none"}},
                "writers": str(self.writers),
            }
        )
        options = KafkaOptions.from_connection_extra({"bootstrap.servers": work.bootstrap}, "kafka")
        files = LaunchFiles(work.folder / "launch")
        launch = Launch(json.loads(spec.to_json()), 1, "bench", str(work.folder / "checkpoints"))
        files.write(launch, ResolvedConnections({"kafka": options}).to_json())
        return [str(files.directory)]


ARMS = (
    Arm("Spark's own sink", None),
    Arm("per_partition", Writers.PER_PARTITION),
    Arm("single", Writers.SINGLE),
)


def _submit(log: Path, arguments: list[str]) -> None:
    settings = ["--master", "local[2,4]", "--driver-memory", "2g", "--conf", "spark.ui.enabled=false"]
    environment = {**submit_environment(), "PYTHONPATH": str(_APP.parents[2])}
    with log.open("w") as output:
        done = subprocess.run(
            submit_command(*settings, *arguments),
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
    if done.returncode != 0:
        last = "\n".join(log.read_text().splitlines()[-30:])
        raise LocalServiceError(f"the driver ended with {done.returncode}", last)
