"""A driver that lost everything at once: nobody is left who could end it, so it must end by itself."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_provider_sinks.core.errors import ExitCode
from airflow_provider_sinks.core.launch.liveness_lock import held
from airflow_provider_sinks.core.launch.status import SinkState
from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.local.spark import StandaloneCluster
from airflow_provider_sinks.streaming import driver_share
from airflow_provider_sinks.streaming.orphan import PATIENCE_SECONDS
from tests.faults import topics
from tests.live.shared_driver import SharedDriver
from tests.live.stage import KeyValue, Sink, Stage
from tests.slow_sql import slow

_ROWS: list[KeyValue] = [("k", str(number)) for number in range(3_000)]
_SLOW = f"SELECT value, {slow(200)} AS pause FROM source"  # noqa: S608  no user's text is in it
_CONF = {
    driver_share.SETTING: "0",
    "spark.executor.memory": "512m",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10",
}
_EXIT_SECONDS = 45.0


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[KafkaBroker]:
    """A broker that may be killed."""
    with KafkaBroker.start(tmp_path / "kafka") as running:
        yield running


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[StandaloneCluster]:
    """A master and a worker that may be killed."""
    with StandaloneCluster.start(tmp_path / "spark", workers=1) as running:
        yield running


@pytest.fixture
def sink(
    mortal: KafkaBroker,
    cluster: StandaloneCluster,
    postgres: Postgres,
    shared_driver: SharedDriver,
    tmp_path: Path,
) -> Iterator[Sink]:
    """A sink whose first epoch takes ten minutes."""
    stage = Stage(mortal, postgres, shared_driver, tmp_path)
    kafka, every = {"format": "text"}, {"every": "100ms"}
    source = stage.source("abandoned", {0: _ROWS})
    sink = stage.sink("abandoned", source, from_=kafka, to={"value": "value"}, query=_SLOW, trigger=every)
    sink.master, sink.conf = cluster.master, _CONF
    yield sink
    stage.close()


@pytest.mark.timeout(300)
def test_its_task_its_broker_and_its_spark_master_killed_at_once_it_ends_within_a_minute(
    sink: Sink, mortal: KafkaBroker, cluster: StandaloneCluster
) -> None:
    client = {name: str(value) for name, value in mortal.client_config().items()}
    driver = sink.submit()
    with held(driver.files.liveness_lock):
        driver.wait_until(lambda: driver.in_state(SinkState.RUNNING))
        driver.wait_until(lambda: topics.has_open_transaction(client, sink.out))
        cluster.kill()
        mortal.kill()
    killed_at = time.monotonic()

    code = driver.wait()

    assert code != ExitCode.OK
    assert time.monotonic() - killed_at < PATIENCE_SECONDS + _EXIT_SECONDS
    assert driver.status is not None
    assert driver.status.state is SinkState.FAILED
