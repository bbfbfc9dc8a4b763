"""Sinks in a real Airflow whose drivers run beside their tasks."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from airflow_provider_sinks.local import spark
from airflow_provider_sinks.local.airflow import AirflowStack
from airflow_provider_sinks.local.broker import KafkaBroker
from tests.faults.driver import QUICK_START
from tests.live.sinks_in_airflow import AirflowSink

_CONF = {
    "spark.cores.max": "1",
    "spark.executor.memory": "512m",
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": QUICK_START,
    "spark.executor.extraJavaOptions": QUICK_START,
}


def client_sink(
    airflow: AirflowStack,
    broker: KafkaBroker,
    story: str,
    spark_conn_id: str,
    *,
    rows: int = 20,
    row_bytes: int = 1,
    conf: Mapping[str, str] | None = None,
    arguments: Mapping[str, Any] | None = None,
    called_off: threading.Event | None = None,
    **spec: Any,
) -> AirflowSink:
    """Return a sink that is about to be started, with its rows and its DAG.

    :param rows: how many each source partition holds.
    :param conf: more properties of Spark.
    :param arguments: more arguments of the operator.
    :param spec: more of the sink's spec.
    """
    given = {**client_arguments(spark_conn_id, conf), **(arguments or {})}
    sink = AirflowSink(airflow, broker, story, given, spec, row_bytes, called_off or threading.Event())
    sink.prepare(rows)
    return sink


def client_arguments(spark_conn_id: str, conf: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the arguments of an operator whose driver shall be small and start soon.

    :param conf: more properties of Spark.
    """
    jars = ",".join(map(str, spark.kafka_jars()))
    return {"spark_conn_id": spark_conn_id, "jars": jars, "conf": {**_CONF, **(conf or {})}}
