"""Each exit code for real: drivers of their own, started by spark-submit as the operator starts them."""

from __future__ import annotations

import resource
import signal
import time
from pathlib import Path

from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.errors import ExitCode
from airflow_provider_sinks.core.launch.files import Launch, LaunchFiles
from airflow_provider_sinks.core.launch.status import SinkState, SinkStatus
from airflow_provider_sinks.local.ports import free_port
from tests.faults.driver import APPLICATION, OWNER, Driver, submit
from tests.live.stage import KeyValue, Sink, Stage

_TEXT = {"from_": {"format": "text"}}
_EVERY = {"trigger": {"every": "100ms"}}
_REFUSED_WITHIN_SECONDS = 180.0
"""Thirty where nothing runs beside it."""


def _rows(count: int) -> list[KeyValue]:
    return [(f"k{number}", f"v{number}") for number in range(count)]


def test_64_for_a_spec_with_mistakes_all_of_them_at_once(tmp_path: Path) -> None:
    files = LaunchFiles(tmp_path / "launch")
    spec = {
        "name": "typo",
        "source": "kafka/in",
        "target": {"kafka": {"connection": "k", "topik": "out"}},
        "wehre": "1",
    }
    files.write(Launch(spec, 1, OWNER, str(tmp_path)), ResolvedConnections({}).to_json())

    driver = Driver(
        submit(
            "driver", tmp_path, "--master", "local[2,4]", str(APPLICATION), "--launch", str(files.directory)
        ),
        files,
    )

    assert driver.wait() == ExitCode.CONFIGURATION
    status = _ended(driver)
    assert status.state is SinkState.FAILED
    assert status.error is not None
    assert status.error.primary == 'sink "typo" is not valid'
    assert 'did you mean "topic"?' in status.error.detail
    assert 'did you mean "where"?' in status.error.detail
    assert not files.connections.exists()
    assert "Spark" not in driver.log.replace("spark", "")


def test_65_when_the_data_topic_goes_while_the_sink_runs_and_the_ways_on_work(stage: Stage) -> None:
    source = stage.source("refused", {0: _rows(4)})
    sink = stage.sink("refused", source, **_EVERY, **_TEXT)
    driver = sink.start()
    driver.wait_until(lambda: driver.has_passed({0: 4}))

    deleted_at = time.monotonic()
    stage.delete_topic(sink.out)
    code = driver.wait()

    assert code == ExitCode.REFUSED, driver.log[-4000:]
    assert time.monotonic() - deleted_at < _REFUSED_WITHIN_SECONDS
    error = _ended(driver).error
    assert error is not None
    assert (
        error.primary
        == f'data topic "{sink.out}" is missing, but sink "{sink.parsed.name}" has written to it'
    )
    assert sink.out not in stage.topics()
    _goes_on_without_output(stage, sink)
    _starts_over(stage, sink)


def _goes_on_without_output(stage: Stage, sink: Sink) -> None:
    sink.spec = {**sink.spec, "trigger": "available_now"}
    stage.produce(sink.source, [(0, None, "more")])
    refused = sink.fail(ExitCode.REFUSED)
    assert sink.out not in stage.topics()

    status = sink.run(accept=sink.code(refused, "continue_without_output"))

    assert [record.value for record in stage.read(sink.out)] == [b"more"]
    assert (status.generation, status.rows_total) == (1, 5)


def _starts_over(stage: Stage, sink: Sink) -> None:
    stage.delete_topic(sink.out)
    old = sink.fail(ExitCode.REFUSED)
    wrong = sink.fail(ExitCode.REFUSED, accept=sink.code(old, "start_over")[:-1] + "x")
    assert wrong.error is not None
    assert "does not fit" in wrong.error.detail

    status = sink.run(accept=sink.code(old, "start_over"))

    assert len(stage.read(sink.out)) == 5
    assert (status.generation, status.rows_total) == (2, 5)


def test_66_for_the_older_of_two_drivers_while_the_newer_goes_on(stage: Stage) -> None:
    source = stage.source("fenced", {p: _rows(50) for p in range(2)})
    sink = stage.sink("fenced", source, **_EVERY, **_TEXT)
    older = sink.start()
    older.wait_until(lambda: older.has_passed({0: 50, 1: 50}))

    newer = sink.launch()
    for number in range(20):
        stage.produce(source, [(p, "k", f"{p}-{number}") for p in range(2)])
    code = older.wait()
    stage.produce(source, [(p, "k", f"{p}-last") for p in range(2)])
    newer.wait_until(lambda: newer.has_passed({0: 71, 1: 71}))

    assert code == ExitCode.FENCED, older.log[-4000:]
    status = _ended(older)
    assert status.state is SinkState.FENCED
    assert status.error is not None
    assert status.error.primary in {  # by its record or, before that is there, by the ids it took
        f'a newer start of sink "{sink.parsed.name}" took over',
        f'another start of sink "{sink.parsed.name}" holds its transactional ids',
    }
    assert newer.stop() == ExitCode.OK
    read, written = stage.read(source), stage.read(sink.out)
    assert sorted((r.key, r.value) for r in written) == sorted((r.key, r.value) for r in read)


def test_an_entry_of_an_older_driver_in_the_checkpoint_does_not_end_the_newer_one(stage: Stage) -> None:
    source = stage.source("entry", {0: _rows(3)})
    sink = stage.sink("entry", source, **_EVERY, **_TEXT)
    newer = sink.launch()
    newer.wait_until(lambda: newer.has_passed({0: 3}))
    [commits] = sink.checkpoints.glob("*/*/commits")
    newer.wait_until((commits / "0").exists)

    (commits / "1").write_bytes((commits / "0").read_bytes())  # as it wakes behind an epoch that is whole
    stage.produce(source, [(0, None, "more")])
    newer.wait_until((commits.parent / "offsets" / "1").exists)
    stage.produce(source, [(0, None, "and more")])
    newer.wait_until(lambda: newer.has_passed({0: 5}))

    assert newer.stop() == ExitCode.OK
    assert "an older driver of this sink wrote into its checkpoint last" in newer.log
    assert [one.value for one in stage.read(sink.out)] == [one.value for one in stage.read(source)]


def test_66_whatever_the_older_fails_of_before_it_sees_the_newer(stage: Stage) -> None:
    source = stage.source("overtaken", {0: _rows(3)})
    sink = stage.sink("overtaken", source, **_EVERY, **_TEXT)
    older = sink.start()
    older.wait_until(lambda: older.has_passed({0: 3}))

    older.signal(signal.SIGSTOP)
    resource.prlimit(older.jvm, resource.RLIMIT_FSIZE, (0, 0))
    newer = sink.launch()
    newer.wait_until(lambda: newer.in_state(SinkState.RUNNING))
    stage.produce(source, [(0, None, "more")])
    older.signal(signal.SIGCONT)

    assert older.wait() == ExitCode.FENCED, older.log[-4000:]
    newer.wait_until(lambda: newer.has_passed({0: 4}))
    assert newer.stop() == ExitCode.OK


def test_69_when_no_broker_answers(stage: Stage) -> None:
    sink = stage.sink("away", "nowhere", **_TEXT)
    nobody = {"bootstrap.servers": f"127.0.0.1:{free_port()}"}
    sink.connections = ResolvedConnections({"kafka": KafkaOptions.from_connection_extra(nobody, "kafka")})

    driver = sink.start()

    assert driver.wait() == ExitCode.UNAVAILABLE
    error = _ended(driver).error
    assert error is not None
    assert nobody["bootstrap.servers"] in error.primary
    assert 'bootstrap.servers and security.protocol of connection "kafka"' in error.hint
    assert not driver.files.connections.exists()


def test_70_when_there_is_no_room_left_for_the_checkpoint(stage: Stage) -> None:
    source = stage.source("room", {0: _rows(3)})
    sink = stage.sink("room", source, **_EVERY, **_TEXT)
    driver = sink.start()
    driver.wait_until(lambda: driver.has_passed({0: 3}))

    # A file that may not grow is what a full disk looks like, and it needs no rights of an administrator.
    resource.prlimit(driver.jvm, resource.RLIMIT_FSIZE, (0, 0))
    stage.produce(source, [(0, None, "more")])
    code = driver.wait()

    assert code == ExitCode.FAILED, driver.log[-4000:]
    error = _ended(driver).error
    assert error is not None
    assert (
        error.primary
        == f'sink "{sink.parsed.name}" has no room left to write its checkpoint or its temporary files'
    )
    assert "Free space" in error.hint
    sink.spec = {**sink.spec, "trigger": "available_now"}
    sink.run()
    assert [record.value for record in stage.read(sink.out)] == [b"v0", b"v1", b"v2", b"more"]


def _ended(driver: Driver) -> SinkStatus:
    status = driver.status
    assert status is not None
    assert status.state.is_final
    return status
