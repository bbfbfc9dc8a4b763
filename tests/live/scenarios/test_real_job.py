"""The sensor and the operator with the real Spark job, run by Airflow's task runner."""

from __future__ import annotations

import contextlib
import json
import re
import threading
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from confluent_kafka import Producer

from tests.airflow.fakes import SPARK
from tests.airflow_side import RunTask, airflow_db, connections, dag, run_task
from tests.live.sink_world import SOURCE_PARTITIONS, SinkWorld

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from airflow_provider_sinks.local.broker import KafkaBroker

__all__ = ["airflow_db", "connections", "dag", "run_task"]
_CANARY = f"canary{uuid.uuid4().hex}"
pytestmark = [
    pytest.mark.filterwarnings("error:::airflow_provider_sinks"),
    pytest.mark.filterwarnings("default"),
]


@pytest.fixture
def world(broker: KafkaBroker, connections: Callable[..., None]) -> SinkWorld:
    """A sink on the shared broker, and its connections in Airflow."""
    kafka = {"conn_type": "kafka", "extra": broker.client_config()}
    connections(src=kafka, dst=kafka, spark_default=SPARK)
    return SinkWorld(broker, f"side_{uuid.uuid4().hex[:8]}")


@pytest.fixture
def real_spark(monkeypatch: pytest.MonkeyPatch) -> str:
    """A real Spark on the PATH; returns the jars for Kafka as an argument."""
    from airflow_provider_sinks.local import spark as local_spark

    for name, value in local_spark.spark_environment().items():
        monkeypatch.setenv(name, value)
    return ",".join(map(str, local_spark.kafka_jars()))


def test_the_operator_runs_the_real_job_and_remembers_it(
    run_task: RunTask, dag: DAG, world: SinkWorld, real_spark: str, capfd: pytest.CaptureFixture[str]
) -> None:
    from airflow.models.variable import Variable

    from airflow_provider_sinks.operators.submit_sink_job import SubmitSinkJobOperator

    Variable.set("sinks.owner", world.owner)
    world.create(world.source)
    _fill(world, rows=1000)

    task = SubmitSinkJobOperator(task_id="submit", sink=world.spec, jars=real_spark, retries=2, dag=dag)
    first, second = run_task(task), run_task(task)

    assert first.state == second.state == "success", (first.error, second.error, capfd.readouterr().out)
    assert sorted(world.read(world.data)) == sorted(
        (str(row).encode(), f"row {row}".encode()) for row in range(1000)
    )
    witness = json.loads(Variable.get(f"sinks.{world.name}.witness"))
    assert (witness["rows"], witness["launch"], witness["owner"]) == (1000, 2, world.owner)


def test_no_process_of_the_job_knows_what_airflow_keeps_secret(
    run_task: RunTask, dag: DAG, world: SinkWorld, real_spark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.models.variable import Variable

    from airflow_provider_sinks.operators.submit_sink_job import SubmitSinkJobOperator

    Variable.set("sinks.owner", world.owner)
    world.create(world.source)
    _fill(world, rows=10)
    for name in ("AIRFLOW__API_AUTH__PLANTED", "AIRFLOW_CONN_PLANTED", "_AIRFLOW__PLANTED"):
        monkeypatch.setenv(name, _CANARY)
    environments: dict[str, dict[str, str]] = {}
    over = threading.Event()
    others = {process.pid for process in psutil.Process().children(recursive=True)}  # the broker
    watch = threading.Thread(target=_watch_environments, args=[environments, others, over])
    watch.start()

    result = run_task(SubmitSinkJobOperator(task_id="submit", sink=world.spec, jars=real_spark, dag=dag))
    over.set()
    watch.join()

    assert result.state == "success", result.error
    assert {"java", "python"} <= {name.split()[0] for name in environments}
    assert [name for name, values in environments.items() if _CANARY in values.values()] == []
    assert [name for name, values in environments.items() if any("AIRFLOW__" in key for key in values)] == []


def _watch_environments(found: dict[str, dict[str, str]], others: set[int], over: threading.Event) -> None:
    """Note what ``/proc`` says about each process of the job, from its first moment to its end.

    Services that other tests started have new children of their own meanwhile, such as a DAG processor's.
    """
    while not over.wait(0.05):
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if not others.isdisjoint([process.pid, *(parent.pid for parent in process.parents())]):
                    continue
                kind = "python" if process.name().startswith("python") else process.name()
                found[f"{kind} {process.pid}"] = process.environ()


def test_the_real_job_refuses_and_takes_the_code_that_the_sensor_printed(
    run_task: RunTask, dag: DAG, world: SinkWorld, real_spark: str
) -> None:
    from airflow.models.variable import Variable

    from airflow_provider_sinks.operators.submit_sink_job import SubmitSinkJobOperator
    from airflow_provider_sinks.sensors.check_topics import CheckTopicsSensor

    Variable.set("sinks.owner", world.owner)
    world.create(world.source)
    _fill(world, rows=40)
    world.start()
    world.write(1)
    world.delete(world.data)
    submit: dict[str, Any] = {"sink": world.spec, "jars": real_spark, "retries": 2, "dag": dag}

    seen = run_task(CheckTopicsSensor(task_id="check", sink=world.spec, retries=2, dag=dag))
    refused = run_task(SubmitSinkJobOperator(task_id="submit", **submit))
    code = _code(seen.error)
    accepted = run_task(SubmitSinkJobOperator(task_id="again", accept=code, **submit))

    assert seen.state == refused.state == "failed"
    assert f'data topic "{world.data}"' in str(refused.error)
    assert code == _code(refused.error)
    assert accepted.state == "success", accepted.error
    assert world.data in world.topics()


def _fill(world: SinkWorld, rows: int) -> None:
    """Put rows into the source, the same number into each partition."""
    producer = Producer(world.broker.client_config())
    for row in range(rows):
        producer.produce(world.source, key=str(row), value=f"row {row}", partition=row % SOURCE_PARTITIONS)
    assert producer.flush(30) == 0


def _code(error: BaseException | None) -> str:
    found = re.search(r'accept="(continue_without_output-\w+)"', str(error))
    assert found is not None, error
    return found[1]
