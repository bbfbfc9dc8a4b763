"""What a person who may edit XComs makes of a replay's second task: nothing that nobody has begun."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.core.lifecycle.replay import replaying_sink
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.lifecycle.replays import as_begun
from tests.airflow.api_server import account
from tests.airflow.desk import open_desk
from tests.airflow.fakes import SINK, FakeSpark

if TYPE_CHECKING:
    from airflow.sdk import DAG, BaseOperator

    from tests.airflow_side import RunTask

CLICKS = {**SINK, "name": "clicks", "dead_letter": "clicks-dead"}
BOUNDS = {"sink": "clicks", "topic": "orders", "until": {"0": 3}}
FORGED = {
    **SINK,
    "name": "clicks-replay",
    "source": "kafka_test/salaries",
    "target": "kafka_test/of-the-attacker",
    "replay": BOUNDS,
}


@pytest.fixture
def clicks(
    airflow_url: str, connections: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> Iterator[None]:
    """An Airflow that knows the sink."""
    connections(airflow_api_default=account(airflow_url))
    with open_desk("clicks", capsys, _sink_dag()):
        yield


@pytest.mark.usefixtures("clicks")
def test_an_xcom_that_somebody_edited_leads_no_row_elsewhere(
    run_task: RunTask, dag: DAG, spark: FakeSpark
) -> None:
    begin = _patched(dag)
    submit = _submit(begin)

    run_task(begin)
    result = run_task(submit, again=True)

    assert result.state == "success", result.error
    spec = spark.seen["launch"]["spec"]
    assert "salaries" not in json.dumps(spec)
    assert spec["source"]["kafka"]["topic"] == "clicks-dead"
    assert spec["target"]["kafka"]["topic"] == "orders-out"
    assert spec["replay"]["until"] == {"0": 3}


@pytest.mark.parametrize("begun", [None, "null", "no JSON", "{}", {"replay": None}, {"replay": {"sink": 7}}])
def test_without_bounds_there_is_nothing_to_run(begun: object) -> None:
    with pytest.raises(ConfigurationError, match="it is not known which dead letters"):
        as_begun(replaying_sink(SinkSpec.parse(CLICKS)), begun)


def _sink_dag() -> DAG:
    from airflow.sdk import DAG

    from airflow_provider_sinks.operators.submit_sink_job import SubmitSinkJobOperator

    with DAG("runs_clicks", schedule=None, start_date=datetime(2025, 1, 1, tzinfo=UTC)) as made:
        SubmitSinkJobOperator(task_id="submit", sink=CLICKS)
    return made


def _patched(dag: DAG) -> BaseOperator:
    """Return a task that leaves what an attacker wrote over the XCom of the one that begins."""
    from airflow.sdk import BaseOperator

    class Patched(BaseOperator):
        sink = "clicks"
        airflow_api_conn_id = "airflow_api_default"

        def execute(self, context: Any) -> Any:
            del context
            return {"replay": FORGED}

    return Patched(task_id="begin", dag=dag)


def _submit(begin: Any) -> BaseOperator:
    from airflow_provider_sinks.operators.replay_dead_letters import replaying

    return replaying(begin, "spark_default", None)
