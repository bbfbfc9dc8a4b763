"""Where executors are processes on other machines: a real standalone cluster.

A ``local-cluster`` inside one process tree is what the fault tests kill executors and workers of.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

import psutil
import pytest

from airflow_provider_sinks.core.errors import ExitCode
from airflow_provider_sinks.drivers.application import application_file, write_library
from airflow_provider_sinks.local.processes import session_members
from airflow_provider_sinks.local.spark import StandaloneCluster
from airflow_provider_sinks.streaming import driver_share
from tests.faults.driver import ROOT, Driver, submit
from tests.live.stage import KeyValue, Sink, Stage

_ROWS: dict[int, list[KeyValue]] = {
    p: [(f"k{p}", f"{p}-{number}") for number in range(2_000)] for p in range(3)
}
_SMALL = {driver_share.SETTING: "0", "spark.executor.memory": "512m", "spark.executor.cores": "1"}
_DAEMON = "airflow_provider_sinks.streaming.daemon"


@pytest.fixture
def sink(stage: Stage) -> Sink:
    """A sink with rows enough for several tasks and epochs."""
    source = stage.source("masters", _ROWS)
    kafka = {"format": "text", "max_offsets_per_epoch": 3_000}
    return stage.sink("masters", source, from_=kafka, query="SELECT value FROM source WHERE value <> '0-7'")


@pytest.fixture
def cluster(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[StandaloneCluster]:
    """A master and two workers that know nothing of this checkout."""
    monkeypatch.delenv("PYTHONPATH", raising=False)
    with StandaloneCluster.start(tmp_path_factory.mktemp("standalone"), workers=2, cores=1) as running:
        yield running


def test_standalone_cluster_gets_the_library_as_the_operator_ships_it(
    sink: Sink, stage: Stage, cluster: StandaloneCluster
) -> None:
    files = sink.prepare()
    library = write_library(files.directory)
    shipped = ["--master", cluster.master, "--py-files", str(library), str(application_file())]
    arguments = [*shipped, "--launch", str(files.directory)]
    process = submit("driver", files.directory, *arguments, conf=_SMALL, env={"PYTHONPATH": ""})
    driver = Driver(process, files)
    sink.launches.append(driver)

    driver.wait_until(lambda: len(_python_paths(cluster.sessions, _DAEMON)) >= 2)
    executors, drivers = (
        _python_paths(cluster.sessions, _DAEMON),
        _python_paths([process.service.pid], "--launch"),
    )

    assert driver.wait() == ExitCode.OK, driver.log[-3000:]
    _all_there(sink, stage)
    for path in [*executors, *drivers]:
        assert any(entry.endswith(library.name) for entry in path)
        assert str(ROOT) not in path
    assert len(drivers) == 1


def _python_paths(sessions: Iterable[int], word: str) -> list[list[str]]:
    """Return the PYTHONPATH of each Python process in some sessions that has a word in its command line."""
    found = []
    for pid in [pid for session in sessions for pid in session_members(session)]:
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            if "python" in process.name() and any(word in argument for argument in process.cmdline()):
                found.append(process.environ().get("PYTHONPATH", "").split(":"))
    return found


def _all_there(sink: Sink, stage: Stage) -> None:
    written = sorted((record.value or b"").decode() for record in stage.read(sink.out))
    assert written == sorted(str(v) for rows in _ROWS.values() for _, v in rows if v != "0-7")
    assert {writer for writer, _ in stage.progress(sink)} == {"driver", "p0", "p1", "p2"}
