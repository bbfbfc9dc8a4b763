"""Sinks that share a connection in a real Airflow, and the DAG that alters it, killed where a test says."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient

from airflow_provider_sinks.core.launch.status import SinkState
from airflow_provider_sinks.local.airflow import AirflowStack
from airflow_provider_sinks.local.airflow_rest_api import DagRun
from tests import administrator
from tests.live.sinks_in_airflow import PARTITIONS, AirflowSink

API = "airflow_api_default"
TASK = "alter"

_FILE = """
import datetime
import itertools
import os
import signal

from airflow.sdk import DAG

from airflow_provider_sinks.clients.airflow_connections import ConnectionStore
from airflow_provider_sinks.operators.alter_connection_restart import AlterConnectionRestartOperator


def kill_at(number, moment):
    writes = itertools.count(1)

    def cut(real):
        def write(store, *arguments):
            is_it = next(writes) == number
            if is_it and moment == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            result = real(store, *arguments)
            if is_it:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return write

    for name in ("create", "change", "describe", "delete"):
        setattr(ConnectionStore, name, cut(getattr(ConnectionStore, name)))


class Alter(AlterConnectionRestartOperator):
    def execute(self, context):
        kill = context["dag_run"].conf.get("kill")
        if kill and context["ti"].try_number == 1:
            kill_at(*kill)
        return super().execute(context)


start = datetime.datetime(2025, 1, 1)
with DAG({dag_id!r}, schedule=None, start_date=start, catchup=False, max_active_runs=16):
    Alter(
        task_id="alter",
        statement="{{{{ dag_run.conf['statement'] }}}}",
        watch_timeout=datetime.timedelta(seconds=240),
        airflow_api_conn_id={api!r},
        retries=2,
        retry_delay=datetime.timedelta(seconds=1),
    )
"""


@dataclass
class SharedSink(AirflowSink):
    """A sink that shares its connection with others.

    :param shared: the id of the connection.
    """

    shared: str = ""

    @property
    def conn_id(self) -> str:
        return self.shared

    def prepare(self, rows: int = 0) -> None:
        """Make the source topic with some rows, and the DAG file."""
        source = f"{self.name}_in"
        admin = AdminClient({**self.client})
        administrator.create_topic(admin, source, PARTITIONS)
        self.feed(rows)
        self.write_dag(self.name)

    @property
    def newest_launch(self) -> int:
        """The number of the newest launch; 0 before the first."""
        return max((int(files.directory.name.partition("-")[0]) for files in self.launches), default=0)

    def has_committed(self, rows: int) -> bool:
        """Whether the newest launch runs, has committed, and is through so many rows of each partition."""
        status = self.status(self.newest_launch)
        if status is None or status.state is not SinkState.RUNNING or not status.rows:
            return False
        return min(status.positions.values()) >= rows


@dataclass(frozen=True)
class AlterDag:
    """The DAG that alters connections."""

    airflow: AirflowStack
    dag_id: str

    @classmethod
    def write(cls, airflow: AirflowStack, dag_id: str) -> AlterDag:
        """Write its file."""
        Path(airflow.dags_folder, f"{dag_id}.py").write_text(_FILE.format(dag_id=dag_id, api=API))
        return cls(airflow, dag_id)

    def start(self, statement: str, kill: tuple[int, str] | None = None) -> DagRun:
        """Start an alteration.

        :param kill: kill its first try at its n-th write, before or after it.
        """
        return self.airflow.trigger(self.dag_id, {"statement": statement, "kill": kill})

    def result(self, run: DagRun, seconds: float = 600) -> dict[str, Any]:
        """Wait for the end, and return what the task left: of a task that failed too."""
        self.airflow.wait_for_run(run, seconds)
        path = f"{run.path}/taskInstances/{TASK}"
        try_number = self.airflow.call("GET", path)["try_number"]
        value = self.airflow.call("GET", f"{path}/xcomEntries/return_value", deserialize="true")["value"]
        found = json.loads(value) if isinstance(value, str) else value
        return {**found, "log": self.airflow.task_log(run, TASK), "tries": try_number}
