"""The arms: each copies the same source topic into a fresh topic of its own, in a driver of its own."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.core.connection.options import ConnectionOptions
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.launch.files import Launch, LaunchFiles
from airflow_provider_sinks.core.spec.sink import SinkSpec, Writers
from airflow_provider_sinks.local.processes import LocalServiceError
from airflow_provider_sinks.local.spark import submit_command, submit_environment
from tests.bench.rounds import Work

_APP = Path(__file__).with_name("app.py")
_TIMEOUT_SECONDS = 600


@dataclass(frozen=True)
class TopicArm:
    """One way to copy a topic into a topic.

    :param writers: ours with these writers, or ``None`` for Spark's own sink.
    """

    name: str
    writers: Writers | None

    def run(self, work: Work, target: str) -> Path:
        """See :class:`.rounds.Arm`."""
        if self.writers is None:
            return submit(work, "spark", self._spark(work, target))
        return submit(work, "ours", self._ours(work, target))

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
        return [prepare(work, spec, {})]


ARMS = (
    TopicArm("Spark's own sink", None),
    TopicArm("per_partition", Writers.PER_PARTITION),
    TopicArm("single", Writers.SINGLE),
)


def prepare(work: Work, spec: SinkSpec, connections: Mapping[str, ConnectionOptions]) -> str:
    """Write the launch of a sink of ours, and return its folder.

    :param connections: those beside ``kafka``.
    """
    kafka = KafkaOptions.from_connection_extra({"bootstrap.servers": work.bootstrap}, "kafka")
    files = LaunchFiles(work.folder / "launch")
    launch = Launch(json.loads(spec.to_json()), 1, "bench", str(work.folder / "checkpoints"))
    files.write(launch, ResolvedConnections({"kafka": kafka, **connections}).to_json())
    return str(files.directory)


def submit(work: Work, kind: str, arguments: Sequence[str], *settings: str) -> Path:
    """Run an arm in a driver of its own, and return the file with its epochs.

    :param kind: which arm of the application.
    :param settings: more arguments for spark-submit.
    :raises LocalServiceError: with the end of the log, when the driver fails.
    """
    work.folder.mkdir(parents=True, exist_ok=True)
    epochs, log = work.folder / "epochs.jsonl", work.folder / "driver.log"
    usual = ["--master", "local[2,4]", "--driver-memory", "2g", "--conf", "spark.ui.enabled=false"]
    environment = {**submit_environment(), "PYTHONPATH": str(_APP.parents[2])}
    with log.open("w") as output:
        done = subprocess.run(
            submit_command(*usual, *settings, str(_APP), kind, str(epochs), *arguments),
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
    if done.returncode != 0:
        last = "\n".join(log.read_text().splitlines()[-30:])
        raise LocalServiceError(f"the driver ended with {done.returncode}", last)
    return epochs
