"""Cluster mode in a real Airflow on a real YARN: whatever happens to a task, one driver or none.

The stories run side by side, each with a sink of its own; a test waits for its story. The triggerer is killed
while others wait in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_sinks.core.launch.status import SinkState
from airflow_provider_sinks.core.launch.yarn import AppState
from airflow_provider_sinks.local.airflow import AirflowStack
from airflow_provider_sinks.local.airflow_rest_api import DagRun
from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.yarn import YarnCluster
from tests.live.cluster_sink import CONNECTION, ClusterSink
from tests.live.sinks_in_airflow import TASK

_POOL = "one_slot"
_WAIT_SECONDS = 150.0
_TIMEOUT_SECONDS = 45


def waiting(sink: ClusterSink) -> None:
    """It waits and holds no slot; the triggerer is killed, and its connection edited while there is none.

    Then it is cleared while it waits, marked as a success, cleared once more and marked as failed: each time
    another driver, when the one before is over.
    """
    with sink.fed_all_the_time():
        run = sink.start()
        sink.airflow.wait_for_task(run, TASK, "deferred", _WAIT_SECONDS)
        sink.wait_running(1)
        slots = sink.airflow.call("GET", f"pools/{_POOL}")
        assert (slots["running_slots"], slots["deferred_slots"], slots["open_slots"]) == (0, 1, 1)
        links = sink.airflow.call("GET", f"{run.path}/taskInstances/{TASK}/links")["extra_links"]
        assert sink.running()[0].id in links["Spark UI"]

        _lose_the_triggerer(sink, run)
        triggerer = sink.airflow.services["triggerer"]
        triggerer.kill()
        sink.change_connection(**{"client.id": "edited"})
        triggerer.start()
        sink.wait_running(2)
        assert f"launch 2: connection {sink.conn_id} changed" in sink.airflow.task_log(run, TASK)

        sink.airflow.wait_for_task(run, TASK, "deferred", _WAIT_SECONDS)
        for launch, state in ((3, "success"), (4, "failed")):
            sink.clear(run)
            sink.wait_running(launch)
            sink.airflow.wait_for_task(run, TASK, "deferred", _WAIT_SECONDS)
            sink.mark(run, state)
            sink.wait_no_driver()
            assert sink.airflow.wait_for_run(run) == state
    assert len(sink.applications()) == 4
    sink.demand_exact()


def _lose_the_triggerer(sink: ClusterSink, run: DagRun) -> None:
    """Kill the triggerer, start another, and see that it follows the same driver."""
    triggerer = sink.airflow.services["triggerer"]
    triggerer.kill()
    heard = _lines(sink, run)
    triggerer.start()
    sink.wait_until(lambda: _lines(sink, run) > heard, "the new triggerer to follow the driver", 90)
    assert sink.airflow.task_states(run)[TASK] == "deferred"
    assert len(sink.applications()) == 1


def _lines(sink: ClusterSink, run: DagRun) -> int:
    """Count what whoever follows the driver said of its epochs in the log of the task."""
    return sink.airflow.task_log(run, TASK).count("launch 1: epoch ")


def timed_out(sink: ClusterSink) -> None:
    """Its time is over while it waits: no driver is left."""
    with sink.fed_all_the_time():
        run = sink.start()
        sink.airflow.wait_for_task(run, TASK, "deferred", _WAIT_SECONDS)
        assert sink.driver_count() == 1
        sink.wait_no_driver(_WAIT_SECONDS)
    assert sink.airflow.wait_for_run(run) == "failed"
    assert "the time of the task is over: ending driver" in sink.airflow.task_log(run, TASK)
    assert len(sink.applications()) == 1
    sink.demand_exact(rows_min=0)


def lost_worker(sink: ClusterSink) -> None:
    """SIGKILL of the task and of the worker that watches it: the retry goes on with the driver."""
    with sink.fed_all_the_time():
        run = sink.start()
        sink.wait_running(1)
        (driver,) = sink.running()
        task = sink.task_process
        for process in (task.parent(), task):
            assert process is not None
            process.kill()
        sink.wait_until(lambda: sink.task(run)["try_number"] == 2, "a retry")
        sink.wait_until(lambda: sink.task(run)["state"] == "running", "the retry to run")
        going_on = f"launch 1: driver {driver.id} runs, going on with it"
        sink.wait_until(lambda: going_on in sink.airflow.task_log(run, TASK), "the retry to go on")
        assert [app.id for app in sink.applications()] == [driver.id]

        sink.mark(run, "failed")
        sink.wait_no_driver()
    assert sink.airflow.wait_for_run(run) == "failed"
    sink.demand_exact()


def finished(sink: ClusterSink) -> None:
    """It ends by itself, waited for in the triggerer; cleared after success it runs again."""
    run = sink.start()
    assert sink.airflow.wait_for_run(run) == "success"
    first = sink.status(1)
    sink.feed(30)
    sink.clear(run)
    sink.wait_until(lambda: sink.status(2) is not None, "launch 2")
    assert sink.airflow.wait_for_run(run) == "success"

    second = sink.status(2)
    assert first is not None
    assert second is not None
    assert (first.state, second.state) == (SinkState.STOPPED, SinkState.STOPPED)
    assert (second.rows, second.rows_total) == (60, first.rows_total + 60)
    assert [app.state for app in sink.applications()] == [AppState.FINISHED] * 2
    assert sink.shown()["rows_total"] == second.rows_total
    sink.demand_exact()


Told = Mapping[str, Future[None]]


@pytest.fixture(scope="module")
def told(
    airflow: AirflowStack, broker: KafkaBroker, yarn: YarnCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Told]:
    """All stories, begun; each result is there when its story is told."""
    extra = {"deploy-mode": "cluster", "yarn_resourcemanager_webapp_address": yarn.url}
    airflow.add_connection(CONNECTION, "spark", host="yarn", extra=extra)
    airflow.call("POST", "pools", {"name": _POOL, "slots": 1, "include_deferred": False})
    make = partial(_sink, airflow, broker, yarn=yarn, folder=tmp_path_factory.mktemp("checkpoints"))
    deferred = {"deferrable": True}
    with ThreadPoolExecutor() as pool:
        stories: dict[str, tuple[Callable[[ClusterSink], None], ClusterSink]] = {
            "waiting": (waiting, make("waiting", {**deferred, "pool": _POOL})),
            "timed_out": (
                timed_out,
                make("timeout", deferred, retries=0, timeout=timedelta(seconds=_TIMEOUT_SECONDS)),
            ),
            "lost_worker": (lost_worker, make("lost", {})),
            "finished": (finished, make("finished", deferred, trigger="available_now")),
        }
        yield {name: pool.submit(story, sink) for name, (story, sink) in stories.items()}


def _sink(
    airflow: AirflowStack,
    broker: KafkaBroker,
    story: str,
    arguments: Mapping[str, Any],
    *,
    yarn: YarnCluster,
    folder: Path,
    retries: int = 5,
    timeout: timedelta | None = None,
    **spec: Any,
) -> ClusterSink:
    """Return a sink that is about to be started, with its rows and its DAG."""
    sink = ClusterSink(
        airflow, broker, story, arguments, spec, yarn=yarn, folder=folder, retries=retries, timeout=timeout
    )
    sink.prepare(rows=20)
    return sink


def test_it_waits_without_a_slot_whatever_happens_to_the_triggerer_and_its_task(told: Told) -> None:
    told["waiting"].result()


def test_a_timeout_while_it_waits_leaves_no_driver(told: Told) -> None:
    told["timed_out"].result()


def test_a_lost_worker_goes_on_with_its_driver(told: Told) -> None:
    told["lost_worker"].result()


def test_cleared_after_success_it_runs_again(told: Told) -> None:
    told["finished"].result()
