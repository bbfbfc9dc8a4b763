"""A broker or a database that is silent under a running sink: the driver waits, says so, and goes on."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from psycopg import sql

from airflow_provider_sinks.clients.wait import holds_within
from airflow_provider_sinks.connectors.kafka.driver_records import DriverRecords
from airflow_provider_sinks.connectors.kafka.transaction import Transaction
from airflow_provider_sinks.core.errors import ExitCode, FencedError, JobFailedError, UnavailableError
from airflow_provider_sinks.core.progress.record import ProgressRecord
from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.local.processes import tail
from airflow_provider_sinks.streaming.patience import Patience
from tests.faults import topics
from tests.faults.driver import Driver
from tests.faults.outcome import FULL_COUNT, ROUNDS
from tests.live.shared_driver import SharedDriver
from tests.live.sink_world import SinkWorld
from tests.live.stage import WHO_WRITES, KeyValue, Sink, Stage

_SILENT_SECONDS = 75.0 if ROUNDS >= FULL_COUNT else 45.0
"""Longer than a driver without patience waits (30 s); at the full count longer than a transaction may."""
_DATABASE_SECONDS = 35.0
_TRANSACTION_SECONDS = 4.0
_LONGER_SECONDS = 9.0
"""Longer than a transaction of the driver may take in these tests."""
_END_SECONDS = 60.0
"""Within this a driver ends whose patience is over, whatever hangs in it."""
_BACK_SECONDS = 120.0
"""A broker that was frozen for longer than its session answers again within seconds."""
_USERS = "users"


class _Freezable(KafkaBroker):
    """A broker that is there again behind a freeze. Seldom one does not outlive it, and is started anew.

    To a sink that is a silence like others, only that it ends differently.
    """

    tell: Callable[[str], None]

    def resume(self) -> None:
        super().resume()
        if not holds_within(self._answers, _BACK_SECONDS, pause_seconds=0.5):
            self.tell(f"\nthe broker did not survive its freeze and is started again: {tail(self.log)}")
            self.kill()
            self.restart()


@pytest.fixture(scope="module")
def own_broker(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[KafkaBroker]:
    """A broker that tests may freeze."""
    reporter = request.config.pluginmanager.get_plugin("terminalreporter")
    assert reporter is not None
    soon = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "500"}
    with _Freezable.start(tmp_path_factory.mktemp("silent kafka"), extra=soon) as running:
        running.tell = reporter.write_line
        yield running


@pytest.fixture(scope="module")
def own_postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    """A database that tests may freeze."""
    with Postgres.start(tmp_path_factory.mktemp("silent postgres")) as running:
        with running.connect() as connection:
            connection.execute(sql.SQL("CREATE TABLE {} (name text)").format(sql.Identifier(_USERS)))
        yield running


@pytest.fixture
def stage(
    own_broker: KafkaBroker,
    own_postgres: Postgres,
    shared_driver: SharedDriver,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> Iterator[Stage]:
    """The place for sinks on these two."""
    stage = Stage(own_broker, own_postgres, shared_driver, tmp_path)
    stage.driver_rows = getattr(request, "param", stage.driver_rows)
    yield stage
    own_broker.resume()
    own_postgres.resume()
    stage.close()


def _rows(begin: int, end: int) -> list[KeyValue]:
    return [("k", str(number)) for number in range(begin, end)]


def _sink(stage: Stage, suffix: str, source: str, **spec: object) -> Sink:
    return stage.sink(suffix, source, **{"from_": {"format": "text"}, "trigger": {"every": "100ms"}, **spec})


def _joined(patience: str) -> dict[str, object]:
    table = {"connection": "pg", "table": f"public.{_USERS}", "refresh": "1s"}
    query = f"SELECT s.value, u.name FROM source s LEFT JOIN {_USERS} u ON s.value = u.name"  # noqa: S608
    return {
        "lookups": {_USERS: {"postgres": table}},
        "query": query,
        "to": {"value": "value", "key": "name"},
        "patience": patience,
    }


def _waits_for(launch: Driver, what: str) -> bool:
    return launch.status is not None and launch.status.waits_for.startswith(what)


def _silence(service: KafkaBroker | Postgres, launch: Driver, what: str, seconds: float) -> None:
    """Freeze a service for some time, in which the driver says that it waits for it."""
    service.pause()
    since = time.monotonic()
    launch.wait_until(lambda: _waits_for(launch, what))
    time.sleep(max(0.0, seconds - (time.monotonic() - since)))
    service.resume()


@pytest.mark.parametrize("host", ["a driver of its own", "the shared driver"])
def test_a_broker_that_is_silent_for_longer_than_the_patience_ends_the_driver_for_a_retry(
    stage: Stage, host: str
) -> None:
    source = stage.source("gone", {0: _rows(0, 10)})
    sink = _sink(stage, "gone", source, patience="6s")
    launch = sink.launch() if host == "the shared driver" else sink.start()
    launch.wait_until(lambda: launch.has_passed({0: 10}))

    stage.broker.pause()  # until the end: Spark's own clients hang in it meanwhile
    launch.wait_until(lambda: _waits_for(launch, "Kafka at"))
    code = launch.wait(6 + _END_SECONDS)
    stage.broker.resume()

    status = launch.status
    assert status is not None
    assert code == ExitCode.UNAVAILABLE, str(status.error)
    assert status.error is not None
    assert f"has waited for Kafka at {stage.broker.bootstrap} for " in status.error.detail
    assert status.waits_for == ""


def test_a_database_that_is_silent_for_longer_than_the_patience_ends_the_driver_for_a_retry(
    stage: Stage,
) -> None:
    source = stage.source("pg-gone", {0: _rows(0, 10)})
    sink = _sink(stage, "pg-gone", source, **_joined(patience="12s"))
    launch = sink.launch()
    launch.wait_until(lambda: launch.has_passed({0: 10}))

    stage.postgres.pause()
    time.sleep(1.1)  # older than its refresh
    stage.produce(source, [(0, "k", "more")])
    launch.wait_until(lambda: _waits_for(launch, f"table public.{_USERS}"))
    code = launch.wait()

    assert code == ExitCode.UNAVAILABLE
    assert launch.status is not None
    assert "has waited for table" in str(launch.status.error)


def test_a_broker_that_is_silent_for_a_while_costs_nothing_but_that_while(stage: Stage) -> None:
    source = stage.source("while", {0: _rows(0, 50), 1: _rows(0, 50)})
    sink = _sink(stage, "while", source, from_={"format": "text", "max_offsets_per_epoch": 20})
    launch = sink.launch()
    launch.wait_until(lambda: launch.has_passed({0: 50, 1: 50}))
    stage.produce(source, [(partition, *row) for partition in (0, 1) for row in _rows(50, 300)])
    launch.wait_until(lambda: launch.has_passed({0: 80, 1: 80}))

    _silence(stage.broker, launch, "Kafka at", _SILENT_SECONDS)
    launch.wait_until(lambda: launch.has_passed({0: 300, 1: 300}))

    assert launch.status is not None
    assert launch.status.waits_for == ""
    assert launch.stop() == ExitCode.OK
    values = sorted(int(record.value or b"") for record in stage.read(sink.out))
    assert values == sorted([*range(300), *range(300)])


def test_a_database_that_is_silent_for_a_while_costs_nothing_but_that_while(stage: Stage) -> None:
    source = stage.source("pg-while", {0: _rows(0, 10)})
    sink = _sink(stage, "pg-while", source, **_joined(patience="5m"))
    launch = sink.launch()
    launch.wait_until(lambda: launch.has_passed({0: 10}))

    stage.postgres.pause()
    silent_since = time.monotonic()
    time.sleep(1.1)  # older than its refresh
    stage.produce(source, [(0, "k", "10")])
    launch.wait_until(lambda: _waits_for(launch, f"table public.{_USERS}"))
    time.sleep(max(0.0, _DATABASE_SECONDS - (time.monotonic() - silent_since)))
    stage.postgres.resume()
    launch.wait_until(lambda: launch.has_passed({0: 11}))

    assert launch.stop() == ExitCode.OK
    assert [int(record.value or b"") for record in stage.read(sink.out)] == list(range(11))


def _into_table(stage: Stage, suffix: str, source: str, patience: str) -> Sink:
    table = {"connection": "pg", "table": f"public.{suffix.replace('-', '_')}", "create": True}
    from_ = {"schema": "id int", "max_offsets_per_epoch": 20}
    return _sink(stage, suffix, source, from_=from_, target={"postgres": table}, patience=patience)


def _numbered(begin: int, end: int) -> list[KeyValue]:
    return [("k", f'{{"id": {number}}}') for number in range(begin, end)]


@pytest.mark.parametrize("stage", WHO_WRITES, indirect=True)
def test_a_database_that_is_silent_while_it_is_written_costs_nothing_but_that_while(stage: Stage) -> None:
    name = f"target-while-{stage.driver_rows}"
    source = stage.source(name, {0: _numbered(0, 50), 1: _numbered(50, 100)})
    sink = _into_table(stage, name, source, patience="5m")
    launch = sink.launch()
    launch.wait_until(lambda: launch.has_passed({0: 50, 1: 50}))
    rows = [(partition, *row) for partition in (0, 1) for row in _numbered(100, 350)]
    stage.produce(source, rows)
    launch.wait_until(lambda: launch.has_passed({0: 80, 1: 80}))

    _silence(stage.postgres, launch, "Postgres", _DATABASE_SECONDS)
    launch.wait_until(lambda: launch.has_passed({0: 300, 1: 300}))

    assert launch.stop() == ExitCode.OK
    assert _numbers(stage, name) == sorted([*range(100), *range(100, 350), *range(100, 350)])


def _numbers(stage: Stage, name: str) -> list[int]:
    table = sql.Identifier("public", name.replace("-", "_"))
    with stage.postgres.connect() as connection:
        found = connection.execute(sql.SQL("SELECT id FROM {} ORDER BY id").format(table)).fetchall()
    return [number for (number,) in found]


@pytest.mark.parametrize("host", ["a driver of its own", "the shared driver"])
@pytest.mark.parametrize("stage", WHO_WRITES, indirect=True)
def test_a_database_that_is_silent_while_it_is_written_for_longer_than_the_patience_ends_the_driver(
    stage: Stage, host: str
) -> None:
    name = f"target-gone-{stage.driver_rows}-{len(host)}"
    source = stage.source(name, {0: _numbered(0, 10)})
    sink = _into_table(stage, name, source, patience="12s")
    launch = sink.launch() if host == "the shared driver" else sink.start()
    launch.wait_until(lambda: launch.has_passed({0: 10}))

    stage.postgres.pause()
    stage.produce(source, [(0, *row) for row in _numbered(10, 20)])
    launch.wait_until(lambda: _waits_for(launch, "Postgres"))
    code = launch.wait(12 + _END_SECONDS)
    stage.postgres.resume()

    assert launch.status is not None
    assert code == ExitCode.UNAVAILABLE, str(launch.status.error)
    assert "has waited for Postgres" in str(launch.status.error)
    assert launch.status.error is not None
    assert launch.status.error.hint
    again = sink.launch()
    again.wait_until(lambda: again.has_passed({0: 20}))
    assert again.stop() == ExitCode.OK
    assert _numbers(stage, name) == list(range(20))


@pytest.fixture
def world(own_broker: KafkaBroker) -> Iterator[SinkWorld]:
    """A sink that was started on the broker that tests may freeze."""
    made = SinkWorld(own_broker, f"records_{uuid.uuid4().hex[:8]}")
    made.create(made.source)
    made.start()
    yield made
    own_broker.resume()


def _driver_records(world: SinkWorld) -> DriverRecords:
    """Return the own records of a driver that has just taken over."""
    return DriverRecords(world.kafka_run(transaction_timeout=timedelta(seconds=_TRANSACTION_SECONDS)))


def _record(world: SinkWorld, epoch: int) -> ProgressRecord:
    assert world.announced is not None
    return replace(world.announced, epoch=epoch)


def _client(world: SinkWorld) -> dict[str, str]:
    return {name: str(value) for name, value in world.broker.client_config().items()}


def test_a_record_of_the_driver_waits_for_brokers_that_are_away_for_longer_than_a_transaction(
    world: SinkWorld,
) -> None:
    records = _driver_records(world)
    patience = Patience(timedelta(minutes=1))
    patience.ask("Kafka", lambda: records.commit(_record(world, 1)))

    world.broker.kill()
    threading.Timer(_LONGER_SECONDS, world.broker.restart).start()
    patience.ask("Kafka", lambda: records.commit(_record(world, 2)))
    patience.ask("Kafka", lambda: records.commit(_record(world, 3)))

    assert world.observe().known.epoch == 3
    assert [found.epoch for _, found in topics.read_progress(_client(world), world.progress)] == [0, 1, 2, 3]


def test_a_newer_start_wins_over_a_driver_that_goes_on_after_a_silence(world: SinkWorld) -> None:
    older = _driver_records(world)
    older.commit(_record(world, 1))
    world.broker.pause()
    with pytest.raises(UnavailableError):
        older.commit(_record(world, 2))
    world.broker.resume()

    newer = Patience(timedelta(minutes=1)).ask("Kafka", lambda: _driver_records(world))
    with pytest.raises((FencedError, JobFailedError)):
        older.commit(_record(world, 2))

    newer.commit(_record(world, 3))
    assert world.observe().known.epoch == 3


def test_a_record_whose_transaction_the_brokers_have_ended_ends_the_driver_for_a_retry(
    world: SinkWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = _driver_records(world)
    commit = Transaction.commit

    def commit_late(transaction: Transaction) -> None:
        assert transaction.live.flush(10) == 0
        while topics.has_open_transaction(_client(world), world.progress):
            time.sleep(0.1)
        commit(transaction)

    monkeypatch.setattr(Transaction, "commit", commit_late)
    with pytest.raises(JobFailedError, match="silent for longer than its transaction timeout") as raised:
        Patience(timedelta(minutes=5)).ask("Kafka", lambda: records.commit(_record(world, 1)))

    assert raised.value.retryable
    assert world.observe().known.epoch == 0
