"""The forms of ``dags/sink_forms.py`` and ``dags/run_sink_once.py``: what they refuse, and what they do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_sinks.clients.airflow_api import ApiAnswerError
from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.spec.sink import SinkSpec
from tests.airflow.desk import Define, Desk
from tests.airflow.fakes import KAFKA, SINK, FakeSpark, status
from tests.airflow_side import _process

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from tests.airflow_side import RunTask, Submit

DAGS = Path(__file__).parents[2] / "dags"


@pytest.fixture(scope="module")
def forms() -> dict[str, DAG]:
    from airflow.dag_processing.dagbag import DagBag

    return {
        dag_id: dag
        for name in ("sink_forms.py", "run_sink_once.py", "replay_dead_letters.py")
        for dag_id, dag in DagBag(str(DAGS / name)).dags.items()
    }


@pytest.mark.parametrize(
    ("form", "filled", "said"),
    [
        ("pause_or_resume_sink", {"action": "pause"}, "sink"),
        ("pause_or_resume_sink", {"sink": "two words", "action": "pause"}, "two words"),
        ("pause_or_resume_sink", {"sink": "orders", "action": "stop"}, "stop"),
        ("rewind_sink", {"sink": "orders", "offsets": "0-120"}, "0-120"),
        ("rewind_sink", {"sink": "orders", "time": "yesterday"}, "yesterday"),
        ("rewind_sink", {"sink": "orders", "epoch": 0}, "minimum"),
        ("reset_sink", {"sink": "orders", "data": "burn"}, "burn"),
        ("replay_dead_letters", {"sink": "orders", "offsets": "0-120"}, "0-120"),
        ("replay_dead_letters", {"sink": "orders", "since": "yesterday"}, "yesterday"),
        ("replay_dead_letters", {"sink": "orders", "overwrite": "no"}, "boolean"),
        ("reset_sink", {"sink": "orders", "dry_run": "no"}, "boolean"),
        ("run_sink_once", {"source": "no/topic"}, "no/topic"),
        ("run_sink_once", {"headers": {"a": 1}}, "not of type 'string'"),
        ("run_sink_once", {"key_in_value": "no"}, "boolean"),
        ("run_sink_once", {"envelope": "upsrt"}, "upsrt"),
        ("run_sink_once_into_a_table", {"target": "clicks"}, "clicks"),
        ("run_sink_once_into_a_table", {"target_connection": "pg_other"}, "pg_other"),
        ("run_sink_once_into_a_table", {"mode": "merge"}, "merge"),
    ],
)
def test_wrong_input_is_refused_at_the_form(
    desk: Desk, forms: dict[str, DAG], form: str, filled: dict[str, Any], said: str
) -> None:
    _process(forms[form])

    with pytest.raises(ApiAnswerError) as refused:
        desk.api.call("POST", f"dags/{form}/dagRuns", {"logical_date": None, "conf": filled})

    assert refused.value.status == 400
    assert said in refused.value.detail


@pytest.mark.parametrize(
    ("form", "filled"),
    [
        ("pause_or_resume_sink", {"sink": "orders", "action": "resume"}),
        ("rewind_sink", {"sink": "orders", "offsets": "0:120, 1:earliest"}),
        ("rewind_sink", {"sink": "orders", "time": "2026-11-20T22:00:00Z"}),
        ("reset_sink", {"sink": "orders", "data": "recreate"}),
        ("replay_dead_letters", {"sink": "orders", "error": "parse\nrefused", "offsets": "0:1-9, 1:7"}),
        ("run_sink_once", {}),
        ("run_sink_once_into_a_table", {"mode": "append", "key": None}),
    ],
)
def test_right_input_is_taken(desk: Desk, forms: dict[str, DAG], form: str, filled: dict[str, Any]) -> None:
    _process(forms[form])

    run = desk.api.call("POST", f"dags/{form}/dagRuns", {"logical_date": None, "conf": filled})

    assert run["conf"].items() >= filled.items()


@pytest.mark.parametrize(
    ("action", "after"),
    [("pause", (True, ["failed"])), ("resume", (False, ["running"])), ("restart", (False, ["restarting"]))],
)
def test_a_form_pauses_resumes_and_restarts(
    desk: Desk, run_task: RunTask, forms: dict[str, DAG], action: str, after: tuple[bool, list[str]]
) -> None:
    if action != "resume":
        desk.unpause()
    desk.start()

    run_task(forms["pause_or_resume_sink"].get_task(action), conf={"sink": desk.sink, "action": action})

    assert (desk.is_paused, desk.task_states()) == after


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize(
    ("is_running", "ended"),
    [(False, ("up_for_retry", "could not")), (True, ("failed", "is running"))],
    ids=["an answer is lost", "a refusal"],
)
@pytest.mark.parametrize("form", ["rewind_sink", "reset_sink"])
def test_a_plan_looks_again_but_a_refusal_ends_it_at_once(
    desk: Desk,
    run_task: RunTask,
    forms: dict[str, DAG],
    form: str,
    *,
    is_running: bool,
    ended: tuple[str, str],
) -> None:
    if is_running:
        desk.start()
    filled = {name: param.value for name, param in forms[form].params.items()}

    result = run_task(forms[form].get_task("plan"), conf={**filled, "sink": desk.sink, "offsets": "0:1"})

    assert result.ti.state == ended[0]
    assert ended[1] in str(result.error)


def test_a_form_runs_the_sink_that_it_names_once(
    run_task: RunTask, forms: dict[str, DAG], spark: FakeSpark, connections: Define
) -> None:
    connections(kafka_prod=KAFKA)
    filled = {name: param.value for name, param in forms["run_sink_once"].params.items()}
    spark.play(statuses=[status(state="stopped")])

    result = run_task(forms["run_sink_once"].get_task("submit"), conf={**filled, "target": "bought"})

    assert result.ti.state == "success", str(result.error)
    spec = SinkSpec.parse(spark.seen["launch"]["spec"])
    assert (spec.name, spec.trigger.every, spec.resources[Role.DATA]) == (
        "clicks_once",
        None,
        "bought",
    )
    assert spec.where == "button = 'buy'"


@pytest.fixture
def into_a_topic(forms: dict[str, DAG], connections: Define) -> DAG:
    """The form of a topic, and the connection that it offers."""
    connections(kafka_prod=KAFKA)
    return forms["run_sink_once"]


@pytest.mark.parametrize(
    ("filled", "written"),
    [
        ({}, {}),
        (
            {
                "schema": "happened timestamp, userid string, button string",
                "headers": {"who": "userid"},
                "timestamp": "happened",
                "partition_by": "button, userid",
                "key_in_value": False,
            },
            {
                "headers": {"who": "userid"},
                "timestamp": {"column": "happened"},
                "partition_by": ["button", "userid"],
                "key_in_value": False,
            },
        ),
        ({"headers": "source", "timestamp": "source"}, {"headers": "source", "timestamp": "source"}),
        (
            {"envelope": "upsert", "compact_epoch": True, "schemas_enable": True},
            {"envelope": "upsert", "compact_epoch": True, "schemas_enable": True},
        ),
    ],
    ids=["nothing", "columns", "source", "envelope"],
)
def test_a_form_says_what_the_messages_of_a_sink_carry(
    run_task: RunTask, into_a_topic: DAG, spark: FakeSpark, filled: dict[str, Any], written: dict[str, Any]
) -> None:
    spark.play(statuses=[status(state="stopped")])
    given = {name: param.value for name, param in into_a_topic.params.items()} | filled

    result = run_task(into_a_topic.get_task("submit"), conf=given)

    assert result.ti.state == "success", str(result.error)
    target = json.loads(SinkSpec.parse(spark.seen["launch"]["spec"]).to_json())["target"]["kafka"]
    beside = ("headers", "timestamp", "partition_by", "key_in_value")
    names = ("envelope", "compact_epoch", "schemas_enable", *beside)
    assert {name: target[name] for name in names if target.get(name) not in (None, "now")} == written


def test_a_form_writes_no_rows_where_a_sink_keeps_its_progress(
    run_task: RunTask, into_a_topic: DAG, spark: FakeSpark
) -> None:
    given = {name: param.value for name, param in into_a_topic.params.items()}
    forged = {"target": "_sinks-progress-orders", "key": "userid", "envelope": "upsert"}

    result = run_task(into_a_topic.get_task("submit"), conf=given | forged)

    assert result.ti.state == "failed"
    assert "'_sinks-progress-orders' is named as the progress topic of a sink" in str(result.error)
    assert spark.launches == 0


def test_a_form_takes_no_name_of_another_dags_sink(
    run_task: RunTask, submit: Submit, into_a_topic: DAG, spark: FakeSpark
) -> None:
    from airflow.models.variable import Variable

    production = submit(sink={**SINK, "name": "in_production"})
    form = into_a_topic.get_task("submit")
    given = {name: param.value for name, param in into_a_topic.params.items()}
    taken = {**given, "sink": "in_production", "where": "false"}
    spark.play(statuses=[status(state="stopped", epoch=3)])
    assert run_task(production).ti.state == "success"

    result = run_task(form, conf=taken)

    assert result.ti.state == "failed"
    assert "'in_production' is a sink that another task has launched" in str(result.error)
    assert spark.launches == 1
    assert json.loads(Variable.get("sinks.in_production.witness"))["launch"] == 1
    assert run_task(production).ti.state == "success"


def test_a_form_goes_on_with_its_own_sink(run_task: RunTask, into_a_topic: DAG, spark: FakeSpark) -> None:
    spark.play(statuses=[status(state="stopped", epoch=3)])
    given = {name: param.value for name, param in into_a_topic.params.items()} | {"sink": "of_the_form"}

    results = [run_task(into_a_topic.get_task("submit"), conf=given) for _ in range(2)]

    assert [result.ti.state for result in results] == ["success", "success"]
    assert spark.seen["launch"]["number"] == 2


@pytest.fixture
def into_a_table(forms: dict[str, DAG], connections: Define) -> DAG:
    """The form of a table, and the connections that it offers."""
    database = {"conn_type": "postgres", "host": "pg", "login": "a", "schema": "b"}
    connections(kafka_prod=KAFKA, pg_prod=database)
    return forms["run_sink_once_into_a_table"]


@pytest.mark.parametrize(
    ("filled", "target"),
    [
        ({}, {"mode": "upsert", "key": ["userid", "at"]}),
        ({"mode": "append", "key": None}, {"mode": "append", "key": []}),
        ({"target": "public.a}b", "where": """button = '"}, {{ 1 }} <é>'"""}, {"table": "public.a}b"}),
    ],
)
def test_a_form_runs_a_sink_into_a_table_once(
    run_task: RunTask, into_a_table: DAG, spark: FakeSpark, filled: dict[str, Any], target: dict[str, Any]
) -> None:
    spark.play(statuses=[status(state="stopped")])
    given = {**{name: param.value for name, param in into_a_table.params.items()}, **filled}

    result = run_task(into_a_table.get_task("submit"), conf=given)

    assert result.ti.state == "success", str(result.error)
    spec = SinkSpec.parse(spark.seen["launch"]["spec"])
    written = json.loads(spec.to_json())["target"]["postgres"]
    assert {name: written.get(name, []) for name in target} == target
    assert spec.where == given["where"]
