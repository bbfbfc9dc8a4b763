"""A sink in a real Airflow whose driver is on a real YARN."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil

from airflow_provider_sinks.clients.yarn import YarnClient
from airflow_provider_sinks.core.launch.status import SinkStatus
from airflow_provider_sinks.core.launch.yarn import Application, AppState, sink_tag
from airflow_provider_sinks.local import spark
from airflow_provider_sinks.local.airflow_rest_api import DagRun
from airflow_provider_sinks.local.yarn import YarnCluster
from tests.faults.driver import QUICK_START
from tests.live.cluster import SMALL
from tests.live.sinks_in_airflow import TASK, AirflowSink

CONNECTION = "spark_on_yarn"

_FILE = """
import os
from datetime import datetime, timedelta
from pathlib import Path

from airflow.sdk import DAG

from airflow_provider_sinks.operators.submit_sink_job import SubmitSinkJobOperator


def remember_process(context):
    Path({pid_file!r}).write_text(str(os.getpid()))


with DAG({dag_id!r}, schedule=None, start_date=datetime(2025, 1, 1), catchup=False):
    SubmitSinkJobOperator(
        task_id="submit",
        retries={retries},
        retry_delay=timedelta(seconds=1),
        execution_timeout={timeout_seconds} and timedelta(seconds={timeout_seconds}),
        poll_interval=1,
        on_execute_callback=remember_process,
        **{arguments!r}
    )
"""


@dataclass
class ClusterSink(AirflowSink):
    """One sink, its DAG, its topics, and its applications.

    :param yarn: where its drivers run.
    :param folder: for checkpoints and status.
    """

    yarn: YarnCluster = field(kw_only=True)
    folder: Path = field(kw_only=True)
    retries: int = field(default=5, kw_only=True)
    timeout: timedelta | None = field(default=None, kw_only=True)

    def write_dag(self, dag_id: str) -> None:
        """Write the sink's DAG file."""
        ours = {"sink": self.sink(), "spark_conn_id": CONNECTION, **self.submits_with()}
        text = _FILE.format(
            dag_id=dag_id,
            arguments={**ours, **self.arguments},
            retries=self.retries,
            timeout_seconds=self.timeout.total_seconds() if self.timeout else None,
            pid_file=str(self.pid_file),
        )
        self.dag_file.write_text(text)

    def sink(self) -> dict[str, Any]:
        """The sink as its DAG names it."""
        return {**super().sink(), "checkpoint": self.folder.as_uri()}

    def submits_with(self) -> dict[str, Any]:
        """What ``spark-submit`` is given."""
        return {
            "jars": ",".join(map(str, spark.kafka_jars())),
            "conf": {**self.yarn.spark_settings, **SMALL},
            "env_vars": {**self.yarn.environment, "SPARK_SUBMIT_OPTS": QUICK_START},
        }

    @property
    def pid_file(self) -> Path:
        """Where the newest try of the task says which process it is."""
        return self.folder / f"{self.name}.pid"

    @property
    def task_process(self) -> psutil.Process:
        """The process of the newest try."""
        return psutil.Process(int(self.pid_file.read_text()))

    def applications(self) -> list[Application]:
        """All applications of this sink, oldest first."""
        found = YarnClient(self.yarn.url).tagged(sink_tag(self.name))
        return sorted(found, key=lambda app: app.id)

    def running(self) -> list[Application]:
        """The applications that are not over."""
        over = (AppState.FINISHED, AppState.FAILED, AppState.KILLED)
        return [app for app in self.applications() if app.state not in over]

    def status(self, launch: int) -> SinkStatus | None:
        """The newest status of a launch, or ``None`` before the first."""
        for file in (self.folder / self.name / "launches").glob(f"{launch:06d}-*/status.json"):
            return SinkStatus.from_json(file.read_text())
        return None

    def driver_count(self) -> int:
        """How many drivers live."""
        return len(self.running())

    def task(self, run: DagRun) -> dict[str, Any]:
        """What Airflow says of the task."""
        return dict(self.airflow.call("GET", f"{run.path}/taskInstances/{TASK}"))

    def told(self) -> str:
        """What the applications and the launches say of themselves, for messages."""
        apps = [(app.id, app.state.value, app.diagnostics[-300:]) for app in self.applications()]
        statuses = [str(self.status(number)) for number in (1, 2, 3) if self.status(number)]
        return f"{apps} {statuses}"
