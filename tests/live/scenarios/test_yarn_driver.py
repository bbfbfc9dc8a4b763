"""The sink job with its driver in a container of a real YARN: told by files, heard of at a URI."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from airflow_provider_sinks.clients.launch_store import LaunchStore
from airflow_provider_sinks.core.launch.files import LaunchFiles
from airflow_provider_sinks.core.launch.status import SinkState, SinkStatus
from airflow_provider_sinks.drivers.application import application_file, write_library
from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.listeners import Mechanism, Sasl
from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.local.yarn import YarnCluster
from airflow_provider_sinks.streaming import driver_share
from tests.live.cluster import submit_to
from tests.live.shared_driver import SharedDriver
from tests.live.stage import Stage

_CANARY = f"canary{uuid.uuid4().hex}"
_PARTITIONS = 2
_ROWS = 500


@pytest.fixture
def guarded(
    postgres: Postgres,
    shared_driver: SharedDriver,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Stage]:
    """The place for a sink on a broker that demands a password."""
    sasl = Sasl(Mechanism.PLAIN, {"sinks": _CANARY})
    with KafkaBroker.start(tmp_path_factory.mktemp("kafka of the cluster"), sasl=sasl) as broker:
        stage = Stage(broker, postgres, shared_driver, tmp_path, user="sinks")
        yield stage
        stage.close()


def test_a_driver_in_a_container_writes_exactly_once_and_keeps_its_secrets(
    guarded: Stage, yarn: YarnCluster
) -> None:
    source = guarded.source("cluster", {p: _rows(p, 0) for p in range(_PARTITIONS)})
    sink = guarded.sink(
        "cluster",
        source,
        from_={"format": "text"},
        query="SELECT value FROM source",
        trigger={"every": "100ms"},
    )
    files = sink.prepare()
    store = _at_a_uri(files, sink.folder / "status", sink.connections.to_json())
    events = sink.folder / "events"
    events.mkdir()
    conf = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
        driver_share.SETTING: "0",
    }
    submitted = submit_to(
        yarn,
        files.directory,
        *("--files", f"{files.launch},{files.connections}"),
        *("--py-files", str(write_library(files.directory)), str(application_file()), "--launch", "."),
        tag=sink.parsed.name,
        conf=conf,
    )

    submitted.wait_until(lambda: _has_passed(store, _ROWS))
    beside_containers = [path for path in (yarn.folder / "local").rglob("connections.json") if path.exists()]
    for partition in range(_PARTITIONS):
        guarded.produce(source, [(partition, *record) for record in _rows(partition, _ROWS)])
    submitted.wait_until(lambda: _has_passed(store, 2 * _ROWS))
    store.ask_to_stop()

    assert submitted.wait() == 0, submitted.log[-3000:]
    assert _status(store).state is SinkState.STOPPED
    assert beside_containers == []
    written = sorted((record.value or b"").decode() for record in guarded.read(sink.out))
    assert written == sorted(v for p in range(_PARTITIONS) for n in (0, _ROWS) for _, v in _rows(p, n))
    report = httpx.get(f"{yarn.url}/ws/v1/cluster/apps", params={"applicationTags": sink.parsed.name.lower()})
    seen = {
        "report": report.content,
        "spark-submit": submitted.log.encode(),
        **_files(yarn.logs),
        **_files(events),
        **_files(sink.folder / "status"),
        **_files(sink.checkpoints),
    }
    assert any("status.json" in name for name in seen)
    assert any("stderr" in name for name in seen)
    assert b"applicationTags" in report.content
    assert [name for name, content in seen.items() if _CANARY.encode() in content] == []


def _rows(partition: int, start: int) -> list[tuple[str, str]]:
    return [(f"k{number}", f"{partition}-{number}") for number in range(start, start + _ROWS)]


def _at_a_uri(files: LaunchFiles, folder: Path, connections_json: str) -> LaunchStore:
    """Tell a launch to report at a URI."""
    files.write(replace(files.read(), status_uri=folder.as_uri()), connections_json)
    return LaunchStore(folder.as_uri())


def _status(store: LaunchStore) -> SinkStatus:
    text = store.read_status()
    assert text is not None
    return SinkStatus.from_json(text)


def _has_passed(store: LaunchStore, offset: int) -> bool:
    if store.read_status() is None:
        return False
    status = _status(store)
    assert status.error is None, status.error
    return len(status.positions) == _PARTITIONS and all(at >= offset for at in status.positions.values())


def _files(folder: Path) -> dict[str, bytes]:
    found = {}
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            if path.is_file():
                found[str(path)] = path.read_bytes()
    return found
