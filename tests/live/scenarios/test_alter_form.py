"""The form that alters a connection, filled in as a person would, in a real Airflow."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_sinks.clients.wait import holds_within
from airflow_provider_sinks.local.airflow import AirflowStack
from airflow_provider_sinks.local.airflow_rest_api import DagRun
from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.processes import LocalServiceError

DAG_ID = "alter_any_connection"
_FILE = f"""
from airflow_provider_sinks.forms import alter_connection_dag

form = alter_connection_dag({DAG_ID!r})
"""
LOSING_ID = "alter_and_lose_an_answer"
_LOSING_FILE = """
import time
from pathlib import Path

from airflow.sdk import BaseOperatorLink
from airflow_provider_sinks.forms import alter_connection_dag

TAKEN = Path({taken!r})


class EndsLate(BaseOperatorLink):
    name = "ends late"

    def get_link(self, operator, *, ti_key):
        while not TAKEN.exists():
            time.sleep(0.1)
        return ""


def taken(context, event):
    if context["ti"].try_number == 1:
        TAKEN.touch()
        time.sleep(30)  # until Airflow ends this process, as its task has failed
    return take(context, event)


form = alter_connection_dag({dag_id!r})
approve = form.get_task("approve")
approve.operator_extra_links = (EndsLate(),)
take, approve.execute_complete = approve.execute_complete, taken
"""
"""The process that asked ends while another takes the answer: the scheduler confuses the two."""
_OVER_SECONDS, _LOOK_SECONDS = 300.0, 0.25
_READS_SECONDS = 15.0
"""By then the process that has asked is over, and Airflow loses no answer."""
SKIPPED, DONE, FAILED = "skipped", "success", "failed"


@pytest.fixture(scope="module")
def form(airflow: AirflowStack) -> Iterator[AirflowStack]:
    """An Airflow with the form."""
    file = airflow.dags_folder / f"{DAG_ID}.py"
    file.write_text(_FILE)
    yield airflow
    file.unlink()


@pytest.fixture
def losing(form: AirflowStack, tmp_path: Path) -> Iterator[str]:
    """The same form, in an Airflow that loses the first answer."""
    file = form.dags_folder / f"{LOSING_ID}.py"
    file.write_text(_LOSING_FILE.format(taken=str(tmp_path / "taken"), dag_id=LOSING_ID))
    yield LOSING_ID
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
    """Answer the question of a run as often as it is asked, and return how the run ended.

    At once, which Airflow may lose; then as somebody does who reads what is asked again.
    """
    task = f"{run.path}/taskInstances/approve"
    begun: dict[int, float] = {}

    def is_over() -> bool:
        if form.task_states(run).get("approve") == "awaiting_input":
            number = form.call("GET", task)["try_number"]
            asked = begun.setdefault(number, time.monotonic())
            if number == 1 or time.monotonic() - asked > _READS_SECONDS:
                answer_now = {"chosen_options": [answer], "params_input": {}}
                form.call("PATCH", f"{task}/-1/hitlDetails", answer_now)
        return form.run_state(run) in (DONE, FAILED)

    assert holds_within(is_over, _OVER_SECONDS, pause_seconds=_LOOK_SECONDS)
    return form.run_state(run)


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


def test_an_answer_that_airflow_loses_is_asked_for_again(
    form: AirflowStack, losing: str, conn_id: str
) -> None:
    run = form.trigger(losing, {"conn_id": conn_id, "drop": ["client.id"], "dry_run": False})

    assert answered(form, run, "Approve") == DONE
    assert form.call("GET", f"{run.path}/taskInstances/approve")["try_number"] > 1
    assert "client.id" not in options(form, conn_id)


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
