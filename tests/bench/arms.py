"""Drivers of arms that say how each of their epochs went: how they are launched and run."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.core.connection.options import ConnectionOptions
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.launch.files import Launch, LaunchFiles
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.local.processes import LocalServiceError
from airflow_provider_sinks.local.spark import submit_command, submit_environment
from tests.bench.rounds import Work
from tests.bench.tables import COLUMNS

_APP = Path(__file__).with_name("app.py")
_TIMEOUT_SECONDS = 600


def prepare(work: Work, spec: SinkSpec, connections: Mapping[str, ConnectionOptions]) -> str:
    """Write the launch of a sink of ours, and return its folder.

    :param connections: those beside ``kafka``.
    """
    kafka = KafkaOptions.from_connection_extra({"bootstrap.servers": work.bootstrap}, "kafka")
    files = LaunchFiles(work.folder / "launch")
    launch = Launch(json.loads(spec.to_json()), 1, "bench", str(work.folder / "checkpoints"))
    files.write(launch, ResolvedConnections({"kafka": kafka, **connections}).to_json())
    return str(files.directory)


def table_sink(work: Work, name: str, target: Mapping[str, object]) -> SinkSpec:
    """Return a sink of ours that writes a topic of :func:`.tables.values` into a table."""
    source = {
        "connection": "kafka",
        "topic": work.source,
        "format": "text",
        "max_offsets_per_epoch": work.rows_per_epoch,
    }
    return SinkSpec.parse(
        {"name": name, "source": {"kafka": source}, "select": COLUMNS, "target": dict(target)}
    )


def submit(work: Work, kind: str, arguments: Sequence[str], *settings: str, app: Path = _APP) -> Path:
    """Run an arm in a driver of its own, and return the file with its epochs.

    :param kind: which arm of the application.
    :param settings: more arguments for spark-submit.
    :param app: the application.
    :raises LocalServiceError: with the end of the log, when the driver fails.
    """
    work.folder.mkdir(parents=True, exist_ok=True)
    epochs, log = work.folder / "epochs.jsonl", work.folder / "driver.log"
    usual = ["--master", "local[2,4]", "--driver-memory", "2g", "--conf", "spark.ui.enabled=false"]
    environment = {**submit_environment(), "PYTHONPATH": str(_APP.parents[2])}
    with log.open("w") as output:
        done = subprocess.run(
            submit_command(*usual, *settings, str(app), kind, str(epochs), *arguments),
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
