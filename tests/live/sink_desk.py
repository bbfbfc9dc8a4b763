"""``airflow sinks ...`` for a sink that a test has run on a stage; the test gives the fixture ``sink``."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from tests.airflow.api_server import account, airflow_url
from tests.airflow.desk import Define, Desk, open_desk
from tests.airflow.fakes import SPARK
from tests.airflow_side import airflow_db, connections
from tests.live.stage import Sink, Stage

if TYPE_CHECKING:
    from airflow.sdk import DAG

__all__ = ["airflow_db", "airflow_url", "connections", "dag", "desk"]


@pytest.fixture
def dag(stage: Stage, sink: Sink, airflow_url: str, connections: Define) -> DAG:
    """The DAG of that sink, and the connections that it may need."""
    from airflow.sdk import DAG

    from airflow_provider_sinks.operators.submit_sink_job import SubmitSinkJobOperator

    pg = {"conn_type": "postgres", **stage.postgres.connection_fields}
    kafka = {"conn_type": "kafka", "extra": stage.broker.client_config()}
    if stage.registry is not None:
        connections(registry={"conn_type": "http", "host": stage.registry.options["url"]})
    connections(airflow_api_default=account(airflow_url), kafka=kafka, pg=pg, spark_default=SPARK)
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
