"""A broker with a will of its own: it demands a user, makes topics that are asked for, and goes away."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_provider_sinks.core.errors import ExitCode
from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.listeners import Mechanism, Sasl
from airflow_provider_sinks.local.postgres import Postgres
from tests.live.shared_driver import SharedDriver
from tests.live.stage import KeyValue, Stage
from tests.slow_sql import slow

_TEXT = {"from_": {"format": "text"}}
_EVERY = {"trigger": {"every": "100ms"}}


@pytest.fixture(scope="module")
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A broker with SCRAM that makes topics by itself; tests may stop it."""
    sasl = Sasl(Mechanism.SCRAM_SHA_512, {"sinks": """p"a\\ss;'w,o=rd"""})
    with KafkaBroker.start(tmp_path_factory.mktemp("own kafka"), sasl=sasl, auto_create=True) as running:
        yield running


@pytest.fixture
def stage(
    own_broker: KafkaBroker, postgres: Postgres, shared_driver: SharedDriver, tmp_path: Path
) -> Iterator[Stage]:
    """The place for sinks on this broker."""
    stage = Stage(own_broker, postgres, shared_driver, tmp_path / "with a space", user="sinks")
    yield stage
    stage.close()


def test_scram_end_to_end(stage: Stage) -> None:
    source = stage.source("scram", {0: [("k", "v")]})
    sink = stage.sink("scram", source, **_TEXT)
    sink.run()
    stage.produce(source, [(0, "k", "w")])

    sink.run()

    assert [record.value for record in stage.read(sink.out)] == [b"v", b"w"]


def test_start_that_cannot_go_on_makes_no_topic(stage: Stage) -> None:
    sink = stage.sink("nothing", "pytest_sink-job_not-there", dead_letter="pytest_sink-job_nor-this", **_TEXT)
    before = stage.topics()

    sink.fail(ExitCode.UNAVAILABLE)

    assert stage.topics() == before


def test_refused_start_makes_no_topic(stage: Stage) -> None:
    sink = stage.sink("refused", stage.source("refused", {0: [("k", "v")]}), **_TEXT)
    sink.run()
    stage.delete_topic(sink.out)
    before = stage.topics()

    sink.fail(ExitCode.REFUSED)

    assert stage.topics() == before


def test_source_that_goes_while_it_is_read_is_not_made_again_by_reading(stage: Stage) -> None:
    source = stage.source("source", {0: [("k", "v")]})
    sink = stage.sink("source", source, **_EVERY, **_TEXT)
    launch = sink.launch()
    launch.wait_until(lambda: launch.has_passed({0: 1}))

    stage.delete_topic(source)
    code, status = launch.wait(), launch.status

    assert status is not None
    assert code == ExitCode.REFUSED, str(status.error)
    assert status.error is not None
    assert status.error.primary.startswith(f'source topic "{source}" is missing, but sink')
    assert source not in stage.topics()


def test_broker_that_comes_back_within_an_epoch_costs_nothing(stage: Stage) -> None:
    rows: list[KeyValue] = [("k", str(number)) for number in range(300)]
    source = stage.source("away", {0: rows, 1: rows})
    sink = stage.sink(
        "away",
        source,
        query=f"SELECT value, {slow(10)} AS pause FROM source",  # noqa: S608  no user's text is in it
        from_={"format": "text", "max_offsets_per_epoch": 200},
        to={"value": "value"},
        transaction_timeout="10s",
        trigger={"every": "100ms"},
    )
    launch = sink.launch()
    launch.wait_until(lambda: launch.has_passed({0: 100, 1: 100}))

    stage.broker.kill()
    stage.broker.restart()
    launch.wait_until(lambda: launch.has_passed({0: 300, 1: 300}))
    code = launch.stop()

    assert code == ExitCode.OK
    values = sorted(record.value or b"" for record in stage.read(sink.out))
    assert values == sorted(str(value).encode() for _, value in rows * 2)
