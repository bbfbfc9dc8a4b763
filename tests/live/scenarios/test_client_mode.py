"""Client mode in a real Airflow on a real Spark cluster: whatever happens to a task, its sink stays exact.

The stories run side by side, each with a sink of its own; a test waits for its story. The scheduler is killed
when the others are told.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any

import psutil
import pytest

from airflow_provider_sinks.core.launch.status import SinkState
from airflow_provider_sinks.local.airflow import AirflowStack
from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.processes import session_members
from airflow_provider_sinks.local.spark import StandaloneCluster
from tests.live.client_sink import client_sink
from tests.live.sinks_in_airflow import TASK, AirflowSink
from tests.slow_sql import slow

_SLOW: dict[str, Any] = {
    "select": ["value"],
    "where": f"{slow(15)} IS NOT NULL",  # of a value so long each step takes some ten times as long
}
_SLOW_CONF = {"spark.sinks.driverEpochRows": "0", "spark.sql.execution.arrow.maxRecordsPerBatch": "10"}
"""Large rows reach their writer ten at a time, each after a moment: a transaction is open for long."""


def lost_worker(sink: AirflowSink) -> None:
    """SIGKILL of the task and of the worker that watches it; marked as a success, and cleared after that."""
    with sink.fed_all_the_time():
        run = sink.start()
        sink.wait_running(1)
        (driver,) = sink.drivers()
        task = psutil.Process(driver.ppid())
        for process in (task.parent(), task):
            assert process is not None
            process.kill()
        sink.wait_no_driver()
        assert _state(sink, 1) is SinkState.STOPPED

        sink.wait_running(2)
        sink.mark(run, "success")
        sink.wait_no_driver()
        sink.wait_until(lambda: sink.airflow.run_state(run) == "success", "the run to be over")
        sink.demand_exact()

        sink.clear(run)
        sink.wait_running(3)
        sink.mark(run, "failed")
        sink.wait_no_driver()
    sink.demand_exact()


def cleared(sink: AirflowSink) -> None:
    """Cleared while it runs; then marked as failed in the middle of an epoch that does not end in time."""
    run = sink.start()
    sink.wait_until(lambda: _state(sink, 1) is SinkState.RUNNING, "launch 1 to run")
    sink.clear(run)
    sink.wait_until(lambda: _state(sink, 2) is SinkState.RUNNING, "launch 2 to run")
    sink.wait_until(lambda: len(sink.drivers()) == 1, "one driver", 10)
    sink.wait_until(sink.has_open_transaction, "an epoch to begin")

    sink.mark(run, "failed")
    sink.wait_no_driver()
    assert _state(sink, 2) is SinkState.RUNNING  # it was ended hard, and could not say so
    sink.demand_exact(rows_min=0)
    sink.wait_task(run, "failed")


def altered(sink: AirflowSink) -> None:
    """Its connection is edited; then its DAG file breaks, and comes back with the DAG under another name."""
    with sink.fed_all_the_time():
        run = sink.start()
        sink.wait_running(1)
        assert sink.shown()["spark_ui_url"].startswith("http://")
        assert sink.airflow.call("GET", f"{run.path}/taskInstances/{TASK}/links")["extra_links"]["Spark UI"]

        sink.change_connection(**{"client.id": "edited"})
        sink.wait_running(2)
        assert f"launch 2: connection {sink.conn_id} changed" in sink.airflow.task_log(run, TASK)
        assert sink.airflow.call("GET", f"{run.path}/taskInstances/{TASK}")["try_number"] == 1

        sink.break_dag_file()
        sink.lose_asset_store()
        before = sink.witness()
        sink.mend_dag_file(f"{sink.name}_renamed")
        renamed = sink.start(f"{sink.name}_renamed")
        after = sink.wait_running(3)
        assert (after.owner, after.generation) == (before["owner"], before["generation"])
        sink.wait_task(run, "failed")
        assert _state(sink, 2) is SinkState.FENCED

        sink.mark(renamed, "failed")
        sink.wait_no_driver()
    sink.demand_exact()


def killed_scheduler(sink: AirflowSink, others: list[Future[None]]) -> None:
    """SIGKILL of the scheduler; a new one is started."""
    with sink.fed_all_the_time():
        run = sink.start()
        wait(others)
        sink.wait_running(1)
        service = sink.airflow.services["scheduler"]
        old = service.pid
        try:
            os.kill(old, signal.SIGKILL)
            service.wait(10)
            service.start()
            # Airflow takes the tasks of a scheduler that is gone for lost, and runs them once more.
            sink.wait_running(2)
            assert _state(sink, 1) is SinkState.STOPPED
            sink.mark(run, "failed")
            sink.wait_no_driver()
        finally:
            for pid in session_members(old):
                os.kill(pid, signal.SIGKILL)
    sink.demand_exact()


def _state(sink: AirflowSink, launch: int) -> SinkState | None:
    status = sink.status(launch)
    return status.state if status else None


@pytest.fixture(scope="module")
def told(
    airflow: AirflowStack, broker: KafkaBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[str, Future[None]]]:
    """All stories, begun; each result is there when its story is told."""
    folder = tmp_path_factory.mktemp("standalone")
    with (
        StandaloneCluster.start(folder, workers=2, cores=3, memory="2g") as cluster,
        ThreadPoolExecutor() as pool,
    ):
        airflow.add_connection("spark_stories", "spark", host=cluster.master)
        called_off = threading.Event()
        make = partial(client_sink, airflow, broker, spark_conn_id="spark_stories", called_off=called_off)
        futures = {
            "cleared": pool.submit(
                cleared, make("cleared", rows=400, conf=_SLOW_CONF, row_bytes=10_000, **_SLOW)
            ),
            "altered": pool.submit(altered, make("altered")),
            "lost_worker": pool.submit(lost_worker, make("lost")),
        }
        last = make("scheduler")
        futures["killed_scheduler"] = pool.submit(killed_scheduler, last, list(futures.values()))
        try:
            yield futures
        finally:
            called_off.set()


def test_a_lost_worker_leaves_one_driver_and_a_success_that_is_cleared_another(
    told: Mapping[str, Future[None]],
) -> None:
    told["lost_worker"].result()


def test_cleared_and_failed_while_it_runs_no_reader_hangs(told: Mapping[str, Future[None]]) -> None:
    told["cleared"].result()


def test_a_changed_connection_and_a_renamed_dag_leave_one_driver(told: Mapping[str, Future[None]]) -> None:
    told["altered"].result()


def test_a_killed_scheduler_leaves_one_driver(told: Mapping[str, Future[None]]) -> None:
    told["killed_scheduler"].result()
