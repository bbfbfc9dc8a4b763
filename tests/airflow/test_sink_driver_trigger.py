"""The trigger of a deferred submit: what Airflow stores of it, when it rings, and what it ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_sinks.core.lifecycle.dag_gone import Listed
from tests.airflow.fake_manager import APP_ID, FakeManager, fake_manager
from tests.airflow.fakes import KAFKA, SINK

if TYPE_CHECKING:
    from airflow_provider_sinks.triggers.sink_driver import SinkDriverTrigger

_SURELY_SECONDS = 120.0


@pytest.fixture
def manager(connections: Callable[..., None], airflow_db: None) -> Iterator[FakeManager]:
    """A manager that runs one application, and a Spark connection that names it."""
    del airflow_db
    with fake_manager() as running:
        extra = {"deploy-mode": "cluster", "yarn_resourcemanager_webapp_address": running.url}
        connections(spark_yarn={"conn_type": "spark", "host": "yarn", "extra": extra})
        running.run(APP_ID)
        yield running


def trigger(folder: Path, **changes: Any) -> SinkDriverTrigger:
    from airflow_provider_sinks.triggers.sink_driver import SinkDriverTrigger

    given = {
        "application_id": APP_ID,
        "spark_conn_id": "spark_yarn",
        "status_uri": folder.as_uri(),
        "sink": SINK,
        "poll_interval": 0.05,
    }
    return SinkDriverTrigger(**{**given, **changes})


async def ring(
    waiting: SinkDriverTrigger, when: Callable[[], bool], then: Callable[[], None]
) -> dict[str, Any]:
    """Run a trigger, do something as soon as it can be seen to wait, and return its event."""
    event = asyncio.ensure_future(anext(aiter(waiting.run())))
    while not when():
        await asyncio.sleep(0.01)
        assert not event.done()
    then()
    return dict((await asyncio.wait_for(event, _SURELY_SECONDS)).payload)


def test_what_airflow_stores_of_it_is_json_names_no_secret_and_makes_the_same_trigger(tmp_path: Path) -> None:
    from airflow.sdk._shared.module_loading import import_string

    path, stored = trigger(tmp_path, cancel_on_kill=False).serialize()
    again = import_string(path)(**json.loads(json.dumps(stored)))

    assert again.serialize() == (path, stored)
    assert path == "airflow_provider_sinks.triggers.sink_driver.SinkDriverTrigger"
    assert set(stored) == {
        "application_id", "spark_conn_id", "status_uri", "sink", "poll_interval", "cancel_on_kill",
        "follow_connections", "launched",
    }  # fmt: skip


def test_it_rings_when_the_driver_is_over_and_says_ids_only(manager: FakeManager, tmp_path: Path) -> None:
    event = asyncio.run(
        ring(trigger(tmp_path), lambda: len(manager.asked) > 3, lambda: manager.end("FINISHED", "SUCCEEDED"))
    )

    assert event == {
        "sink": "orders",
        "application_id": APP_ID,
        "status_uri": tmp_path.as_uri(),
        "changed": [],
        "unlike": [],
    }


def test_a_driver_that_the_manager_does_not_know_is_over(manager: FakeManager, tmp_path: Path) -> None:
    asyncio.run(ring(trigger(tmp_path), lambda: len(manager.asked) > 1, manager.apps.clear))


def test_a_manager_that_is_away_is_waited_for(manager: FakeManager, tmp_path: Path) -> None:
    manager.broken = True

    def mend() -> None:
        manager.end("FAILED", "FAILED")
        manager.broken = False

    asyncio.run(ring(trigger(tmp_path), lambda: len(manager.asked) > 3, mend))


@pytest.mark.parametrize("cancel", [True, False])
def test_a_person_who_ends_the_task_ends_its_driver_and_no_other(
    manager: FakeManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cancel: bool
) -> None:
    from airflow_provider_sinks.triggers import sink_driver

    monkeypatch.setattr(sink_driver, "_POLITE_SECONDS", 0.1)
    manager.run("application_1795240018597_0002", "sink:orders")

    asyncio.run(trigger(tmp_path, cancel_on_kill=cancel).on_kill())

    assert manager.killed == ([APP_ID] if cancel else [])
    assert (tmp_path / "stop").exists() is cancel


@pytest.mark.parametrize(
    ("said", "ends"),
    [
        pytest.param(Listed.GONE, True, id="gone"),
        pytest.param(Listed.BROKEN, False, id="cannot-be-read"),
        pytest.param(Listed.UNKNOWN, False, id="airflow-cannot-be-asked"),
    ],
)
def test_a_driver_whose_dag_is_gone_for_good_is_ended_with_its_task(
    manager: FakeManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Listed, ends: bool
) -> None:
    from airflow.triggers.base import TaskSkippedEvent

    from airflow_provider_sinks.core.lifecycle import dag_gone
    from airflow_provider_sinks.triggers import listed_dags, sink_driver

    monkeypatch.setattr(sink_driver, "_POLITE_SECONDS", 0.1)
    monkeypatch.setattr(dag_gone, "GONE_FOR_SECONDS", 0.2)
    monkeypatch.setattr(listed_dags, "listed", lambda _: said)
    listed_dags.forget()
    waiting = trigger(tmp_path)
    waiting._task_instance = SimpleNamespace(dag_id="gone")

    async def wait() -> object:
        event = asyncio.ensure_future(anext(aiter(waiting.run())))
        done, _ = await asyncio.wait([event], timeout=_SURELY_SECONDS if ends else 1)
        if not done:
            manager.end("FINISHED", "SUCCEEDED")
        return await event

    event = asyncio.run(wait())
    listed_dags.forget()

    assert isinstance(event, TaskSkippedEvent) is ends
    assert manager.killed == ([APP_ID] if ends else [])


def test_airflow_is_asked_once_for_a_dag_and_for_none_while_it_cannot_be_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from airflow_provider_sinks.triggers import listed_dags

    asked: list[str] = []
    answers = {"a": Listed.LISTED, "b": Listed.GONE, "c": Listed.UNKNOWN}

    def listed(dag_id: str) -> Listed:
        asked.append(dag_id)
        return answers[dag_id]

    monkeypatch.setattr(listed_dags, "listed", listed)
    listed_dags.forget()

    said = [listed_dags.listed_lately(dag_id) for dag_id in ("a", "a", "b", "c", "d")]
    listed_dags.forget()

    assert said == [Listed.LISTED, Listed.LISTED, Listed.GONE, Listed.UNKNOWN, Listed.UNKNOWN]
    assert asked == ["a", "b", "c"]


def test_many_of_them_leave_the_event_loop_free(manager: FakeManager, tmp_path: Path) -> None:
    async def count() -> int:
        waiting = [asyncio.ensure_future(anext(aiter(trigger(tmp_path).run()))) for _ in range(50)]
        turns = 0
        while len(manager.asked) < 200:
            await asyncio.sleep(0)
            turns += 1
        manager.end("FINISHED", "SUCCEEDED")
        await asyncio.gather(*waiting)
        return turns

    assert asyncio.run(count()) > 200


@pytest.fixture
def reads_at_each_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pause between two readings of a connection, and none between two launches."""
    from airflow_provider_sinks.core.connection import follow
    from airflow_provider_sinks.triggers import followed
    from airflow_provider_sinks.triggers.shared_readings import SharedReadings

    monkeypatch.setattr(follow, "LAUNCH_SECONDS", 0.0)
    monkeypatch.setattr(followed, "_READINGS", SharedReadings(0.0))


@pytest.mark.usefixtures("reads_at_each_look")
def test_it_rings_when_a_connection_changed(
    manager: FakeManager, tmp_path: Path, connections: Callable[..., None]
) -> None:
    extra = {"bootstrap.servers": "127.0.0.1:1", "client.id": "edited"}
    edited = {"conn_type": "kafka", "extra": extra}
    connections(kafka_test=KAFKA)

    event = asyncio.run(
        ring(trigger(tmp_path), lambda: len(manager.asked) > 3, lambda: connections(kafka_test=edited))
    )

    assert (event["changed"], event["unlike"]) == (["kafka_test"], [])


@pytest.mark.usefixtures("reads_at_each_look")
def test_while_its_dag_is_gone_no_change_rings_because_no_worker_would_come(
    manager: FakeManager, tmp_path: Path, connections: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow_provider_sinks.triggers import listed_dags

    said = {"gone": Listed.LISTED}
    monkeypatch.setattr(listed_dags, "NOW_SECONDS", 0.0)
    monkeypatch.setattr(listed_dags, "listed", said.__getitem__)
    listed_dags.forget()
    connections(kafka_test=KAFKA)
    waiting = trigger(tmp_path)
    waiting._task_instance = SimpleNamespace(dag_id="gone")

    def change() -> None:
        said["gone"] = Listed.GONE
        connections(kafka_test={"conn_type": "kafka", "extra": {"bootstrap.servers": "127.0.0.1:2"}})

    async def wait() -> tuple[bool, dict[str, Any]]:
        event = asyncio.ensure_future(anext(aiter(waiting.run())))
        while len(manager.asked) < 3:  # noqa: ASYNC110  by its second look the first has read the connection
            await asyncio.sleep(0.01)
        change()
        rang, _ = await asyncio.wait([event], timeout=20 * waiting.poll_interval)
        said["gone"] = Listed.LISTED
        return bool(rang), dict((await asyncio.wait_for(event, _SURELY_SECONDS)).payload)

    rang_meanwhile, event = asyncio.run(wait())
    listed_dags.forget()

    assert not rang_meanwhile
    assert event["changed"] == ["kafka_test"]


@pytest.mark.parametrize(
    ("launched_on", "changed"),
    [
        pytest.param("127.0.0.1:2", ["kafka_test"], id="it-changed-before-the-first-look"),
        pytest.param("127.0.0.1:1", [], id="it-is-what-the-driver-got"),
    ],
)
@pytest.mark.usefixtures("reads_at_each_look")
def test_what_changed_before_it_looked_or_while_no_triggerer_ran_is_noticed(
    manager: FakeManager,
    tmp_path: Path,
    connections: Callable[..., None],
    launched_on: str,
    changed: list[str],
) -> None:
    from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
    from airflow_provider_sinks.core.connection.resolved import ResolvedConnections

    connections(kafka_test=KAFKA)
    got = KafkaOptions("kafka_test", {"bootstrap.servers": launched_on})
    waiting = trigger(tmp_path, launched=ResolvedConnections({"kafka_test": got}).visible_digests())

    async def wait() -> dict[str, Any]:
        event = asyncio.ensure_future(anext(aiter(waiting.run())))
        await asyncio.wait([event], timeout=_SURELY_SECONDS if changed else 20 * waiting.poll_interval)
        manager.end("FINISHED", "SUCCEEDED")
        return dict((await asyncio.wait_for(event, _SURELY_SECONDS)).payload)

    event = asyncio.run(wait())

    assert (event["changed"], event["unlike"]) == (changed, changed)


def test_many_sinks_share_one_reading_of_a_connection() -> None:
    from airflow_provider_sinks.core.connection.follow import Reading
    from airflow_provider_sinks.triggers.shared_readings import SharedReadings

    shared, reads = SharedReadings(60.0), []

    def read() -> Reading:
        reads.append(1)
        return Reading("a", "visible")

    seen = [shared.newest("kafka_test", read) for _ in range(100)]

    assert (set(seen), len(reads)) == ({(1, Reading("a", "visible"))}, 1)


def test_many_sinks_share_one_reading_of_the_spark_connection(
    manager: FakeManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow_provider_sinks.drivers.on_yarn import yarn_client
    from airflow_provider_sinks.triggers.shared_client import shared_client

    reads = []

    def read(conn_id: str) -> object:
        reads.append(conn_id)
        return yarn_client(conn_id)

    monkeypatch.setattr("airflow_provider_sinks.triggers.shared_client.yarn_client", read)
    clients = {shared_client("spark_yarn").url for _ in range(100)}

    assert (clients, reads) == ({manager.url}, ["spark_yarn"])


def test_a_reading_that_is_seen_twice_is_not_two() -> None:
    from airflow_provider_sinks.core.connection.follow import Reading
    from airflow_provider_sinks.triggers.shared_readings import SharedReadings

    a, b = Reading("a", ""), Reading("b", "")
    values = iter([a, b])
    shared = SharedReadings(0.0)

    assert [shared.newest("k", lambda: next(values)) for _ in range(3)] == [(1, a), (2, b), (3, None)]
