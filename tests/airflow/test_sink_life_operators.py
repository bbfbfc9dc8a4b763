"""The verbs of a sink's life as tasks, against Airflow's own API."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.operators.sink_life import (
    DropSinkOperator,
    PauseSinkOperator,
    ResetSinkOperator,
    RestartSinkOperator,
    ResumeSinkOperator,
    RewindSinkOperator,
)
from tests.airflow.desk import Desk
from tests.airflow.fakes import SINK
from tests.airflow_side import xcom_of

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from tests.airflow_side import RunTask

Define = Callable[..., None]


def test_a_task_pauses_a_sink_and_another_resumes_it(desk: Desk, run_task: RunTask, dag: DAG) -> None:
    desk.unpause()
    desk.start()

    run_task(PauseSinkOperator(task_id="pause", sink={**SINK, "name": desk.sink}, dag=dag))
    paused = (desk.is_paused, desk.task_states())
    plan = xcom_of(dag.dag_id)
    run_task(ResumeSinkOperator(task_id="resume", sink=desk.sink, dag=dag))

    assert paused == (True, ["failed"])
    assert (plan["sink"], plan["dry_run"], len(plan["steps"])) == (desk.sink, False, 2)
    assert not desk.is_paused


def test_a_dry_run_from_a_form_touches_nothing(desk: Desk, run_task: RunTask, dag: DAG) -> None:
    desk.unpause()
    task = PauseSinkOperator(
        task_id="pause", sink="{{ dag_run.conf.sink }}", dry_run="{{ dag_run.conf.dry_run }}", dag=dag
    )

    run_task(task, conf={"sink": desk.sink, "dry_run": True})

    assert not desk.is_paused
    assert xcom_of(dag.dag_id)["steps"] == [f'pause DAG "{desk.sink}"']


def test_a_restart_clears_the_task(desk: Desk, run_task: RunTask, dag: DAG) -> None:
    desk.start()

    run_task(RestartSinkOperator(task_id="restart", sink=desk.sink, dag=dag))

    assert desk.task_states() == ["restarting"]


@pytest.mark.parametrize(
    ("make", "arguments"),
    [(RewindSinkOperator, {"epoch": 3}), (ResetSinkOperator, {"data": "recreate"})],
    ids=["rewind", "reset"],
)
def test_a_sink_that_runs_is_left_alone_and_the_task_fails_at_once(
    desk: Desk, run_task: RunTask, dag: DAG, make: Any, arguments: dict[str, Any]
) -> None:
    desk.start()

    result = run_task(make(task_id="verb", sink=desk.sink, retries=3, dag=dag, **arguments))

    assert result.ti.state == "failed"
    assert "is running" in str(result.error)
    assert desk.task_states() == ["running"]


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize(
    ("make", "arguments"),
    [(RewindSinkOperator, {"offsets": "0:1"}), (ResetSinkOperator, {})],
    ids=["rewind", "reset"],
)
def test_a_broker_that_is_away_is_tried_again(
    desk: Desk, run_task: RunTask, dag: DAG, make: Any, arguments: dict[str, Any]
) -> None:
    result = run_task(make(task_id="verb", sink=desk.sink, retries=3, dag=dag, **arguments))

    assert result.ti.state == "up_for_retry"
    assert "Kafka at 127.0.0.1:1 could not" in str(result.error)


@pytest.mark.usefixtures("hasty")
def test_a_sink_is_dropped(desk: Desk, run_task: RunTask, dag: DAG) -> None:
    desk.put("witness", {"owner": "us", "launch": 1})

    run_task(DropSinkOperator(task_id="drop", sink=desk.sink, dag=dag))

    assert sorted(desk.stored()) == ["history"]


@pytest.mark.parametrize(
    ("make", "arguments", "said"),
    [
        (PauseSinkOperator, {"sink": ""}, "sink: is ''"),
        (PauseSinkOperator, {"sink": "a", "dry_run": "perhaps"}, "dry_run: is 'perhaps'"),
        (PauseSinkOperator, {"sink": "a", "airflow_api_conn_id": ""}, "airflow_api_conn_id: is empty"),
        (ResetSinkOperator, {"sink": "a", "data": "recreated"}, 'did you mean "recreate"?'),
        (ResetSinkOperator, {"sink": "a", "dead_letter": "x"}, "one of keep, empty, recreate"),
        (RewindSinkOperator, {"sink": "a"}, "none is given (give exactly one)"),
        (RewindSinkOperator, {"sink": "a", "epoch": 1, "time": "x"}, "epoch are given"),
        (RewindSinkOperator, {"sink": "a", "offsets": {0: 1}, "skip": "x"}, "skip: is 'x'"),
        (DropSinkOperator, {"sink": "a", "delete_topics": "a-out"}, "a list of names"),
    ],
)
def test_wrong_arguments_are_errors_when_the_dag_file_is_read(
    make: Any, arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        make(task_id="verb", **arguments)

    assert said in str(refused.value)
