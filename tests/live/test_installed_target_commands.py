"""``airflow sinks ...`` for a sink whose target another package brings; the files are read back."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from airflow_provider_sinks.core.decision.facts import Role
from tests.airflow.api_server import account, airflow_url
from tests.airflow.desk import Define, Desk, open_desk
from tests.airflow.fakes import SPARK
from tests.airflow_side import airflow_db, connections
from tests.installed_connector import Installed
from tests.live.stage import KeyValue, Sink, Stage

if TYPE_CHECKING:
    from airflow.sdk import DAG

__all__ = ["airflow_db", "airflow_url", "connections"]
pytestmark = [
    pytest.mark.filterwarnings("error:::airflow_provider_sinks"),
    pytest.mark.filterwarnings("default"),
]
_ROWS: list[KeyValue] = [("k", f'{{"id": {number}}}') for number in range(3)]


@pytest.fixture
def sink(stage: Stage, installed_files: Installed) -> Iterator[Sink]:
    """A sink that has written three rows in one epoch, and two in the next."""
    source = stage.source("files", {0: _ROWS})
    target = {"files": {"path": str(stage.folder / "data" / "orders")}}
    with installed_files.found():
        made = stage.sink("files", source, from_={"schema": "id int"}, target=target)
        made.run()
        stage.produce(source, [(0, *row) for row in _ROWS[:2]])
        made.run()
        yield made


@pytest.fixture
def dag(stage: Stage, sink: Sink, airflow_url: str, connections: Define) -> DAG:
    """The DAG of that sink, and the connections that it needs: none for the target."""
    from airflow.sdk import DAG

    from airflow_provider_sinks.operators.submit_sink_job import SubmitSinkJobOperator

    kafka = {"conn_type": "kafka", "extra": stage.broker.client_config()}
    connections(airflow_api_default=account(airflow_url), kafka=kafka, spark_default=SPARK)
    with DAG(sink.parsed.name, schedule=None, start_date=datetime(2025, 1, 1, tzinfo=UTC)) as dag:
        SubmitSinkJobOperator(task_id="submit", sink=sink.parsed)
    return dag


@pytest.fixture
def desk(dag: DAG, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Desk]:
    """A desk with that sink."""
    from airflow_provider_sinks.connectors.generations import Generations

    monkeypatch.setenv("_AIRFLOW_PROCESS_CONTEXT", "server")
    monkeypatch.setattr(Generations.__init__, "__kwdefaults__", {"read_seconds": 30.0, "quiet_seconds": 0.0})
    with open_desk(dag.dag_id, capsys, dag) as desk:
        desk.put("witness", {"owner": "faults", "launch": 1})
        yield desk


def _ids(sink: Sink) -> list[int]:
    log = importlib.import_module("sinks_connector_files.log")
    folders = sink.parsed.resources
    found = log.visible_files(
        Path(folders[Role.DATA]), log.Log(Path(folders[Role.PROGRESS]), sink.parsed.name)
    )
    return sorted(row["id"] for file in found for row in pq.read_table(file).to_pylist())


def test_plan_progress_describe_and_check_know_it(desk: Desk, sink: Sink) -> None:
    plan = desk.run("plan", desk.sink)
    progress = desk.run("progress", desk.sink, "-o", "json")
    described = desk.run("describe", desk.sink, "-o", "json")
    checked = desk.run("check", desk.sink, "--ask-spark", "never")

    assert [done.code for done in (plan, progress, described)] == [0, 0, 0]
    assert "resumes after epoch 2 of generation 1" in plan.out
    assert [(w["writer"], w["epoch"], w["rows_total"]) for w in progress.data["writers"]] == [
        ("all", 2, 5),
        ("driver", 1, 0),
    ]
    folder = sink.parsed.resources[Role.DATA]
    assert (described.data["target"], described.data["connections"]) == (f"files/{folder}", ["kafka"])
    assert re.search(rf'pass +target files +data table "{re.escape(folder)}"', checked.out)


def test_a_rewind_to_an_epoch_and_a_reset_are_what_the_next_start_goes_on_from(
    desk: Desk, sink: Sink
) -> None:
    rewound = desk.run("rewind", desk.sink, "--epoch", "2", "--yes")
    sink.run()
    after_rewind = _ids(sink)
    reset = desk.run("reset", desk.sink, "--data", "recreate", "--yes")
    emptied = _ids(sink)
    sink.run()

    assert (rewound.code, reset.code) == (0, 0), rewound.err + reset.err
    assert after_rewind == [0, 0, 0, 1, 1, 1, 2]
    assert (emptied, _ids(sink)) == ([], [0, 0, 1, 1, 2])
