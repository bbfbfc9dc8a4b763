"""The arms on Spark: our sinks as the operator submits them, and Spark's own, which is at-least-once."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.postgres.options import PostgresOptions
from airflow_provider_sinks.core.connection.options import ConnectionOptions
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.launch.files import Launch, LaunchFiles
from airflow_provider_sinks.core.launch.status import SinkState
from airflow_provider_sinks.core.spec.copies import copies_without_spark
from airflow_provider_sinks.core.spec.sink import SinkSpec, Writers
from airflow_provider_sinks.hooks.class_archive import TakenArchive
from airflow_provider_sinks.local import jars
from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.local.spark import submit_command, submit_environment
from tests import class_archive
from tests.bench.peers.arm import CopyingArm, Running, Work
from tests.bench.peers.artifacts import POSTGRES_JDBC
from tests.bench.peers.workloads import SCHEMA, USERS_TABLE, Copy, Enrich

_ROOT = Path(__file__).parents[3]
_SINK_JOB = _ROOT / "spark_jobs" / "sink_job.py"
_SPARK_SINK = Path(__file__).with_name("spark_sink.py")
_MASTER = "local[2,4]"
_CONF = {"spark.ui.enabled": "false"}
_PARTS: Mapping[str, Callable[[Mapping[str, Any]], bool]] = {
    "spark-submit, JVM, Python": lambda _: True,
    "Spark's session": lambda status: bool(status["spark_app_id"]),
    "look, fence, read, announce": lambda status: status["state"] != SinkState.STARTING,
    "first epoch": lambda status: bool(status["rows"]),
}
"""The parts of a start, in order, and how the status of a launch tells that one is over."""
_NO_LAUNCH = LaunchFiles(Path())


@dataclass(frozen=True)
class OurArm(CopyingArm):
    """A sink of ours.

    :param every: the trigger of a run that does not end.
    :param archived: its driver starts as behind ``airflow sinks class-archive``.
    """

    writers: Writers
    every: str = "0s"
    archived: bool = False

    def start(self, work: Work) -> Running:
        """See :class:`.arm.Arm`."""
        files = LaunchFiles(work.folder / "launch")
        spec = self._spec(work)
        launch = Launch(json.loads(spec.to_json()), 1, "bench", str(work.folder / "checkpoints"))
        files.write(launch, ResolvedConnections(_connections(work)).to_json())
        archive = class_archive.made() if self.archived else None
        has_rows = not copies_without_spark(spec, None)
        given = ("--launch", str(files.directory))
        driver = submit(work, _SINK_JOB, *given, archive=archive, has_rows=has_rows)
        return _Launched(driver.services, launch=files)

    def _spec(self, work: Work) -> SinkSpec:
        source = {"connection": "kafka", "topic": work.source, "max_offsets_per_epoch": work.rows_per_commit}
        # Spark's own sink does not compress unless it is told to; so nobody does.
        target = {"connection": "kafka", "topic": work.target, "compression": "none"}
        data: dict[str, Any] = {"name": work.target, "writers": str(self.writers)}
        if work.endless:
            data["trigger"] = {"every": self.every}
        if isinstance(work.workload, Enrich):
            source |= {"format": "json", "schema": SCHEMA}
            data["query"] = Enrich.query("source", "users")
            data["lookups"] = {"users": {"postgres": {"connection": "pg", "table": USERS_TABLE}}}
        else:
            source["format"] = "bytes"
        return SinkSpec.parse({**data, "source": {"kafka": source}, "target": {"kafka": target}})


@dataclass
class _Launched(Running):
    """Remembers when each part of a start was over, as the status of the launch tells it.

    :param launch: its files.
    """

    launch: LaunchFiles = _NO_LAUNCH
    _began: float = field(default_factory=time.monotonic)
    _over: dict[str, float] = field(default_factory=dict)

    def look(self) -> None:
        """See :class:`.arm.Running`."""
        if len(self._over) == len(_PARTS) or (text := self.launch.read_status()) is None:
            return
        status, now = json.loads(text), time.monotonic()
        for part, is_over in _PARTS.items():
            if part not in self._over and is_over(status):
                self._over[part] = now

    def start_parts(self) -> Mapping[str, float]:
        """See :class:`.arm.Running`."""
        moments = [self._began, *self._over.values()]
        lasted = [later - earlier for earlier, later in pairwise(moments)]
        return dict(zip(self._over, lasted, strict=True))


@dataclass(frozen=True)
class SparkArm(CopyingArm):
    """Spark's own sink."""

    def start(self, work: Work) -> Running:
        """See :class:`.arm.Arm`."""
        settings = {
            "bootstrap": work.bootstrap,
            "source": work.source,
            "target": work.target,
            "checkpoint": str(work.folder / "checkpoint"),
            "rows_per_epoch": None if work.endless else work.rows_per_commit,
            "enriched": not isinstance(work.workload, Copy),
            "jdbc": jdbc_options(work.users) if work.users else {},
        }
        work.folder.mkdir(parents=True, exist_ok=True)
        file = work.folder / "settings.json"
        file.touch(mode=0o600)
        file.write_text(json.dumps(settings))
        return submit(work, _SPARK_SINK, str(file))


def submit(
    work: Work,
    application: Path,
    *arguments: str,
    archive: TakenArchive | None = None,
    has_rows: bool = True,
) -> Running:
    """Start a driver as the operator does, the same for both."""
    from airflow_provider_sinks.hooks.spark import with_our_settings  # loads Airflow

    conf = with_our_settings(_CONF, {}, _MASTER, archive=archive, has_rows=has_rows)
    given = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    place = ["--master", _MASTER, "--driver-memory", "2g"]
    if work.users:
        place += ["--driver-class-path", str(jars.resolve(POSTGRES_JDBC)[0])]
    environment = {**submit_environment(), "PYTHONPATH": str(_ROOT), **(archive.variables if archive else {})}
    command = submit_command(*place, *given, str(application), *arguments)
    return Running([work.service("driver", command, environment)])


def epochs_done(work: Work) -> int:
    """Return the number of the newest epoch of a sink of ours; 0 before the first one."""
    file = LaunchFiles(work.folder / "launch").status
    return int(json.loads(file.read_text())["epoch"]) if file.exists() else 0


def jdbc_options(server: Postgres) -> dict[str, str]:
    """Return what Spark's JDBC reader and Flink's need to get at the server."""
    url = f"jdbc:postgresql://{server.host}:{server.port}/{server.dbname}"
    return {"url": url, "user": server.user, "password": server.password}


def _connections(work: Work) -> dict[str, ConnectionOptions]:
    found: dict[str, ConnectionOptions] = {
        "kafka": KafkaOptions.from_connection_extra({"bootstrap.servers": work.bootstrap}, "kafka")
    }
    if work.users:
        found["pg"] = PostgresOptions.from_connection("pg", **work.users.connection_fields, extra={})
    return found
