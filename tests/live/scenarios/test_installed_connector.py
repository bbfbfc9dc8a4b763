"""A target that strangers made: its wheel in a clean environment, a DAG of a real Airflow writes to it."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from airflow_provider_sinks.local.airflow import AirflowStack
from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.ports import LOCALHOST
from tests import administrator
from tests.installed_connector import Installed
from tests.live.built_wheel import clean_environment, run, wheel
from tests.live.client_sink import client_arguments
from tests.redis_server import RedisServer

__all__ = ["wheel"]
_DAG = """
from airflow_provider_sinks import Sink, kafka, sink_dag

orders = Sink(
    name={name!r},
    source=kafka("kafka_prod", {name!r}, schema="id long, what string"),
    select=["id", "upper(what) AS what"],
    target={{"redis": {{"connection": "redis_prod", "stream": {name!r}}}}},
    dead_letter={{"stream": "{name}-dead"}},
)
dag = sink_dag(orders, spark_conn_id="spark_here", spark={spark!r})  # an airflow dag
"""


@pytest.fixture(scope="module")
def clean_python(wheel: Path, installed_redis: Installed, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The Python of an environment with two wheels, of the provider and of the connector, and with Spark."""
    folder = tmp_path_factory.mktemp("clean environment")
    return clean_environment(folder, f"{wheel}[kafka]", str(installed_redis.wheel), "pyspark", "pyarrow")


@pytest.fixture(scope="module")
def clean_airflow(
    clean_python: str,
    broker: KafkaBroker,
    redis_server: RedisServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[AirflowStack]:
    """A whole Airflow of that environment, which finds nothing of the checkout."""
    home = tmp_path_factory.mktemp("clean airflow")
    found = run(clean_python, "-c", "import pyspark; print(pyspark.__path__[0])", folder=home).strip()
    path = os.pathsep.join(
        [f"{found}/bin", str(Path(clean_python).parent), os.environ.get("PATH", os.defpath)]
    )
    python = {"PYTHONPATH": "", "PYSPARK_PYTHON": clean_python, "PYSPARK_DRIVER_PYTHON": clean_python}
    env = {**python, "PATH": path, "SPARK_HOME": found, "SPARK_LOCAL_IP": LOCALHOST}
    with AirflowStack.start(home, home / "dags", env, clean_python) as running:
        fields = redis_server.connection()
        running.add_connection("kafka_prod", "kafka", extra=broker.client_config())
        running.add_connection(
            "redis_prod", "redis", host=fields.host, port=fields.port, password=fields.password
        )
        running.add_connection("spark_here", "spark", host="local[2,4]")
        account = running.account()
        running.add_connection("airflow_api_default", "http", **account)
        yield running


@pytest.mark.timeout(1800)  # it makes an environment of its own first, from the packages' registry
def test_a_dag_writes_to_a_target_that_another_wheel_brings(
    clean_airflow: AirflowStack, clean_python: str, broker: KafkaBroker, redis_server: RedisServer
) -> None:
    name = f"orders_{uuid.uuid4().hex[:6]}"
    administrator.create_topic(AdminClient(broker.client_config()), name, 2)
    spark = {key: value for key, value in client_arguments("").items() if key != "spark_conn_id"}
    (clean_airflow.dags_folder / f"{name}.py").write_text(_DAG.format(name=name, spark=spark))

    for ids in (range(100), range(100, 150)):
        produce(broker, name, [json.dumps({"id": at, "what": f"w{at}"}) for at in ids])
        produce(broker, name, ["no JSON"])
        started = clean_airflow.trigger(name)
        assert clean_airflow.wait_for_run(started) == "success", clean_airflow.task_log(started, "submit")

    with redis_server.client() as client:
        rows = [fields for _, fields in client.xrange(name)]
        letters = [fields for _, fields in client.xrange(f"{name}-dead")]
    assert sorted((int(row["id"]), row["what"]) for row in rows) == [(at, f"W{at}") for at in range(150)]
    assert [letter["value"] for letter in letters] == ["no JSON", "no JSON"]
    demand_known(clean_airflow, name)
    for package in ("airflow_provider_sinks", "sinks_connector_redis"):
        code = f"import {package}; print({package}.__path__[0])"
        found = run(clean_python, "-c", code, folder=clean_airflow.home).strip()
        assert Path(found).is_relative_to(Path(clean_python).parents[1])


def demand_known(airflow: AirflowStack, name: str) -> None:
    """See that the commands of sinks know a target and a type of connection that are none of ours."""

    def told(verb: str, *options: str) -> Any:
        return json.loads(airflow.command("sinks", verb, name, *options, "-o", "json"))

    described, progress = told("describe"), told("progress")
    checks = told("check", "--spark-conn-id", "spark_here", "--ask-spark", "never")
    judged = {check["name"]: check["outcome"] for check in checks if check["subject"] == "redis_prod"}

    assert described["target"] == f"redis_prod/{name}"
    assert described["connections"] == ["kafka_prod", "redis_prod"]
    assert sum(writer["rows_total"] for writer in progress["writers"]) == 150
    assert set(judged.values()) == {"pass"}
    assert {"server", "durability", f'data table "{name}"'} <= set(judged)


def produce(broker: KafkaBroker, topic: str, values: list[str]) -> None:
    producer = Producer(broker.client_config())
    for number, value in enumerate(values):
        producer.produce(topic, value=value, partition=number % 2)
    assert producer.flush(60) == 0
