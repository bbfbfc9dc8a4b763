"""A database that falls silent under a sink in a real Airflow: the driver waits, says so, and goes on."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from airflow_provider_sinks.local.airflow import AirflowStack
from airflow_provider_sinks.local.airflow_rest_api import DagRun
from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.postgres import Postgres
from tests.live.airflow_sinks import airflow_sinks
from tests.live.client_sink import client_arguments
from tests.live.sinks_in_airflow import TASK
from tests.live.table_sink import TableSink

_SPARK, _DATABASE = "spark_of_silence", "pg_that_falls_silent"
_SILENT_SECONDS = 45.0
"""Longer than a driver without patience waits (30 s)."""


@pytest.fixture
def silent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    """A database that may be frozen."""
    with Postgres.start(tmp_path_factory.mktemp("postgres")) as running:
        yield running


@pytest.fixture
def running(
    airflow: AirflowStack, broker: KafkaBroker, silent: Postgres
) -> Iterator[tuple[TableSink, DagRun]]:
    """An endless sink that has written rows into that database, and the run of its task."""
    airflow.add_connection(_SPARK, "spark", host="local[1,4]")
    airflow.add_connection(_DATABASE, "postgres", **silent.connection_fields)
    arguments = client_arguments(_SPARK)
    sink = TableSink(
        airflow, broker, "silence", arguments, server=silent, table_connection=_DATABASE, schema="public"
    )
    sink.make_table()
    sink.prepare(20)
    run = sink.start()
    sink.wait_running(1)
    yield sink, run
    if sink.drivers():
        sink.mark(run, "failed")
        sink.wait_no_driver()


def test_a_database_that_is_frozen_for_45_s_is_waited_for_by_the_task_that_runs(
    silent: Postgres, running: tuple[TableSink, DagRun]
) -> None:
    sink, run = running
    drivers = sink.drivers()
    silent.pause()
    since = time.monotonic()
    try:
        sink.feed(200)
        sink.wait_until(lambda: "waits_for" in sink.shown(), "the status to say what it waits for")
        told = airflow_sinks(sink, "status", code=None)
        time.sleep(max(0.0, _SILENT_SECONDS - (time.monotonic() - since)))
        shown = sink.shown()
    finally:
        silent.resume()
    sink.feed(20)
    sink.wait_until(lambda: _is_through(sink), "all rows")
    sink.wait_until(lambda: "waits_for" not in sink.shown(), "the status to say that it goes on")

    waits_for = f"Postgres at {silent.host}:{silent.port}/{silent.dbname}, silent for "
    assert shown["waits_for"].startswith(waits_for)
    assert told["waits_for"].startswith(waits_for)
    assert (shown["state"], shown["error"]) == ("running", None)
    assert (sink.drivers(), len(sink.launches)) == (drivers, 1)
    task = sink.airflow.call("GET", f"{run.path}/taskInstances/{TASK}")
    assert (task["state"], task["try_number"]) == ("running", 1)
    sink.demand_exact(rows_min=2 * sink.fed)


def _is_through(sink: TableSink) -> bool:
    status = sink.status(1)
    assert status is not None
    assert not status.state.is_final, str(status)
    return set(status.positions.values()) == {sink.fed}
