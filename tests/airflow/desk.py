"""A place to run ``airflow sinks`` at, with one sink that a real Airflow API knows.

Imported before Airflow has its home (``tests/airflow_side.py``), so nothing here imports it at the top.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_sinks.clients.airflow_api import AirflowApi
from airflow_provider_sinks.core.launch.published import published
from airflow_provider_sinks.core.launch.status import SinkStatus
from airflow_provider_sinks.core.lifecycle.state_history import to_mappings, told
from tests.airflow.api_server import account
from tests.airflow.fakes import KAFKA, SINK, SPARK
from tests.airflow_side import _process

if TYPE_CHECKING:
    from airflow.sdk import DAG

Define = Callable[..., None]


@dataclass
class Answer:
    """What a command did."""

    code: int
    out: str
    err: str
    seconds: float

    @property
    def data(self) -> Any:
        return json.loads(self.out)


def answered(capture: pytest.CaptureFixture[str], *arguments: str) -> Answer:
    """Run ``airflow sinks`` with these arguments."""
    from airflow.cli.cli_parser import get_parser

    capture.readouterr()
    options = get_parser().parse_args(["sinks", *arguments])
    started = time.monotonic()
    with pytest.raises(SystemExit) as ended:
        options.func(options)
    out, err = capture.readouterr()
    code = ended.value.code
    assert isinstance(code, int)
    return Answer(code, _without_log(out), _without_log(err), time.monotonic() - started)


@dataclass
class Desk:
    """A place to run commands at, with one sink that Airflow knows."""

    api: AirflowApi
    capture: pytest.CaptureFixture[str]
    sink: str
    dag: DAG
    runs: list[str] = field(default_factory=list)

    def run(self, *arguments: str) -> Answer:
        return answered(self.capture, *arguments)

    def tell(self, *statuses: SinkStatus) -> None:
        """Show statuses as the sink's task does."""
        history: Any = ()
        shown: dict[str, Any] = {}
        for status in statuses:
            history = told(history, status)
            shown = published(status, before=shown)
        self.put("status", shown)
        self.put("history", to_mappings(history))

    def put(self, key: str, value: object) -> None:
        self.api.call("PUT", f"assets/{self.asset['id']}/state-store/{key}", {"value": value})

    def stored(self) -> dict[str, Any]:
        path = f"assets/{self.asset['id']}/state-store"
        return {entry["key"]: entry["value"] for entry in self.api.all(path, "asset_state_store")}

    @property
    def asset(self) -> dict[str, Any]:
        (found,) = self.api.all("assets", "assets", name_pattern=f"sink:{self.sink}")
        return found

    @property
    def is_paused(self) -> bool:
        return bool(self.api.call("GET", f"dags/{self.sink}")["is_paused"])

    @property
    def is_to_be_read(self) -> bool:
        """Whether Airflow was asked to read the DAG's file again before its time."""
        from airflow.models.dagbag import DagPriorityParsingRequest
        from airflow.utils.session import create_session

        file = self.api.call("GET", f"dags/{self.sink}")["relative_fileloc"]
        with create_session() as session:
            asked = session.query(DagPriorityParsingRequest).filter_by(relative_fileloc=file)
            return bool(asked.count())

    def unpause(self) -> None:
        self.api.call("PATCH", f"dags/{self.sink}", {"is_paused": False})

    def start(self, state: str = "running") -> None:
        """Let a task of the sink be in a state."""
        from airflow.models.taskinstance import TaskInstance
        from airflow.utils.session import create_session

        run = self.api.call("POST", f"dags/{self.sink}/dagRuns", {"logical_date": None})["dag_run_id"]
        with create_session() as session:
            instance = session.query(TaskInstance).filter_by(dag_id=self.sink, run_id=run).one()
            instance.state = state
        self.runs.append(run)

    def run_states(self) -> list[str]:
        return [self.api.call("GET", f"dags/{self.sink}/dagRuns/{run}")["state"] for run in self.runs]

    def task_states(self) -> list[str]:
        return [
            task["state"]
            for run in self.runs
            for task in self.api.all(f"dags/{self.sink}/dagRuns/{run}/taskInstances", "task_instances")
        ]


def _without_log(text: str) -> str:
    """Leave out what the API server says, which runs in this process."""
    return "".join(
        line for line in text.splitlines(True) if not re.match(r"\S*\d{4}-\d\d-\d\dT[\d:]+\.", line)
    )


def sink_dag_of(name: str, *more: str) -> DAG:
    """Return a DAG that runs a sink of its own name, and others."""
    from airflow.sdk import DAG

    from airflow_provider_sinks.operators.submit_sink_job import SubmitSinkJobOperator

    with DAG(name, schedule=None, start_date=datetime(2025, 1, 1, tzinfo=UTC)) as dag:
        for sink in (name, *more):
            SubmitSinkJobOperator(task_id=f"submit_{sink}", sink={**SINK, "name": sink})
    return dag


@contextmanager
def open_desk(name: str, capsys: pytest.CaptureFixture[str], dag: DAG) -> Iterator[Desk]:
    """Let Airflow know a DAG, and give the desk; connections must be defined."""
    from airflow_provider_sinks.hooks.airflow_account import airflow_api

    _process(dag)
    with airflow_api() as api:
        yield Desk(api, capsys, name, dag)


@pytest.fixture
def desk(
    airflow_url: str,
    connections: Define,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> Iterator[Desk]:
    """A desk whose sink has a broker that is stopped."""
    monkeypatch.setenv("_AIRFLOW_PROCESS_CONTEXT", "server")
    connections(airflow_api_default=account(airflow_url), kafka_test=KAFKA, spark_default=SPARK)
    name = "sink_of_" + re.sub(r"\W+", "_", request.node.name).strip("_")[:80]
    with open_desk(name, capsys, sink_dag_of(name)) as desk:
        yield desk


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a broker be waited for one second instead of ten; the time itself is tested once."""
    from airflow_provider_sinks.connectors.kafka.topics import KafkaClient

    monkeypatch.setattr(KafkaClient.__init__, "__defaults__", (1.0,))
