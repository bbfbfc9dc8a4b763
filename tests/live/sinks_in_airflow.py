"""Sinks in a real Airflow: their DAG files, what feeds them, what is done to their tasks, and what must hold.

Each sink has topics of its own and is fed all the time. Afterwards every row that its progress says was
committed must be in the target once, no other may be there, and no reader may hang.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import psutil
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from airflow_provider_sinks.core.launch.files import LaunchFiles
from airflow_provider_sinks.core.launch.status import SinkState, SinkStatus
from airflow_provider_sinks.local.airflow import AirflowStack
from airflow_provider_sinks.local.airflow_rest_api import DagRun
from airflow_provider_sinks.local.broker import KafkaBroker
from tests import administrator
from tests.faults import topics

PARTITIONS = 2
TASK = "submit"
_FEED_SECONDS = 0.2
_POLL_SECONDS = 0.2
_WAIT_SECONDS = 240.0

_FILE = """
import datetime

from airflow.sdk import DAG

from airflow_provider_sinks.operators.submit_sink_job import SubmitSinkJobOperator

start = datetime.datetime(2025, 1, 1)
with DAG({dag_id!r}, schedule=None, start_date=start, catchup=False, max_active_runs=2):
    SubmitSinkJobOperator(task_id="submit", poll_interval=1, **{arguments!r})
"""
RETRIES = 5
_TRIED_AGAIN = {"retries": RETRIES, "retry_delay": timedelta(seconds=1)}


@dataclass
class AirflowSink:
    """One sink, the DAG that runs it, and its topics.

    :param arguments: more arguments of the operator.
    :param spec: more of the sink's spec.
    :param row_bytes: how long each row is at least.
    :param called_off: ends all waiting; nobody wants to know any more.
    """

    airflow: AirflowStack
    broker: KafkaBroker
    story: str
    arguments: Mapping[str, Any]
    spec: Mapping[str, Any] = field(default_factory=dict)
    row_bytes: int = 1
    called_off: threading.Event = field(default_factory=threading.Event)
    fed: int = 0

    @cached_property
    def name(self) -> str:
        """The sink's name; its topics and its first DAG are named after it."""
        return f"{self.story}_{uuid.uuid4().hex[:6]}"

    @property
    def conn_id(self) -> str:
        """The Airflow connection of this sink alone."""
        return f"kafka_{self.name}"

    @property
    def client(self) -> dict[str, str]:
        """The configuration of a client that may do everything."""
        return {name: str(value) for name, value in self.broker.client_config().items()}

    # Before the story.

    def prepare(self, rows: int = 0) -> None:
        """Make the source topic with some rows, the connection and the DAG file."""
        admin = AdminClient({**self.client})
        source = f"{self.name}_in"
        administrator.create_topic(admin, source, PARTITIONS)
        self.feed(rows)
        self.airflow.add_connection(self.conn_id, "kafka", extra=self.client)
        self.write_dag(self.name)

    def write_dag(self, dag_id: str) -> None:
        """Write the sink's DAG file."""
        arguments = {"sink": self.sink(), **_TRIED_AGAIN, **self.arguments}
        self.dag_file.write_text(_FILE.format(dag_id=dag_id, arguments=arguments))

    def sink(self) -> dict[str, Any]:
        """The sink as its DAG names it."""
        return {
            "name": self.name,
            "source": {"kafka": {"connection": self.conn_id, "topic": f"{self.name}_in", "format": "text"}},
            "target": {"kafka": {"connection": self.conn_id, "topic": f"{self.name}_out", "value": "value"}},
            "trigger": {"every": "500ms"},
            **self.spec,
        }

    @property
    def dag_file(self) -> Path:
        """Where the DAG is."""
        return self.airflow.dags_folder / f"{self.name}.py"

    def feed(self, rows: int) -> None:
        """Add so many rows to each source partition; each says where it stands."""
        producer = Producer(self.client)
        for row in range(self.fed, self.fed + rows):
            for partition in range(PARTITIONS):
                value = f"{partition}-{row}".ljust(self.row_bytes)
                producer.produce(f"{self.name}_in", value=value, partition=partition)
        assert producer.flush(30) == 0
        self.fed += rows

    @contextlib.contextmanager
    def fed_all_the_time(self) -> Iterator[None]:
        """Feed the sink while the body runs."""
        over = threading.Event()

        def feed() -> None:
            while not over.wait(_FEED_SECONDS):
                self.feed(1)

        thread = threading.Thread(target=feed, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    # What people do.

    def start(self, dag_id: str | None = None) -> DagRun:
        return self.airflow.trigger(dag_id or self.name)

    def mark(self, run: DagRun, state: str) -> None:
        self.airflow.call("PATCH", f"{run.path}/taskInstances/{TASK}", {"new_state": state})

    def clear(self, run: DagRun) -> None:
        body = {
            "dry_run": False, "dag_run_id": run.run_id, "task_ids": [TASK], "only_failed": False,
            "reset_dag_runs": True,
        }  # fmt: skip
        self.airflow.call("POST", f"dags/{run.dag_id}/clearTaskInstances", body)

    def change_connection(self, **options: str) -> None:
        extra = json.dumps({**self.client, **options})
        body = {"connection_id": self.conn_id, "conn_type": "kafka", "extra": extra}
        self.airflow.call("PATCH", f"connections/{self.conn_id}", body)

    def break_dag_file(self) -> None:
        """Return when Airflow has noticed that the file cannot be read."""
        self.dag_file.write_text("a broken airflow dag")  # without these words Airflow does not look into it
        self.wait_until(lambda: self._is_broken, "the DAG file to be missed", 60)

    def mend_dag_file(self, dag_id: str) -> None:
        """Return when Airflow has noticed that the file can be read again."""
        self.write_dag(dag_id)
        self.wait_until(lambda: not self._is_broken, "the DAG file to be read", 60)

    @property
    def _is_broken(self) -> bool:
        errors = self.airflow.call("GET", "importErrors", limit=100)["import_errors"]
        return any(self.dag_file.name in error["filename"] for error in errors)

    def lose_asset_store(self) -> None:
        """Do what Airflow does about a minute after the last DAG that names an asset is gone."""
        (asset,) = self.airflow.call("GET", "assets", name_pattern=f"sink:{self.name}")["assets"]
        self.airflow.call("DELETE", f"assets/{asset['id']}/state-store")

    # What can be seen.

    @property
    def launches(self) -> list[LaunchFiles]:
        """The launches so far, oldest first."""
        folder = self.airflow.home / "sinks" / "launches" / self.name
        return [LaunchFiles(launch) for launch in sorted(folder.iterdir())] if folder.is_dir() else []

    def status(self, launch: int) -> SinkStatus | None:
        """The newest status of a launch, or ``None`` before the first."""
        for files in self.launches:
            text = files.read_status()
            status = SinkStatus.from_json(text) if text else None
            if status is not None and status.launch == launch:
                return status
        return None

    def shown(self) -> dict[str, Any]:
        """The status that Airflow shows to everybody."""
        (asset,) = self.airflow.call("GET", "assets", name_pattern=f"sink:{self.name}")["assets"]
        value = self.airflow.call("GET", f"assets/{asset['id']}/state-store/status")["value"]
        return dict(json.loads(value) if isinstance(value, str) else value)

    def witness(self) -> dict[str, Any]:
        """The second copy of the witness."""
        value = self.airflow.call("GET", f"variables/sinks.{self.name}.witness")["value"]
        return dict(json.loads(value))

    def drivers(self) -> list[psutil.Process]:
        """The JVMs of this sink's drivers that live."""
        folder = str(self.airflow.home / "sinks" / "launches" / self.name)
        return [process for process in psutil.process_iter() if _runs(process, folder)]

    def driver_count(self) -> int:
        """How many drivers live."""
        return len(self.drivers())

    def has_open_transaction(self) -> bool:
        """Whether a reader of the target hangs behind a transaction."""
        return topics.has_open_transaction(self.client, f"{self.name}_out")

    def wait_until(self, holds: Callable[[], bool], what: str, seconds: float = _WAIT_SECONDS) -> None:
        deadline = time.monotonic() + seconds
        while not holds():
            assert not self.called_off.is_set(), f"{self.name}: called off while waiting for {what}"
            assert time.monotonic() < deadline, (
                f"{self.name}: waited {seconds:.0f} s for {what}: {self.told()}"
            )
            time.sleep(_POLL_SECONDS)

    def wait_running(self, launch: int) -> SinkStatus:
        """Return when a launch runs, has committed rows of its own, and is the only one."""

        def runs() -> bool:
            status = self.status(launch)
            assert status is None or not status.state.is_final, str(status)
            return status is not None and status.state is SinkState.RUNNING and status.rows > 0

        self.wait_until(runs, f"launch {launch} to run")
        self.wait_until(lambda: self.driver_count() == 1, "the only driver", 120)
        status = self.status(launch)
        assert status is not None
        return status

    def wait_through(self) -> None:
        """Return when the newest launch has committed rows that were fed just now."""
        self.feed(5)
        fed = self.fed
        self.wait_until(lambda: self._has_committed(fed), "the newest launch to commit")

    def _has_committed(self, rows: int) -> bool:
        """Whether the newest launch has written, and is through so many rows of each partition."""
        status = self.status(len(self.launches))
        return status is not None and bool(status.rows) and min(status.positions.values()) >= rows

    def wait_task(self, run: DagRun, state: str) -> None:
        """Return when the task of a run has a state."""
        self.wait_until(lambda: self.airflow.task_states(run).get(TASK) == state, f"the task to be {state}")

    def wait_no_driver(self, seconds: float = 120) -> None:
        self.wait_until(lambda: not self.driver_count(), "no driver", seconds)

    def told(self) -> str:
        """What the launches say of themselves, for messages."""
        texts = [(files.directory.name, files.read_status()) for files in self.launches]
        return f"{[(name, text and SinkStatus.from_json(text).one_line()) for name, text in texts]}"

    def demand_exact(self, rows_min: int = 1) -> None:
        """Every row that progress calls committed is there once, and no other; no reader hangs.

        :param rows_min: so many there must be.
        """
        self.wait_until(lambda: not self.has_open_transaction(), "no open transaction", 5)
        committed = {}
        for writer, record in topics.read_progress(self.client, f"_sinks-progress-{self.name}"):
            if writer.startswith("p"):
                committed[int(writer[1:])] = record.to[int(writer[1:])]
        source = topics.read(self.client, f"{self.name}_in")
        wanted = Counter(
            record.value for record in source if record.offset < committed.get(record.partition, 0)
        )
        found = Counter(record.value for record in topics.read(self.client, f"{self.name}_out"))
        missing, more = wanted - found, found - wanted
        assert (missing.total(), more.total()) == (0, 0), (missing, more)
        assert found.total() >= rows_min


def _runs(process: psutil.Process, folder: str) -> bool:
    with contextlib.suppress(psutil.Error):
        if process.status() == psutil.STATUS_ZOMBIE or "java" not in process.name():
            return False
        return any(argument.startswith(folder) for argument in process.cmdline())
    return False
