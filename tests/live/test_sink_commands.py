"""``airflow sinks ...`` and the forms on a real broker and Airflow's own API; rows are read back."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer

from airflow_provider_sinks.core.decision.verdict import VerdictKind
from airflow_provider_sinks.local.broker import KafkaBroker
from tests.airflow.api_server import account, airflow_url
from tests.airflow.desk import Define, Desk, open_desk
from tests.airflow.fakes import SPARK
from tests.airflow_side import RunTask, airflow_db, connections, run_task
from tests.live.sink_world import SOURCE_PARTITIONS, SinkWorld

if TYPE_CHECKING:
    from airflow.sdk import DAG

__all__ = ["airflow_db", "airflow_url", "connections", "run_task"]
pytestmark = [
    pytest.mark.filterwarnings("error:::airflow_provider_sinks"),
    pytest.mark.filterwarnings("default"),
]
FORMS = Path(__file__).parents[2] / "dags" / "sink_forms.py"


@pytest.fixture
def world(broker: KafkaBroker) -> SinkWorld:
    """A sink that has read 30 records of each source partition in three epochs, and written 30 rows."""
    made = SinkWorld(broker, f"commanded_{uuid.uuid4().hex[:8]}")
    made.create(made.source)
    producer = Producer(broker.client_config())
    for number in range(30 * SOURCE_PARTITIONS):
        producer.produce(made.source, value=str(number), partition=number % SOURCE_PARTITIONS)
    assert producer.flush(30) == 0
    made.start()
    for epoch in (1, 2, 3):
        made.write(epoch)
    return made


@pytest.fixture
def desk(
    world: SinkWorld,
    airflow_url: str,
    connections: Define,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Desk]:
    """A desk with that sink, which Airflow remembers."""
    from airflow_provider_sinks.connectors.generations import Generations

    monkeypatch.setenv("_AIRFLOW_PROCESS_CONTEXT", "server")
    defaults = {"read_seconds": 30.0, "quiet_seconds": 0.0}  # this sink has no driver to wait for
    monkeypatch.setattr(Generations.__init__, "__kwdefaults__", defaults)
    kafka = {"conn_type": "kafka", "extra": world.broker.client_config()}
    connections(airflow_api_default=account(airflow_url), src=kafka, dst=kafka, spark_default=SPARK)
    with open_desk(world.name, capsys, _dag(world)) as desk:
        desk.put("witness", {"owner": world.owner, "launch": 1})
        yield desk


def _dag(world: SinkWorld) -> DAG:
    from airflow.sdk import DAG

    from airflow_provider_sinks.operators.submit_sink_job import SubmitSinkJobOperator

    with DAG(world.name, schedule=None, start_date=datetime(2025, 1, 1, tzinfo=UTC)) as dag:
        SubmitSinkJobOperator(task_id="submit", sink=world.spec)
    return dag


def test_plan_and_progress_tell_what_the_broker_holds(desk: Desk) -> None:
    plan = desk.run("plan", desk.sink)
    progress = desk.run("progress", desk.sink, "-o", "json")

    assert (plan.code, progress.code) == (0, 0)
    assert "resumes after epoch 3 of generation 1" in plan.out
    assert [(w["writer"], w["epoch"], w["rows_total"]) for w in progress.data["writers"]] == [
        ("all", 3, 30),
        ("driver", 0, 0),
    ]
    assert progress.data["partitions"][0] == {"partition": 0, "position": 30, "first": 0, "end": 30, "lag": 0}


def test_a_refusal_is_the_exit_code_of_a_plan_and_its_answer_the_way_on(desk: Desk, world: SinkWorld) -> None:
    world.delete(world.data)

    refused = desk.run("plan", desk.sink, "-o", "json")
    code = next(way for way in refused.data["verdict"]["ways"] if way.startswith("start_over"))
    accepted = desk.run("plan", desk.sink, "--accept", code)

    assert (refused.code, accepted.code) == (65, 0)


def test_a_rewind_by_command_is_what_the_next_start_goes_on_from(desk: Desk, world: SinkWorld) -> None:
    before = world.read(world.data)
    dry = desk.run("rewind", desk.sink, "--offsets", "0:5", "--dry-run", "-o", "json")
    unasked = desk.run("rewind", desk.sink, "--offsets", "0:5")
    untouched = world.decide().generation
    done = desk.run("rewind", desk.sink, "--offsets", "0:5", "--yes", "-o", "json")
    verdict = world.decide()

    assert (dry.code, unasked.code, done.code, untouched) == (0, 2, 0, 1)
    assert dry.data["steps"] == done.data["steps"]
    assert (verdict.kind, verdict.generation, verdict.positions) == (VerdictKind.RESUME, 2, {0: 5, 1: 30})
    assert world.read(world.data) == before


def test_a_rewind_by_command_to_an_epoch_and_to_a_time(desk: Desk, world: SinkWorld) -> None:
    by_epoch = desk.run("rewind", desk.sink, "--epoch", "2", "--yes")
    after_epoch = world.decide().positions
    unknown = desk.run("rewind", desk.sink, "--epoch", "9", "--yes")
    by_time = desk.run("rewind", desk.sink, "--time", "2020-01-01T00:00:00Z", "--yes")

    assert (by_epoch.code, unknown.code, by_time.code) == (0, 64, 0)
    assert after_epoch == {0: 10, 1: 10}
    assert "known: 1/1, 1/2, 1/3" in unknown.err
    assert world.decide().positions == {0: 0, 1: 0}


@pytest.mark.parametrize(
    ("output", "rows", "same"), [("keep", 30, True), ("empty", 0, True), ("recreate", 0, False)]
)
def test_a_reset_by_command(desk: Desk, world: SinkWorld, output: str, rows: int, same: bool) -> None:
    topic_id = world.topic_id(world.data)

    done = desk.run("reset", desk.sink, "--data", output, "--yes")
    verdict = world.start()

    assert done.code == 0
    assert (verdict.kind, verdict.generation, verdict.positions) == (VerdictKind.RESUME, 2, {0: 0, 1: 0})
    assert len(world.read(world.data)) == rows
    assert (world.topic_id(world.data) == topic_id) == same


def test_a_sink_is_dropped_with_the_topics_that_are_named_and_no_other(desk: Desk, world: SinkWorld) -> None:
    done = desk.run("drop", desk.sink, "--delete-topic", world.data, "--yes")

    assert done.code == 0
    assert world.topics() == {world.source, world.progress}
    assert "its progress records stay" in done.err
    assert desk.run("status", desk.sink, "-o", "json").data["state"] == "dropped"


def _form(dag_id: str) -> DAG:
    from airflow.dag_processing.dagbag import DagBag

    return DagBag(str(FORMS)).dags[dag_id]


@pytest.mark.parametrize(
    ("form", "positions"),
    [
        ({"offsets": "1:7", "time": None, "epoch": None}, {0: 30, 1: 7}),
        ({"offsets": None, "time": None, "epoch": 2}, {0: 10, 1: 10}),
        ({"data": "empty", "dead_letter": "keep"}, {0: 0, 1: 0}),
    ],
    ids=["rewind-to-offsets", "rewind-to-an-epoch", "reset"],
)
def test_a_form_first_shows_the_plan_and_then_does_it(
    desk: Desk, world: SinkWorld, run_task: RunTask, form: dict[str, Any], positions: dict[int, int]
) -> None:
    verb = "reset" if "data" in form else "rewind"
    filled = {"sink": desk.sink, "dry_run": False, **form}
    dag = _form(f"{verb}_sink")

    planned = run_task(dag.get_task("plan"), conf=filled)
    untouched = world.decide().generation
    done = run_task(dag.get_task(verb), conf=filled)

    assert (planned.ti.state, untouched) == ("success", 1)
    assert done.ti.state == "success", str(done.error)
    assert world.decide().positions == positions
