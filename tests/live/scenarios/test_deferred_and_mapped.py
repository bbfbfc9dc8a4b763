"""In a real Airflow: a sensor that waits in the triggerer, and sinks that are mapped; one run of each."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from airflow_provider_sinks.local.airflow import AirflowStack
from airflow_provider_sinks.local.airflow_rest_api import DagRun
from airflow_provider_sinks.local.broker import KafkaBroker
from tests.live.sink_world import SOURCE_PARTITIONS, SinkWorld

_ROWS = 20
_DAGS = """
from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk import DAG

from airflow_provider_sinks import sink_assets
from airflow_provider_sinks.operators.submit_sink_job import SubmitSinkJobOperator
from airflow_provider_sinks.operators.validate_connection import ValidateConnectionOperator
from airflow_provider_sinks.sensors.check_topics import CheckTopicsSensor

WAITING = {waiting!r}
SINKS = {sinks!r}
ASSETS = sink_assets(SINKS)

with DAG({deferred!r}, schedule=None):
    wait = dict(sink=WAITING, deferrable=True, poke_interval=1, pool={pool!r})
    CheckTopicsSensor(task_id="waits", timeout=600, **wait)
    CheckTopicsSensor(task_id="in_vain", timeout=3, **wait)

with DAG({beside!r}, schedule=None):
    PythonOperator(task_id="works", python_callable=print, pool={pool!r})

with DAG({mapped!r}, schedule=None):
    submit = SubmitSinkJobOperator.partial(task_id="submit", outlets=ASSETS, jars={jars!r})
    (
        ValidateConnectionOperator.partial(task_id="validate").expand(sink=SINKS)
        >> CheckTopicsSensor.partial(task_id="check", inlets=ASSETS, deferrable=True).expand(sink=SINKS)
        >> submit.expand(sink=SINKS)
    )
"""


@dataclass(frozen=True)
class Scene:
    """What runs in Airflow at the same time.

    :param waiting: a sink without a source topic.
    :param sinks: the sinks that are mapped.
    :param pool: a pool with one slot.
    """

    airflow: AirflowStack
    waiting: SinkWorld
    sinks: tuple[SinkWorld, ...]
    pool: str
    deferred: DagRun
    mapped: DagRun

    def pool_slots(self) -> dict[str, int]:
        """Return how many slots are taken by what."""
        slots = self.airflow.call("GET", f"pools/{self.pool}")
        return {kind: slots[f"{kind}_slots"] for kind in ("running", "queued", "deferred", "open")}

    def instances(self) -> list[dict[str, Any]]:
        """Return the instances of the tasks of the mapped run."""
        found = self.airflow.call("GET", f"{self.mapped.path}/taskInstances", limit=100)
        return list(found["task_instances"])

    def xcom(self, run: DagRun, task_id: str, map_index: int = -1) -> Any:
        """Return what a task left."""
        path = f"{run.path}/taskInstances/{task_id}/xcomEntries/return_value"
        value = self.airflow.call("GET", path, map_index=map_index, deserialize="true")["value"]
        return json.loads(value) if isinstance(value, str) else value


@pytest.fixture(scope="module")
def scene(airflow: AirflowStack, broker: KafkaBroker, spark_jars: tuple[Path, ...]) -> Iterator[Scene]:
    """Both runs, started."""
    tag = uuid.uuid4().hex[:8]
    names = {kind: f"{kind}_{tag}" for kind in ("deferred", "beside", "mapped", "pool")}
    waiting = SinkWorld(broker, f"waiting_{tag}")
    sinks = tuple(SinkWorld(broker, f"mapped{number}_{tag}") for number in range(2))
    for sink in sinks:
        _fill(sink)
    _add_connections(airflow, broker)
    airflow.call("POST", "pools", {"name": names["pool"], "slots": 1})
    jars = ",".join(map(str, spark_jars))
    specs = [json.loads(sink.spec.to_json()) for sink in sinks]
    text = _DAGS.format(waiting=json.loads(waiting.spec.to_json()), sinks=specs, jars=jars, **names)
    (airflow.dags_folder / f"deferred_and_mapped_{tag}.py").write_text(text)
    runs = [airflow.trigger(names[kind]) for kind in ("deferred", "mapped")]
    yield Scene(airflow, waiting, sinks, names["pool"], *runs)
    (airflow.dags_folder / f"deferred_and_mapped_{tag}.py").unlink()


def _fill(sink: SinkWorld) -> None:
    sink.create(sink.source)
    producer = Producer(sink.broker.client_config())
    for row in range(_ROWS):
        producer.produce(sink.source, key=str(row), value=f"row {row}", partition=row % SOURCE_PARTITIONS)
    assert producer.flush(30) == 0


def _add_connections(airflow: AirflowStack, broker: KafkaBroker) -> None:
    known = {found["connection_id"] for found in airflow.call("GET", "connections", limit=100)["connections"]}
    wanted: dict[str, dict[str, Any]] = {
        "src": {"conn_type": "kafka", "extra": broker.client_config()},
        "dst": {"conn_type": "kafka", "extra": broker.client_config()},
        "spark_default": {"conn_type": "spark", "host": "local[1,4]"},
    }
    for conn_id in wanted.keys() - known:
        airflow.add_connection(conn_id, **wanted[conn_id])


def test_a_sensor_that_waits_takes_no_slot_and_survives_a_kill_of_the_triggerer(scene: Scene) -> None:
    airflow = scene.airflow
    airflow.wait_for_task(scene.deferred, "waits", "deferred")
    airflow.wait_for_task(scene.deferred, "in_vain", "failed")
    slots = scene.pool_slots()
    beside = airflow.trigger(scene.deferred.dag_id.replace("deferred", "beside"))
    beside_ended = airflow.wait_for_run(beside)
    triggerer = airflow.services["triggerer"]
    triggerer.kill()
    triggerer.start()
    still = airflow.task_states(scene.deferred)["waits"]
    scene.waiting.create(scene.waiting.source)
    airflow.wait_for_task(scene.deferred, "waits", "success")

    assert slots == {"running": 0, "queued": 0, "deferred": 1, "open": 1}
    assert (beside_ended, still) == ("success", "deferred")
    assert scene.xcom(scene.deferred, "waits")["verdict"]["kind"] == "start"


def test_a_sensor_that_waited_in_vain_tells_what_could_not_be_seen(scene: Scene) -> None:
    scene.airflow.wait_for_task(scene.deferred, "in_vain", "failed")

    log = scene.airflow.task_log(scene.deferred, "in_vain")

    assert "waited 3 s for what could not be seen" in log
    assert f'source topic "{scene.waiting.source}" does not exist' in log
    assert scene.xcom(scene.deferred, "in_vain")["verdict"]["kind"] == "wait"


def test_mapped_sinks_are_checked_and_run_each_for_itself(scene: Scene) -> None:
    ended = scene.airflow.wait_for_run(scene.mapped)

    assert ended == "success", scene.instances()
    for index, sink in enumerate(scene.sinks):
        assert len(sink.read(sink.data)) == _ROWS
        checks = scene.xcom(scene.mapped, "validate", index)
        assert {check["outcome"] for check in checks} <= {"pass", "skipped"}, checks
        assert scene.xcom(scene.mapped, "check", index)["verdict"]["kind"] == "start"
        assert scene.xcom(scene.mapped, "submit", index)["rows_total"] == _ROWS


def test_each_mapped_sink_has_one_event_and_is_remembered_in_both_places(scene: Scene) -> None:
    airflow = scene.airflow
    airflow.wait_for_run(scene.mapped)

    for index, sink in enumerate(scene.sinks):
        (asset,) = airflow.call("GET", "assets", name_pattern=f"sink:{sink.name}")["assets"]
        (event,) = airflow.call("GET", "assets/events", asset_id=asset["id"])["asset_events"]
        stored = airflow.call("GET", f"assets/{asset['id']}/state-store/witness")["value"]
        variable = airflow.call("GET", f"variables/sinks.{sink.name}.witness")["value"]
        assert (event["source_map_index"], event["extra"]["rows_total"]) == (index, _ROWS)
        assert json.loads(asset["extra"]["spec"])["name"] == sink.name
        assert json.loads(variable) == (json.loads(stored) if isinstance(stored, str) else stored)
