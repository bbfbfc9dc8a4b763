"""One launch on YARN: found or submitted, never two; with a manager that a test plays over HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.errors import JobFailedError, UnavailableError
from airflow_provider_sinks.core.launch.status import SinkState
from airflow_provider_sinks.core.launch.yarn import owner_tag
from tests.airflow.fake_manager import fake_manager
from tests.airflow.fakes import status
from tests.airflow.played_cluster import Task

if TYPE_CHECKING:
    from airflow.sdk.exceptions import TaskDeferred

    from airflow_provider_sinks.operators.submit.cluster_launch import ClusterLaunch


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Task]:
    """A task whose drivers do not hurry to stop, nor anybody to wait for them."""
    from airflow_provider_sinks.operators.submit import cluster_launch

    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(cluster_launch, "_POLITE_SECONDS", 0.1)
    with fake_manager() as manager:
        yield Task(manager, tmp_path)


def _id(launch: ClusterLaunch) -> str:
    driver = launch.begin()
    assert driver is not None
    return driver.id


def test_a_launch_is_noted_down_before_it_is_submitted_and_for_ever(task: Task) -> None:
    from airflow.sdk.execution_time.context import NEVER_EXPIRE

    found = _id(task.try_once())

    before, after = task.submitted[0]["note"], task.notes["sink_driver"]
    assert (before["id"], after["id"]) == ("", found)
    assert {**before, "id": found} == after
    assert task.retentions == [NEVER_EXPIRE] * 2
    assert task.submitted[0]["launch"]["status_uri"] == after["status_uri"]


def test_the_pages_of_a_driver_are_known_as_soon_as_it_is_submitted(task: Task) -> None:
    found = _id(task.try_once())

    (told,) = task.told
    assert (told.spark_ui_url, told.spark_app_id) == (f"http://manager/proxy/{found}/", found)


def test_the_drivers_files_do_not_outlive_the_submit(task: Task) -> None:
    task.try_once().begin()

    launch, connections, logging_settings = task.submitted[0]["files"]
    assert (launch.exists(), connections.exists(), logging_settings.exists()) == (True, False, True)
    assert connections.name == "connections.json"


def test_a_retry_goes_on_with_the_driver_that_runs(task: Task) -> None:
    first = _id(task.try_once())

    assert _id(task.try_once()) == first
    assert (len(task.submitted), task.manager.killed) == (1, [])


def test_a_worker_that_died_before_it_knew_the_id_is_found_by_its_launch(task: Task) -> None:
    first = _id(task.try_once())
    task.notes["sink_driver"]["id"] = ""

    assert _id(task.try_once()) == first
    assert task.notes["sink_driver"]["id"] == first


def test_a_driver_whose_connections_changed_meanwhile_is_not_gone_on_with(task: Task) -> None:
    task.connections = connected("old:1")
    first = _id(task.try_once())
    task.connections = connected("new:1")

    second = _id(task.try_once())

    assert (task.manager.killed, second != first) == ([first], True)
    assert task.notes["sink_driver"]["connections"] == connected("new:1").visible_digests()


def connected(servers: str) -> ResolvedConnections:
    return ResolvedConnections({"kafka_test": KafkaOptions("kafka_test", {"bootstrap.servers": servers})})


def test_a_retry_after_a_driver_that_is_over_submits(task: Task) -> None:
    first = _id(task.try_once())
    task.manager.end("FAILED", "FAILED", first)

    assert _id(task.try_once()) != first


def _clear(task: Task) -> None:
    task.cleared += 1


def _discard(task: Task) -> None:
    task.notes.clear()


def _switch_off(task: Task) -> None:
    task.durable = False


def _ask_to_stop(task: Task) -> None:
    from airflow_provider_sinks.clients.launch_store import LaunchStore

    LaunchStore(task.notes["sink_driver"]["status_uri"]).ask_to_stop()


@pytest.mark.parametrize(
    "happens",
    [
        pytest.param(_clear, id="cleared-and-the-state-kept"),
        pytest.param(_discard, id="cleared-and-the-state-discarded"),
        pytest.param(_switch_off, id="not-durable"),
        pytest.param(_ask_to_stop, id="somebody-ends-it"),
    ],
)
def test_the_old_driver_is_over_before_another_is_submitted(
    task: Task, happens: Callable[[Task], None]
) -> None:
    first = _id(task.try_once())
    happens(task)

    second = _id(task.try_once())

    assert second != first
    assert task.manager.killed == [first]
    assert [seen["running"] for seen in task.submitted] == [[], []]


def test_a_cleared_task_that_had_succeeded_runs_again(task: Task) -> None:
    first = _id(task.try_once())
    task.manager.end("FINISHED", "SUCCEEDED", first)
    _clear(task)

    assert _id(task.try_once()) != first
    assert task.manager.killed == []


def test_the_driver_of_another_airflow_is_left_alone(task: Task) -> None:
    task.manager.run("application_2_0001", "sink:orders", owner_tag("them", "orders"))

    task.try_once().begin()

    assert task.manager.killed == []


def test_nothing_is_submitted_while_the_manager_cannot_be_asked(task: Task) -> None:
    task.manager.broken = True

    with pytest.raises(UnavailableError, match="resource manager"):
        task.try_once().begin()

    assert task.submitted == []


def test_a_submit_that_fails_is_said_and_tried_again(task: Task) -> None:
    task.fails = True
    with pytest.raises(JobFailedError, match='the job of sink "orders" was not submitted'):
        task.try_once().begin()
    task.fails = False

    assert _id(task.try_once()).startswith("application_1_")


def test_a_status_that_cannot_be_read_is_no_failure(task: Task) -> None:
    launch = task.try_once("nonsense://bucket")
    task.manager.ends_after = 3

    outcome = launch.run()

    assert (outcome.exit_code, outcome.status, outcome.stopped) == (0, None, False)


def test_ending_the_task_ends_the_driver(task: Task) -> None:
    launch = task.try_once()
    first = _id(launch)

    launch.end()

    assert task.manager.killed == [first]


def test_a_task_that_is_ended_before_it_began_submits_nothing(task: Task) -> None:
    launch = task.try_once()
    launch.end()

    assert launch.run().stopped
    assert task.submitted == []


def _deferred(task: Task) -> TaskDeferred:
    """Let the task wait in the triggerer."""
    from airflow.sdk.exceptions import TaskDeferred

    wait = Wait()
    deferred = task.come_back().wait_in_triggerer(task.try_once(), wait)
    assert isinstance(deferred, TaskDeferred)
    return deferred


class Wait:
    spark_conn_id = "spark_yarn"
    cancel_on_kill = True
    follow_connections = False
    execution_timeout: timedelta | None = timedelta(seconds=7)


def test_waiting_in_the_triggerer_is_limited_and_names_ids_only(task: Task) -> None:
    deferred = _deferred(task)

    _, stored = deferred.trigger.serialize()
    assert (deferred.method_name, deferred.timeout) == ("execute_complete", timedelta(seconds=7))
    assert stored["application_id"] == "application_1_0001"
    assert stored["status_uri"] == task.notes["sink_driver"]["status_uri"]
    assert (stored["cancel_on_kill"], stored["follow_connections"]) == (True, False)


def test_a_task_that_comes_back_judges_the_end_of_its_driver(task: Task) -> None:
    _, stored = _deferred(task).trigger.serialize()
    task.manager.end("FAILED", "FAILED", "application_1_0001")

    outcome = task.come_back().settle({**stored, "changed": []})

    assert (outcome.exit_code, outcome.changed) == (70, ())


def _dies_without_a_word(task: Task, state: str) -> None:
    """Let the driver report once, and its JVM then end for want of memory."""
    folder = Path(task.notes["sink_driver"]["status_uri"].removeprefix("file://"))
    folder.mkdir(parents=True, exist_ok=True)
    found = {**status(state=state, rows_total=7), "sink": "orders", "launch": 1, "owner": "us"}
    (folder / "status.json").write_text(json.dumps(found))
    task.manager.end("FINISHED", "FAILED", "application_1_0001")
    task.manager.apps["application_1_0001"]["diagnostics"] = "User application exited with status 52"


@pytest.mark.parametrize("back", ["from the triggerer", "from the wait"])
def test_a_driver_that_dies_without_a_word_does_not_stay_running(task: Task, back: str) -> None:
    if back == "from the triggerer":
        _, stored = _deferred(task).trigger.serialize()
        _dies_without_a_word(task, "running")
        outcome = task.come_back().settle({**stored, "changed": []})
    else:
        launch = task.try_once()
        driver = launch.begin()
        assert driver is not None
        _dies_without_a_word(task, "running")
        outcome = launch._follow(driver)

    assert outcome.exit_code == 52
    last = task.shown[-1]
    assert (last.state, last.rows_total, outcome.status) == (SinkState.FAILED, 7, last)
    assert last.error is not None
    assert "ran out of memory" in last.error.primary
    assert "spark.driver.memory" in last.error.hint


def test_what_a_driver_said_itself_is_not_told_otherwise(task: Task) -> None:
    _, stored = _deferred(task).trigger.serialize()
    _dies_without_a_word(task, "stopped")

    outcome = task.come_back().settle({**stored, "changed": []})

    assert (outcome.exit_code, [one.state for one in task.shown]) == (0, [SinkState.STOPPED])


@pytest.mark.parametrize(
    ("newest", "expected"),
    [
        pytest.param(1, -9, id="killed-by-somebody-it-is-tried-again"),
        pytest.param(2, 66, id="killed-for-a-newer-launch-it-is-fenced"),
    ],
)
def test_a_task_whose_driver_was_killed_for_another_does_not_come_back(
    task: Task, newest: int, expected: int
) -> None:
    _, stored = _deferred(task).trigger.serialize()
    task.manager.end("KILLED", "KILLED", "application_1_0001")
    task.newest = newest

    assert task.come_back().settle({**stored, "changed": []}).exit_code == expected


def test_changed_connections_end_the_driver_so_that_another_is_launched(
    task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow_provider_sinks.operators.submit import cluster_task

    monkeypatch.setattr(cluster_task, "_RESTART_POLITE_SECONDS", 0.1)
    _, stored = _deferred(task).trigger.serialize()

    outcome = task.come_back().settle({**stored, "changed": ["kafka_test"]})

    assert task.manager.killed == ["application_1_0001"]
    assert (outcome.changed, outcome.error("orders")) == (("kafka_test",), None)


def test_a_triggerer_that_reads_a_connection_elsewhere_rings_once_and_ends_no_driver(
    task: Task, connections: Callable[..., None]
) -> None:
    connections(kafka_test={"conn_type": "kafka", "extra": {"bootstrap.servers": "old:1"}})
    task.connections = connected("old:1")
    _, stored = _deferred(task).trigger.serialize()
    event = {**stored, "changed": ["kafka_test"], "unlike": ["kafka_test"]}

    back = task.come_back()

    assert stored["launched"] == task.connections.visible_digests()
    assert back.is_false_alarm(event)
    assert not back.is_false_alarm({**event, "unlike": []})
    assert task.manager.killed == []
    assert _deferred(task).trigger.serialize()[1]["launched"] == {}


def test_a_triggerer_that_is_right_is_believed(task: Task, connections: Callable[..., None]) -> None:
    connections(kafka_test={"conn_type": "kafka", "extra": {"bootstrap.servers": "new:1"}})
    task.connections = connected("old:1")
    _, stored = _deferred(task).trigger.serialize()

    assert not task.come_back().is_false_alarm(
        {**stored, "changed": ["kafka_test"], "unlike": ["kafka_test"]}
    )


def test_when_its_time_is_over_no_driver_is_left(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow_provider_sinks.operators.submit import cluster_task

    monkeypatch.setattr(cluster_task, "_POLITE_SECONDS", 0.1)
    _deferred(task)

    task.come_back().give_up()

    assert task.manager.killed == ["application_1_0001"]


@pytest.mark.parametrize("planted", ["elsewhere", "/launches/../../elsewhere"])
def test_notes_lead_no_worker_to_a_place_outside_of_its_own(task: Task, tmp_path: Path, planted: str) -> None:
    first = _id(task.try_once())
    task.notes["sink_driver"]["status_uri"] = f"{task.folder.as_uri()}{planted}"

    second = _id(task.try_once())

    assert (task.manager.killed, second != first) == ([first], True)
    assert not list(tmp_path.parent.rglob("*elsewhere"))


def test_notes_have_no_application_ended_but_the_own_driver(task: Task) -> None:
    _deferred(task)
    task.manager.run("application_1_9999", "of-somebody-else")
    task.notes["sink_driver"]["id"] = "application_1_9999"

    task.come_back().give_up()

    assert task.manager.killed == ["application_1_0001"]
