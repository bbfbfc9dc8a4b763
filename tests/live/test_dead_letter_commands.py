"""``airflow sinks dead-letters ...`` on a real topic and a real table, with Airflow's own API."""

from __future__ import annotations

import json
from typing import Any

import pytest
from psycopg import sql

from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.spec.sink import SinkSpec
from tests.airflow.desk import Desk
from tests.airflow.fakes import FakeSpark, status
from tests.airflow_side import RunTask, _process, run_task, spark, xcom_of
from tests.faults.topics import read_progress
from tests.live.sink_desk import airflow_db, airflow_url, connections, dag, desk
from tests.live.stage import KeyValue, Sink, Stage

__all__ = ["airflow_db", "airflow_url", "connections", "dag", "desk", "run_task", "spark"]
pytestmark = [
    pytest.mark.filterwarnings("error:::airflow_provider_sinks"),
    pytest.mark.filterwarnings("default"),
]
_RECORDS: list[KeyValue] = [
    ("ann", '{"id": 1, "name": "Ann"}'),
    ("bob", '{"id": "two", "name": "Bob"}'),
    ("eve", '{"id": "three", "name": "Eve"}'),
    ("zoe", '{"id": 4'),
]
_NOT_INT = "The value does not fit the schema: field id is not int."


@pytest.fixture(params=["topic", "table"])
def sink(request: pytest.FixtureRequest, stage: Stage, schema: str) -> Sink:
    """A sink that has set three records aside, of two errors."""
    source = stage.source("letters", {0: _RECORDS})
    target: dict[str, Any] = {"connection": "pg", "table": f"{schema}.people", "create": True}
    ends: dict[str, Any] = {"target": {"postgres": target}, "dead_letter": {"table": f"{schema}.dead"}}
    if request.param == "topic":
        ends = {"dead_letter": {"topic": f"{source}-dead"}}
    made = stage.sink("letters", source, from_={"schema": "id int, name string"}, **ends)
    made.run()
    return made


def test_they_are_listed_the_newest_first_counted_and_shown_as_far_as_was_asked(
    desk: Desk, sink: Sink
) -> None:
    listed = desk.run("dead-letters", "list", desk.sink, "-o", "json")
    few = desk.run("dead-letters", "list", desk.sink, "--limit", "1", "--error", "field id")
    counted = desk.run("dead-letters", "count", desk.sink, "-o", "json")

    assert [found["source_offset"] for found in listed.data] == [3, 2, 1], listed.err
    assert "Bob" not in listed.out
    assert f"{sink.source}/0/2" in few.out, few.err
    assert "/0/1" not in few.out
    assert counted.data == [
        {"class": "parse", "error": _NOT_INT, "letters": 2, "came_back": 0},
        {"class": "parse", "error": "The value is not JSON.", "letters": 1, "came_back": 0},
    ]
    place = listed.data[2]["place"]
    masked, whole = (
        desk.run("dead-letters", "show", desk.sink, place, "--mask", mask, "-o", "json")
        for mask in ("values", "none")
    )
    assert masked.data["value"] == '{"id": "<text of 3>", "name": "<text of 3>"}'
    assert (masked.data["key"], whole.data["key"]) == ("<3 bytes>", "bob")
    assert whole.data["value"] == _RECORDS[1][1]
    assert (whole.data["error"], whole.data["sink"], whole.data["generation"]) == (_NOT_INT, desk.sink, 1)


def test_what_is_no_letter_of_the_sink_is_told(desk: Desk) -> None:
    nothing = desk.run("dead-letters", "show", desk.sink, "0:999")
    unclear = desk.run("dead-letters", "show", desk.sink, "first")

    assert (nothing.code, unclear.code) == (64, 64)
    assert "holds no letter of this sink" in nothing.err
    assert "such as 0:120" in unclear.err


@pytest.mark.parametrize("sink", ["table"], indirect=True)
def test_of_a_table_offsets_are_those_of_the_source(desk: Desk) -> None:
    listed = desk.run("dead-letters", "list", desk.sink, "--offsets", "0:2-4", "-o", "json")

    assert [found["source_offset"] for found in listed.data] == [3, 2], listed.err
    assert [found["can_be_replayed"] for found in listed.data] == [True, True]


def test_a_replay_is_planned_by_the_command_and_begun_by_the_form(
    desk: Desk, sink: Sink, stage: Stage, run_task: RunTask, spark: FakeSpark
) -> None:
    from airflow_provider_sinks.forms import replay_dead_letters_dag

    form = replay_dead_letters_dag(f"replay_{desk.sink}")
    _process(form)
    desk.api.call("PATCH", f"dags/{form.dag_id}", {"is_paused": False})

    dry = desk.run("dead-letters", "replay", desk.sink, "--error", "is not int", "--dry-run")
    asked = ("--error", "is not int", "--dag", form.dag_id)
    unasked = desk.run("dead-letters", "replay", desk.sink, *asked)
    done = desk.run("dead-letters", "replay", desk.sink, *asked, "--yes", "-o", "json")
    nothing = desk.run("dead-letters", "replay", desk.sink, "--error", "refused", "--yes")

    assert (dry.code, unasked.code, done.code, nothing.code) == (0, 2, 0, 0), dry.err + done.err + nothing.err
    assert f"replays dead letters of sink \"{desk.sink}\": error 'is not int': 2 letters (2 parse)" in dry.out
    assert "there is no dead letter" in nothing.out
    made = {f"_sinks-progress-{desk.sink}-replay", f"_sinks-letters-{desk.sink}"}
    assert not stage.topics() & made, "a plan changes nothing"
    (run,) = desk.api.all(f"dags/{form.dag_id}/dagRuns", "dag_runs")
    given = run["conf"]
    assert (given["sink"], given["error"], given["dry_run"]) == (desk.sink, "is not int", False)
    skipped = run_task(form.get_task("begin"), conf={**_defaults(form), **given, "error": "refused"})
    assert skipped.ti.state == "skipped", str(skipped.error)
    begun = run_task(form.get_task("begin"), conf={**_defaults(form), **given})
    assert begun.ti.state == "success", str(begun.error)
    replay = xcom_of(form.dag_id)["replay"]
    assert (replay["name"], replay["replay"]["selection"]["errors"]) == (
        f"{desk.sink}-replay",
        ["is not int"],
    )
    assert _recorded(stage, sink) == replay["replay"]
    spark.play(statuses=[status(state="stopped")])
    submitted = run_task(form.get_task("submit"), again=True)
    assert submitted.ti.state == "success", str(submitted.error)
    assert SinkSpec.parse(spark.seen["launch"]["spec"]) == SinkSpec.parse(replay)


def _defaults(form: Any) -> dict[str, Any]:
    return {name: param.value for name, param in form.params.items()}


def _recorded(stage: Stage, sink: Sink) -> Any:
    """Return what a stranger reads of the replay in its progress topic, or table."""
    name = f"{sink.parsed.name}-replay"
    if sink.parsed.target_kind == "kafka":
        ((writer, record),) = read_progress(stage.client, f"_sinks-progress-{name}")
        spec, generation = record.spec, record.generation
    else:
        progress = sql.Identifier(*sink.parsed.resources[Role.PROGRESS].split("."))
        text = "SELECT writer, record->>'spec', generation FROM {} WHERE sink = %s AND record IS NOT NULL"
        query = sql.SQL(text).format(progress)
        with stage.postgres.connect() as connection:
            ((writer, spec, generation),) = connection.execute(query, [name]).fetchall()
    assert (writer, generation) == ("driver", 1)
    return json.loads(spec)["replay"]
