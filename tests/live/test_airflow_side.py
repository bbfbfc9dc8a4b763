"""The validation, the sensor and the operator against real parts, run by Airflow's task runner."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from confluent_kafka import Producer
from psycopg.conninfo import make_conninfo

from tests.airflow.fakes import SPARK
from tests.airflow_side import RunTask, airflow_db, connections, dag, run_task, spark
from tests.live.sink_world import SOURCE_PARTITIONS, SinkWorld

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from airflow_provider_sinks.local.broker import KafkaBroker
    from airflow_provider_sinks.local.postgres import Postgres

__all__ = ["airflow_db", "connections", "dag", "run_task", "spark"]
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
def users(postgres: Postgres, connections: Callable[..., None]) -> str:
    """A lookup table, and a connection to it."""
    table = f"users_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(make_conninfo("", **postgres.conninfo)) as connection:
        connection.execute(f"CREATE TABLE public.{table} (userid text, region text)")
    connections(pg=_postgres(postgres))
    return f"public.{table}"


def _postgres(postgres: Postgres, **changes: Any) -> dict[str, Any]:
    fields = {
        "conn_type": "postgres",
        "host": postgres.host,
        "port": postgres.port,
        "login": postgres.user,
        "password": postgres.password,
        "schema": postgres.dbname,
    }
    return {**fields, **changes}


def _enriched(world: SinkWorld, table: str, columns: list[str]) -> dict[str, Any]:
    return {
        "name": world.name,
        "source": f"src/{world.source}",
        "lookups": {"u": {"postgres": {"connection": "pg", "table": table, "columns": columns}}},
        "query": "SELECT s.value FROM source s LEFT JOIN u ON u.userid = CAST(s.value AS STRING)",
        "target": f"dst/{world.data}",
    }


@pytest.mark.usefixtures("spark")
def test_validation_sees_everything_and_creates_nothing(
    run_task: RunTask,
    dag: DAG,
    world: SinkWorld,
    users: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    from airflow_provider_sinks.operators.validate_connection import ValidateConnectionOperator

    world.create(world.source)
    sink = _enriched(world, users, ["userid"])

    result = run_task(ValidateConnectionOperator(task_id="validate", sink=sink, dag=dag))

    assert result.state == "success", result.error
    log = capfd.readouterr().out
    lines = [" ".join(line.split()) for line in log.splitlines()]
    assert any(f'pass src source topic "{world.source}" 2 partitions' in line for line in lines)
    assert any(f'pass dst data topic "{world.data}" does not exist yet' in line for line in lines)
    assert any(f"pass pg table {users} 2 columns" in line for line in lines)
    assert world.topics() == {world.source}


@pytest.mark.usefixtures("spark")
def test_validation_names_every_table_column_and_topic_that_is_not_there(
    run_task: RunTask, dag: DAG, world: SinkWorld, users: str
) -> None:
    from airflow_provider_sinks.operators.validate_connection import ValidateConnectionOperator

    sink = _enriched(world, users, ["userid", "regoin"])

    result = run_task(ValidateConnectionOperator(task_id="validate", sink=sink, retries=2, dag=dag))

    assert result.state == "failed"
    assert f'src: source topic "{world.source}": does not exist' in str(result.error)
    assert 'has no column regoin (did you mean "region"?)' in str(result.error)


def test_a_wrong_password_fails_at_once(
    run_task: RunTask, dag: DAG, postgres: Postgres, connections: Callable[..., None]
) -> None:
    from airflow_provider_sinks.operators.validate_connection import ValidateConnectionOperator

    connections(pg=_postgres(postgres, password="wrong"))

    result = run_task(ValidateConnectionOperator(task_id="validate", conn_id="pg", retries=2, dag=dag))

    assert result.state == "failed"
    assert "refused the credentials" in str(result.error)


def test_the_sensor_says_what_a_start_would_do_and_does_nothing(
    run_task: RunTask, dag: DAG, world: SinkWorld, capfd: pytest.CaptureFixture[str]
) -> None:
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session

    from airflow_provider_sinks.sensors.check_topics import CheckTopicsSensor

    world.create(world.source)

    result = run_task(CheckTopicsSensor(task_id="check", sink=world.spec, dag=dag))

    assert result.state == "success", result.error
    with create_session() as session:
        (found,) = session.query(XComModel).filter_by(dag_id=dag.dag_id, key="return_value").all()
        seen = XComModel.deserialize_value(found)
    assert seen["verdict"]["kind"] == "start"
    assert seen["observation"]["topics"]["data"]["existence"] == "missing"
    assert f'action: create data topic "{world.data}"' in capfd.readouterr().out
    assert world.topics() == {world.source}


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
