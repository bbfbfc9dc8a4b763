"""The form that alters a connection, filled in as a person would, in a real Airflow."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from airflow_provider_sinks.local.airflow import AirflowStack, DagRun
from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.processes import LocalServiceError

DAG_ID = "alter_any_connection"
_FILE = f"""
from airflow_provider_sinks.forms import alter_connection_dag

form = alter_connection_dag({DAG_ID!r})
"""
_READS_SECONDS = 5.0
"""An answer within the same second comes before the scheduler knows that the task waits: it fails it."""
SKIPPED, DONE = "skipped", "success"


@pytest.fixture(scope="module")
def form(airflow: AirflowStack) -> Iterator[AirflowStack]:
    """An Airflow with the form."""
    file = airflow.dags_folder / f"{DAG_ID}.py"
    file.write_text(_FILE)
    yield airflow
    file.unlink()


@pytest.fixture
def conn_id(form: AirflowStack, broker: KafkaBroker) -> str:
    """A connection that no sink uses."""
    made = f"kafka_{uuid.uuid4().hex[:8]}"
    form.add_connection(made, "kafka", extra={**broker.client_config(), "client.id": "before"})
    return made


def filled_in(form: AirflowStack, conn_id: str, **fields: Any) -> DagRun:
    return form.trigger(DAG_ID, {"conn_id": conn_id, **fields})


def answered(form: AirflowStack, run: DagRun, answer: str) -> str:
    """Answer the question of a run, and return how the run ended."""
    form.wait_for_task(run, "approve", "awaiting_input")
    time.sleep(_READS_SECONDS)
    path = f"{run.path}/taskInstances/approve/-1/hitlDetails"
    form.call("PATCH", path, {"chosen_options": [answer], "params_input": {}})
    return form.wait_for_run(run)


def options(form: AirflowStack, conn_id: str) -> dict[str, Any]:
    return dict(json.loads(form.call("GET", f"connections/{conn_id}")["extra"]))


def test_it_only_looks_unless_told_otherwise(form: AirflowStack, conn_id: str) -> None:
    run = filled_in(form, conn_id, set={"client.id": "after"})

    assert form.wait_for_run(run) == DONE
    assert form.task_states(run) == {"plan": DONE, "decide": DONE, "approve": SKIPPED, "apply": SKIPPED}
    assert options(form, conn_id)["client.id"] == "before"
    assert "commit" in form.task_log(run, "plan")


def test_a_new_value_needs_nobody(form: AirflowStack, conn_id: str) -> None:
    run = filled_in(form, conn_id, set={"client.id": "after"}, dry_run=False)

    assert form.wait_for_run(run) == DONE
    assert form.task_states(run) == {"plan": DONE, "decide": DONE, "approve": SKIPPED, "apply": DONE}
    assert options(form, conn_id)["client.id"] == "after"


@pytest.mark.parametrize(("answer", "is_dropped"), [("Approve", True), ("Reject", False)])
def test_an_option_is_taken_away_only_where_somebody_says_yes(
    form: AirflowStack, conn_id: str, answer: str, *, is_dropped: bool
) -> None:
    run = filled_in(form, conn_id, drop=["client.id"], dry_run=False)

    assert answered(form, run, answer) == DONE
    assert form.task_states(run)["apply"] == (DONE if is_dropped else SKIPPED)
    assert ("client.id" not in options(form, conn_id)) is is_dropped


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"conn_id": "kafka prod"}, id="no id of a connection"),
        pytest.param({"set": {"sasl.password": "in clear"}}, id="a secret in clear"),
        pytest.param({"set": ["client.id"]}, id="no values"),
        pytest.param({"drop": ["client id"]}, id="no name of an option"),
        pytest.param({"dry_run": "perhaps"}, id="neither yes nor no"),
    ],
)
def test_wrong_input_is_refused_at_the_form(form: AirflowStack, conn_id: str, wrong: dict[str, Any]) -> None:
    with pytest.raises(LocalServiceError, match="answered 400"):
        filled_in(form, **{"conn_id": conn_id, **wrong})
