"""The time of a task is over while its sink runs (``execution_timeout``)."""

from __future__ import annotations

from datetime import timedelta

from airflow_provider_sinks.local.airflow import AirflowStack
from airflow_provider_sinks.local.broker import KafkaBroker
from tests.live.client_sink import client_sink
from tests.live.sinks_in_airflow import TASK

_TIMEOUT = timedelta(seconds=150)


def test_a_timeout_ends_the_driver(airflow: AirflowStack, broker: KafkaBroker) -> None:
    airflow.add_connection("spark_timeout", "spark", host="local[1,4]")
    arguments = {"execution_timeout": _TIMEOUT, "retries": 0}
    sink = client_sink(airflow, broker, "timeout", "spark_timeout", arguments=arguments)
    with sink.fed_all_the_time():
        run = sink.start()
        sink.wait_running(1)
        sink.wait_no_driver(_TIMEOUT.total_seconds() + 120)
        status = sink.status(1)

    assert status is not None
    assert status.state.is_final  # in order, or ended after the two seconds that it has; either is exact
    assert airflow.wait_for_run(run) == "failed"
    assert "AirflowTaskTimeout" in airflow.task_log(run, TASK)
    assert len(sink.launches) == 1
    sink.demand_exact()
