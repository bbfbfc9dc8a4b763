"""The tasks of a replay as who writes a DAG makes them; what they do is shown on a real broker."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_sinks.core.errors import ConfigurationError

if TYPE_CHECKING:
    from airflow.sdk import DAG


def dag() -> DAG:
    from airflow.sdk import DAG

    return DAG("replay_tasks", schedule=None, start_date=datetime(2025, 1, 1, tzinfo=UTC))


def test_the_second_task_runs_what_the_first_has_begun() -> None:
    from airflow_provider_sinks.operators.replay_dead_letters import ReplayTaskGroup

    with dag() as made:
        ReplayTaskGroup("orders", group_id="again", asked={"error": ["parse"]}, spark={"packages": "a:b:1"})

    tasks: dict[str, Any] = dict(made.task_dict)
    begin, submit = tasks["again.begin"], tasks["again.submit"]
    assert (begin.sink, begin.error, begin.downstream_task_ids) == ("orders", ["parse"], {"again.submit"})
    assert submit.begun == """{{ (ti.xcom_pull("again.begin") or {}).get('replay') | tojson }}"""
    assert (submit.replays, submit.name) == ("orders", "sink:orders-replay")
    assert (submit.packages, submit.retries) == ("a:b:1", 2)


@pytest.mark.parametrize(
    ("asked", "where"),
    [
        ({"since": "yesterday", "offsets": "0:7-3"}, ["since", "offsets"]),
        ({"overwrite": "perhaps"}, ["overwrite"]),
        ({"forget": 7}, ["forget"]),
    ],
)
def test_what_is_unclear_is_an_error_when_the_file_is_read(asked: dict[str, Any], where: list[str]) -> None:
    from airflow_provider_sinks.operators.replay_dead_letters import ReplayTaskGroup

    with dag(), pytest.raises(ConfigurationError) as wrong:
        ReplayTaskGroup("orders", asked=asked)

    assert [problem.where for problem in wrong.value.problems] == where


def test_templates_are_judged_when_they_are_rendered() -> None:
    from airflow_provider_sinks.operators.replay_dead_letters import BeginReplayOperator

    with dag():
        made = BeginReplayOperator(task_id="begin", sink="orders", offsets="{{ params.offsets }}")

    made.offsets = "0"
    with pytest.raises(ConfigurationError, match="is no range of offsets"):
        made._demand_valid()
