"""The validation, the sensor and the operator against real parts, run by Airflow's task runner."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.airflow.fakes import SPARK
from tests.airflow_side import RunTask, airflow_db, connections, dag, run_task, spark
from tests.live.sink_world import SinkWorld

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
