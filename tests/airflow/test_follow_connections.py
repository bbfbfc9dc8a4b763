"""A running sink whose connections change: launched again in place, with a real process for a driver."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.core.connection import follow
from airflow_provider_sinks.core.connection.options import ConnectionOptions
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.errors import AuthenticationError, UnavailableError
from airflow_provider_sinks.core.retries import RETRIED_FOR, RETRIES, Retries, Retry, Trouble
from tests.airflow.fakes import KAFKA, SINK, FakeSpark, status
from tests.support import until

if TYPE_CHECKING:
    from airflow.sdk.execution_time.supervisor import TaskRunResult

    from airflow_provider_sinks.operators.submit_sink_job import SubmitSinkJobOperator
    from tests.airflow_side import RunTask, Submit

OTHER = {"conn_type": "kafka", "extra": {"bootstrap.servers": "127.0.0.1:2"}}


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pause between two launches."""
    monkeypatch.setattr(follow, "LAUNCH_SECONDS", 0)


def quick(task: SubmitSinkJobOperator) -> SubmitSinkJobOperator:
    """Look more often than a user may."""
    task.poll_interval = 0.1
    return task


def _when_it_runs(spark: FakeSpark, act: Callable[[], None]) -> threading.Thread:
    """Do something as soon as the driver runs."""

    def wait() -> None:
        until((spark.folder / "seen.json").exists, "the driver to run", 120)
        act()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


@pytest.mark.usefixtures("often")
def test_a_changed_connection_launches_the_sink_again_in_place(
    run_task: RunTask, submit: Submit, spark: FakeSpark, connections: Callable[..., None],
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    spark.play(wait=60, statuses=[status(state="running")])

    def change() -> None:
        connections(kafka_test=OTHER)
        spark.play(statuses=[status(state="stopped", epoch=1)])

    changing = _when_it_runs(spark, change)
    result = run_task(quick(submit(sink={**SINK, "name": "followed"})))
    changing.join()

    assert result.state == "success", result.error
    assert spark.seen["launch"]["number"] == 2
    assert spark.seen["connections"]["kafka_test"]["kafka"] == OTHER["extra"]
    log = capfd.readouterr().out
    assert log.count("launch 2: connection kafka_test changed") == 1
    assert "launch 1: running" in log
    assert "the driver was ended in the middle" not in log


@pytest.mark.usefixtures("often")
def test_a_driver_that_does_not_listen_is_replaced_all_the_same(
    run_task: RunTask, submit: Submit, spark: FakeSpark, connections: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("airflow_provider_sinks.operators.submit.client_launch._POLITE_SECONDS", 0.2)
    monkeypatch.setattr("airflow_provider_sinks.operators.submit.client_launch._SIGTERM_SECONDS", 0.2)
    spark.play(wait=60, stubborn=True)

    def change() -> None:
        connections(kafka_test=OTHER)
        spark.play()

    changing = _when_it_runs(spark, change)
    result = run_task(quick(submit()))
    changing.join()

    assert result.state == "success", result.error
    assert spark.seen["connections"]["kafka_test"]["kafka"] == OTHER["extra"]


@pytest.mark.usefixtures("often")
def test_a_launch_that_is_refused_for_another_reason_is_not_repeated(
    run_task: RunTask, submit: Submit, spark: FakeSpark, connections: Callable[..., None]
) -> None:
    error = {"kind": "FencedError", "primary": "a newer start took over", "detail": "", "hint": ""}
    spark.play(wait=60, statuses=[status(state="fenced", error=error)], exit_when_stopped=66)

    changing = _when_it_runs(spark, lambda: connections(kafka_test=OTHER))
    result = run_task(quick(submit()))
    changing.join()

    assert result.state == "failed"
    assert "a newer start took over" in str(result.error)


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize(
    ("connection", "follows"),
    [
        pytest.param({**KAFKA, "description": "ours"}, True, id="a-description-does-not-count"),
        pytest.param({"conn_type": "kafka", "extra": {"plugin.library.paths": "x"}}, True, id="unreadable"),
        pytest.param(OTHER, False, id="not-followed"),
    ],
)
def test_what_does_not_launch_it_again(  # noqa: PLR0917  four fixtures and a row of the table
    run_task: RunTask, submit: Submit, spark: FakeSpark, connections: Callable[..., None],
    connection: dict[str, Any], follows: bool,
) -> None:  # fmt: skip
    spark.play(wait=1.5)

    changing = _when_it_runs(spark, lambda: connections(kafka_test=connection))
    result = run_task(quick(submit(sink={**SINK, "name": "calm"}, follow_connections=follows)))
    changing.join()

    assert result.state == "success", result.error
    assert spark.launches == 1


def test_without_following_there_is_no_thread(run_task: RunTask, submit: Submit, spark: FakeSpark) -> None:
    spark.play(wait=120)
    names: list[str] = []

    def look() -> None:
        names.extend(thread.name for thread in threading.enumerate())
        (spark.directory / "stop").touch()

    looking = _when_it_runs(spark, look)
    run_task(submit(follow_connections=False))
    looking.join()

    assert "sink-status" in names
    assert "sink-connections" not in names


def _after_a_change(
    run_task: RunTask, task: SubmitSinkJobOperator, spark: FakeSpark, connections: Callable[..., None],
    **script: Any,
) -> TaskRunResult:  # fmt: skip
    """Run a task whose connection changes, and whose driver then does what ``script`` says."""
    spark.play(wait=60, statuses=[status(state="running")])

    def change() -> None:
        connections(kafka_test=OTHER)
        spark.play(**script)

    changing = _when_it_runs(spark, change)
    result = run_task(quick(task))
    changing.join()
    return result


@pytest.mark.usefixtures("often")
def test_a_sink_that_a_change_stopped_is_tried_again_until_it_runs(
    run_task: RunTask, submit: Submit, spark: FakeSpark, connections: Callable[..., None]
) -> None:
    task, denied = submit(retries=5), {"exit": 64, "statuses": [_failed("AuthenticationError")]}

    stopped = _after_a_change(run_task, task, spark, connections, **denied)
    still = run_task(quick(task), again=True)
    spark.play(exit=70, statuses=[status(state="failed")])
    ran = run_task(quick(task), again=True)
    spark.play(**denied)
    for_another_reason = run_task(quick(task), again=True)

    assert stopped.state == still.state == "up_for_retry"
    assert "because kafka_test changed under the running sink" in str(still.error)
    assert ran.state == "up_for_retry"
    assert for_another_reason.state == "failed"


def _failed(kind: str, *connections: str) -> dict[str, Any]:
    """Return the status of a launch that failed before it ran."""
    error = {"kind": kind, "primary": "it is so", "connections": connections or ("kafka_test",)}
    return status(state="refused" if kind == "RefusedError" else "failed", run="", error=error)


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize(
    ("code", "error"),
    [
        pytest.param(65, _failed("RefusedError"), id="refused"),
        pytest.param(64, _failed("ConfigurationError", "another"), id="of-another-connection"),
        pytest.param(64, _failed("ConfigurationError", ""), id="of-no-connection"),
    ],
)
def test_what_no_change_of_a_connection_mends_ends_at_once_right_after_one_too(  # noqa: PLR0917  fixtures
    run_task: RunTask, submit: Submit, spark: FakeSpark, connections: Callable[..., None],
    code: int, error: dict[str, Any],
) -> None:  # fmt: skip
    result = _after_a_change(run_task, submit(retries=5), spark, connections, exit=code, statuses=[error])

    assert result.state == "failed"
    assert "may change back" not in str(result.error)


@pytest.mark.usefixtures("often")
def test_a_change_that_nobody_took_back_in_time_needs_a_person(
    run_task: RunTask, submit: Submit, spark: FakeSpark, connections: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    task, denied = submit(retries=5), {"exit": 64, "statuses": [_failed("AuthenticationError")]}

    stopped = _after_a_change(run_task, task, spark, connections, **denied)
    monkeypatch.setitem(RETRIES, Trouble.MISTAKE, Retries(after_change=Retry(timedelta(0))))
    later = run_task(quick(task), again=True)

    assert stopped.state == "up_for_retry"
    assert later.state == "failed"


def test_a_change_may_be_taken_back_for_a_quarter_of_an_hour() -> None:
    from airflow_provider_sinks.operators.submit.retry_after_change import Change

    at, error = datetime(2026, 1, 2, tzinfo=UTC), AuthenticationError("denied").of("kafka_test")
    change = Change(("kafka_test",), at)
    page = (Path(__file__).parents[2] / "docs" / "errors.md").read_text()

    assert timedelta(minutes=15) == RETRIED_FOR
    assert change.excuses(error, at + RETRIED_FOR - timedelta(seconds=1))
    assert not change.excuses(error, at + RETRIED_FOR)
    assert "In the 15 minutes after a connection of a running sink changed" in page


@pytest.mark.usefixtures("often")
def test_a_sink_whose_connection_became_unusable_is_tried_again(
    run_task: RunTask, submit: Submit, spark: FakeSpark, connections: Callable[..., None]
) -> None:
    task = submit()
    _after_a_change(run_task, task, spark, connections, exit=69)
    connections(kafka_test={"conn_type": "kafka", "extra": {"bootstrap.server": "x"}})

    result = run_task(quick(task), again=True)

    assert result.state == "up_for_retry"
    assert 'did you mean "bootstrap.servers"?' in str(result.error)


@pytest.mark.usefixtures("often")
def test_a_sink_that_a_newer_start_fenced_is_not_tried_again(
    run_task: RunTask, submit: Submit, spark: FakeSpark, connections: Callable[..., None]
) -> None:
    fenced = {"exit": 66, "statuses": [status(state="fenced", run="")]}

    assert _after_a_change(run_task, submit(), spark, connections, **fenced).state == "failed"


# The thread by itself.


def _watch(read: Callable[[str], ConnectionOptions], restart: Callable[[tuple[str, ...]], None]) -> Any:
    from airflow_provider_sinks.operators.submit.connection_watch import ConnectionWatch

    launched = ResolvedConnections({"kafka": _options("a")})
    return ConnectionWatch(launched, read, 0.01, restart, cast("Any", logging.getLogger("task")))


def _options(server: str) -> KafkaOptions:
    return KafkaOptions.from_connection_extra({"bootstrap.servers": f"{server}:1"}, "kafka")


@pytest.mark.usefixtures("often")
def test_secrets_that_differ_at_every_read_change_nothing() -> None:
    read = iter(range(100_000))
    restarts: list[tuple[str, ...]] = []

    with _watch(lambda _: _options(f"host{next(read)}"), restarts.append):
        _wait_until(lambda: next(read) > 40)

    assert restarts == []


@pytest.mark.usefixtures("often")
def test_what_cannot_be_read_is_said_once_and_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    calls: list[str] = []
    restarts: list[tuple[str, ...]] = []

    def fail(conn_id: str) -> ConnectionOptions:
        calls.append(conn_id)
        raise UnavailableError("Airflow does not answer")

    with _watch(fail, restarts.append):
        _wait_until(lambda: len(calls) > 20)

    assert restarts == []
    assert [record.getMessage() for record in caplog.records] == [
        "connection kafka cannot be read now, so the sink goes on as it is: Airflow does not answer"
    ]


@pytest.mark.usefixtures("often")
def test_a_change_is_told_once() -> None:
    restarts: list[tuple[str, ...]] = []

    with _watch(lambda _: _options("b"), restarts.append) as watch:
        watch.join(5)

    assert restarts == [("kafka",)]


@pytest.mark.parametrize(
    ("answers", "changed"),
    [
        pytest.param(["a"], (), id="the same"),
        pytest.param(["b", "b"], ("kafka",), id="another, twice"),
        pytest.param(["b", "c"], (), id="another at each read"),
        pytest.param(["b", "a"], (), id="changed back"),
        pytest.param([None], (), id="unreadable"),
        pytest.param(["b", None], (), id="another, then unreadable"),
    ],
)
def test_before_a_task_waits_in_the_triggerer_the_same_rule_is_asked_once_more(
    answers: list[str | None], changed: tuple[str, ...]
) -> None:
    from airflow_provider_sinks.operators.submit.connection_watch import changed_meanwhile

    left = iter(answers)

    def read(_: str) -> ConnectionOptions:
        if (server := next(left)) is None:
            raise UnavailableError("Airflow does not answer")
        return _options(server)

    assert changed_meanwhile(ResolvedConnections({"kafka": _options("a")}), read) == changed
    assert list(left) == []


def _wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)
