"""The operator with a real process in the place of ``spark-submit``, run by Airflow's own task runner."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from tests.airflow.fakes import SINK, FakeSpark, status
from tests.support import until

if TYPE_CHECKING:
    from airflow.sdk.execution_time.supervisor import TaskRunResult

    from tests.airflow_side import RunTask, Submit

_STARTS_SECONDS = 120.0
"""Long enough for a program to start on a busy machine."""


def test_the_driver_is_told_what_to_do_in_a_private_directory(
    run_task: RunTask, submit: Submit, spark: FakeSpark
) -> None:
    result = run_task(submit(sink={**SINK, "name": "told"}, accept="code-1"))

    assert result.state == "success", result.error
    seen = spark.seen
    assert seen["directory_mode"] == "0o700"
    assert seen["connections_mode"] == "0o600"
    assert seen["launch"]["accept"] == "code-1"
    assert seen["launch"]["spec"]["name"] == "told"
    assert seen["launch"]["witness"] is None
    assert seen["connections"] == {"kafka_test": {"kafka": {"bootstrap.servers": "127.0.0.1:1"}}}
    assert "airflow_provider_sinks.zip" in seen["files"]


def test_spark_submit_is_called_as_the_provider_does(
    run_task: RunTask, submit: Submit, spark: FakeSpark
) -> None:
    run_task(submit(jars="kafka.jar", py_files="mine.py", conf={"spark.a": "b"}, name="mine"))

    argv = spark.seen["argv"]
    options = dict(zip(argv[1::2], argv[2::2], strict=False))
    assert options["--master"] == "local[2,4]"
    assert options["--jars"] == "kafka.jar"
    assert options["--name"] == "mine"
    assert options["--py-files"] == f"{spark.directory}/airflow_provider_sinks.zip,mine.py"
    assert "spark.a=b" in argv
    assert argv[-3].endswith("spark_jobs/sink_job.py")


def test_a_driver_gets_nothing_of_airflows_own_environment(
    run_task: RunTask, submit: Submit, spark: FakeSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AIRFLOW__A__KEY", "AIRFLOW_CONN_A", "AIRFLOW_VAR_A", "_AIRFLOW__A", "__AIRFLOW_A"):
        monkeypatch.setenv(name, "planted")
    monkeypatch.setenv("AWS_PROFILE", "of the worker")

    run_task(submit(env_vars={"HADOOP_CONF_DIR": "/etc/hadoop"}))

    environment = spark.seen["environment"]
    assert [name for name in environment if "AIRFLOW" in name] == []
    assert environment["AWS_PROFILE"] == "of the worker"
    assert environment["HADOOP_CONF_DIR"] == "/etc/hadoop"


def test_sparks_log_is_quiet_and_keeps_the_users_java_options(
    run_task: RunTask, submit: Submit, spark: FakeSpark
) -> None:
    run_task(submit(conf={"spark.driver.extraJavaOptions": "-Xss4m"}))

    option = next(word for word in spark.seen["argv"] if word.startswith("spark.driver.extraJavaOptions"))
    assert option.startswith("spark.driver.extraJavaOptions=-Xss4m -Dlog4j2.configurationFile=file://")


_FIRST_COMPILER = "-XX:TieredStopAtLevel=1"
_COPIES = "spark.sinks.copyWithoutSpark"
_JAVA = "spark.driver.extraJavaOptions"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({}, True, id="a-copy"),
        pytest.param({"conf": {_JAVA: "-Xss4m"}}, True, id="beside-the-users-options"),
        pytest.param({"sink": {**SINK, "where": "value IS NOT NULL"}}, False, id="rows-pass-through-it"),
        pytest.param({"conf": {_COPIES: "false"}}, False, id="rows-are-to-pass-through-it"),
        pytest.param({"conf": {_JAVA: "-XX:-TieredCompilation"}}, False, id="the-user-says-how-it-compiles"),
    ],
)
def test_a_drivers_jvm_that_sees_no_row_has_one_compiler(
    run_task: RunTask, submit: Submit, spark: FakeSpark, changes: dict[str, Any], expected: bool
) -> None:
    run_task(submit(**changes))

    option = next(word for word in spark.seen["argv"] if word.startswith(_JAVA))
    assert (_FIRST_COMPILER in option) is expected


@pytest.mark.parametrize(
    ("master", "expected"),
    [
        pytest.param("local[2,4]", True, id="this-machine"),
        pytest.param("spark://master:7077", False, id="a-cluster"),
    ],
)
def test_on_this_machine_the_driver_runs_with_airflows_python(master: str, expected: bool) -> None:
    from airflow_provider_sinks.hooks.spark import with_our_settings

    settings = with_our_settings({}, {}, master)

    assert (settings.get("spark.pyspark.python") == sys.executable) is expected


def test_a_python_that_the_user_chose_stays(
    run_task: RunTask, submit: Submit, spark: FakeSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/python")

    run_task(submit())

    assert "spark.pyspark.python" not in " ".join(spark.seen["argv"])


@pytest.mark.parametrize("code", [0, 65, 70])
def test_secrets_do_not_outlive_the_launch(
    run_task: RunTask, submit: Submit, spark: FakeSpark, code: int
) -> None:
    spark.play(exit=code, keep_connections=True)

    run_task(submit())

    assert not (spark.directory / "connections.json").exists()
    assert (spark.directory / "driver.log").exists()


@pytest.mark.parametrize(
    ("code", "state"),
    [
        pytest.param(64, "failed", id="configuration"),
        pytest.param(65, "failed", id="refused"),
        pytest.param(66, "failed", id="fenced"),
        pytest.param(69, "up_for_retry", id="unavailable"),
        pytest.param(70, "up_for_retry", id="failed"),
        pytest.param(1, "up_for_retry", id="any-other"),
    ],
)
def test_exit_codes_fail_or_retry_in_the_jobs_own_words(
    run_task: RunTask, submit: Submit, spark: FakeSpark, code: int, state: str
) -> None:
    error = {"kind": "X", "primary": "data topic is missing", "detail": "seen 5 rows", "hint": "accept=x-1"}
    spark.play(exit=code, statuses=[status(state="running"), status(state="failed", error=error)])

    result = run_task(submit())

    assert result.state == state
    assert str(result.error) == "data topic is missing\nDetail: seen 5 rows\nHint: accept=x-1"


def test_a_driver_that_says_nothing_is_quoted(run_task: RunTask, submit: Submit, spark: FakeSpark) -> None:
    spark.play(exit=1, print=["Exception in thread main", "ClassNotFoundException: kafka"])

    result = run_task(submit())

    assert 'the job of sink "orders" ended with exit code 1 and did not say why' in str(result.error)
    assert "ClassNotFoundException: kafka" in str(result.error)


def test_a_driver_that_dies_without_a_word_does_not_stay_running(
    run_task: RunTask, submit: Submit, spark: FakeSpark
) -> None:
    spark.play(exit=52, statuses=[status(state="running", rows_total=7)])

    result = run_task(submit())

    assert 'the driver or an executor of sink "orders" ran out of memory' in str(result.error)
    last = json.loads((spark.directory / "status.json").read_text())
    assert (last["state"], last["rows_total"]) == ("failed", 7)
    assert "spark.driver.memory" in last["error"]["hint"]


def test_the_task_log_has_a_line_for_each_state_and_none_of_sparks(
    run_task: RunTask, submit: Submit, spark: FakeSpark, capfd: pytest.CaptureFixture[str]
) -> None:
    epoch = status(state="running", epoch=12, rows=50_000, rows_per_second=41_200.4, lag={"0": 7})
    spark.play(
        statuses=[status(), epoch, status(state="stopped", epoch=12, rows=50_000)],
        print=["WARN NoisyClass: a flood"],
        pause=3,
    )

    run_task(submit())

    log = capfd.readouterr().out
    assert ": starting" in log
    assert "epoch 12: 50,000 rows, 41,200 rows/s, lag 7" in log
    assert "stopped, epoch 12: 50,000 rows" in log
    assert "a flood" not in log
    assert "a flood" in (spark.directory / "driver.log").read_text()


def test_the_outcome_is_xcom_and_goes_with_the_assets_event(
    run_task: RunTask, submit: Submit, spark: FakeSpark
) -> None:
    from airflow.models.asset import AssetEvent
    from airflow.utils.session import create_session

    spark.play(statuses=[status(state="stopped", epoch=2, rows=5, rows_total=8)])
    result = run_task(submit(sink={**SINK, "name": "counted"}))

    with create_session() as session:
        events = session.query(AssetEvent).all()
        extra = [event.extra for event in events if event.extra.get("sink") == "counted"]
    assert result.msg is not None
    outcome = {"sink": "counted", "launch": 1, "generation": 1, "epoch": 2, "rows": 5, "rows_total": 8}
    assert extra == [{**outcome, "dead_total": 0}]


def test_a_timeout_ends_the_driver_politely(run_task: RunTask, submit: Submit, spark: FakeSpark) -> None:
    spark.play(wait=60)

    result = _out_of_time(run_task, submit, spark)

    assert result.state == "up_for_retry"
    assert (spark.directory / "stop").exists()
    assert not _lives(spark.seen["pid"])


def _out_of_time(run_task: RunTask, submit: Submit, spark: FakeSpark) -> TaskRunResult:
    """Let the alarm of ``execution_timeout`` come as soon as the driver runs."""
    ringing = threading.Thread(
        target=_when_it_runs, args=[spark, lambda: os.kill(os.getpid(), signal.SIGALRM)]
    )
    ringing.start()
    result = run_task(submit(execution_timeout=timedelta(minutes=5)))
    ringing.join()
    return result


def test_airflow_ends_a_task_and_with_it_the_driver(
    run_task: RunTask, submit: Submit, spark: FakeSpark
) -> None:
    """Airflow sends SIGTERM to the task's process, and about five seconds later SIGKILL."""
    before = signal.getsignal(signal.SIGTERM)
    spark.play(wait=60, statuses=[status(state="running")])
    ending = threading.Thread(target=_terminate_when_it_runs, args=[spark])
    ending.start()

    started = time.monotonic()
    result = run_task(submit())
    signal.signal(signal.SIGTERM, before)

    ending.join()
    assert result.state == "up_for_retry"
    assert 'sink "orders" was stopped by Airflow' in str(result.error)
    assert not _lives(spark.seen["pid"])
    assert time.monotonic() - started < 30


@pytest.mark.parametrize(
    ("state", "newer", "fenced"),
    [
        pytest.param("running", False, True, id="ended-hard"),
        pytest.param("failed", False, True, id="failed"),
        pytest.param("stopped", False, False, id="ended-in-order"),
        pytest.param("fenced", False, False, id="taken-over"),
        pytest.param("running", True, False, id="the-next-launch-has-begun"),
    ],
)
def test_open_transactions_are_ended_unless_a_successor_does_it(  # noqa: PLR0917  fixtures and a row
    run_task: RunTask, submit: Submit, spark: FakeSpark, monkeypatch: pytest.MonkeyPatch,
    state: str, newer: bool, fenced: bool,
) -> None:  # fmt: skip
    from airflow_provider_sinks.connectors.kafka import open_transactions
    from airflow_provider_sinks.metadata.memory import SinkMemory

    calls: list[Any] = []
    monkeypatch.setattr(open_transactions, "abort_open_transactions", lambda *given: calls.append(given[2:4]))
    sink = {**SINK, "name": f"ended_{state}_{newer}"}
    spark.play(statuses=[status(state=state, writers=["driver", "p0"])], exit=1, pause=0.5)
    if newer:
        monkeypatch.setattr(SinkMemory, "newest_launch", lambda _: 2)

    run_task(submit(sink=sink))

    assert calls == ([("run", ("driver", "p0"))] if fenced else [])


def _when_it_runs(spark: FakeSpark, act: Callable[[], None]) -> None:
    until((spark.folder / "seen.json").exists, "the driver to run", _STARTS_SECONDS)
    act()


def test_a_task_whose_supervisor_is_gone_ends_its_driver(
    run_task: RunTask, submit: Submit, spark: FakeSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Airflow could not end it any more: the task would run on, and its driver with it."""
    supervisor = os.getppid()
    seen = spark.folder / "seen.json"
    monkeypatch.setattr(
        "airflow_provider_sinks.operators.submit.client_launch.os.getppid",
        lambda: 1 if seen.exists() else supervisor,
    )
    spark.play(wait=60, statuses=[status(state="running")])

    run_task(submit())

    assert (spark.directory / "stop").exists()
    until(lambda: not _lives(spark.seen["pid"]), "no driver", _STARTS_SECONDS)


def test_ending_a_task_asks_airflow_for_nothing(
    run_task: RunTask, submit: Submit, spark: FakeSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The signal may have come in the middle of a question to the supervisor: another one would hang."""
    from airflow.sdk.execution_time.comms import CommsDecoder

    from airflow_provider_sinks.operators.submit_sink_job import SubmitSinkJobOperator

    asked: list[object] = []
    ending = threading.Event()
    send, on_kill = CommsDecoder.send, SubmitSinkJobOperator.on_kill

    def record(comms: Any, message: Any) -> Any:
        if ending.is_set() and threading.current_thread() is threading.main_thread():
            asked.append(message)
        return send(comms, message)

    def watched(task: SubmitSinkJobOperator) -> None:
        ending.set()
        on_kill(task)
        ending.clear()

    monkeypatch.setattr(CommsDecoder, "send", record)
    monkeypatch.setattr(SubmitSinkJobOperator, "on_kill", watched)
    spark.play(wait=60, statuses=[status(state="running")])
    before = signal.getsignal(signal.SIGTERM)
    killing = threading.Thread(target=_terminate_when_it_runs, args=[spark])
    killing.start()
    run_task(submit())
    signal.signal(signal.SIGTERM, before)
    killing.join()

    assert asked == []
    assert not _lives(spark.seen["pid"])


def test_a_task_that_ends_before_its_driver_starts_none(
    run_task: RunTask, submit: Submit, spark: FakeSpark
) -> None:
    task = submit()
    task.on_kill()

    result = run_task(task)

    assert result.state == "up_for_retry"
    assert not (spark.folder / "seen.json").exists()


def _terminate_when_it_runs(spark: FakeSpark) -> None:
    until((spark.folder / "seen.json").exists, "the driver to run", _STARTS_SECONDS)
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGTERM)


def test_a_driver_that_does_not_listen_is_killed_with_its_children(
    run_task: RunTask, submit: Submit, spark: FakeSpark
) -> None:
    spark.play(wait=60, stubborn=True, child=True)

    _out_of_time(run_task, submit, spark)

    assert not _lives(spark.seen["pid"])
    assert not _lives(spark.seen["child"])


def _lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_no_secret_is_seen_anywhere(
    run_task: RunTask, submit: Submit, spark: FakeSpark, connections: Callable[..., None],
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    canary = "canary-3141592653"
    sasl = {
        "bootstrap.servers": "127.0.0.1:1",
        "security.protocol": "sasl_plaintext",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "me",
        "sasl.password": canary,
    }
    connections(kafka_test={"conn_type": "kafka", "extra": sasl})
    spark.play(exit=70, print=[f"sasl.password={canary}"])
    task = submit(sink={**SINK, "name": "secretive"})

    result = run_task(task)

    assert spark.seen["connections"]["kafka_test"]["kafka"]["sasl.password"] == canary  # it did travel
    rendered = json.dumps({name: repr(getattr(task, name)) for name in task.template_fields})
    for place in (
        " ".join(spark.seen["argv"]),
        rendered,
        str(result.error),
        capfd.readouterr().out,
        _database(),
    ):
        assert canary not in place


def _database() -> str:
    """Return everything that stands in Airflow's database."""
    import sqlite3

    with sqlite3.connect(Path(os.environ["AIRFLOW_HOME"]) / "airflow.db") as database:
        return "\n".join(database.iterdump())


@pytest.mark.usefixtures("spark")
def test_a_missing_spark_connection_is_an_error_and_not_yarn(run_task: RunTask, submit: Submit) -> None:
    result = run_task(submit(spark_conn_id="nowhere"))

    assert result.state == "failed"
    assert 'connection "nowhere" does not exist' in str(result.error)


@pytest.mark.usefixtures("spark")
def test_all_problems_of_all_connections_are_said_at_once(
    run_task: RunTask, submit: Submit, connections: Callable[..., None]
) -> None:
    connections(bad={"conn_type": "kafka", "extra": {"plugin.library.paths": "evil.so"}})
    sink = {"name": "broken", "source": "absent/a", "target": "bad/b"}

    result = run_task(submit(sink=sink))

    assert result.state == "failed"
    assert "absent: does not exist" in str(result.error)
    assert "plugin.library.paths: is refused: it loads native code" in str(result.error)


@pytest.mark.parametrize(
    "name", ["application", "application_args", "java_class", "properties_file", "conn_id"]
)
def test_owned_arguments_are_refused_with_the_reason(submit: Submit, name: str) -> None:
    from airflow_provider_sinks.core.errors import ConfigurationError
    from airflow_provider_sinks.operators.submit_sink_job import OWNED

    with pytest.raises(ConfigurationError) as caught:
        submit(**{name: "x"})

    assert f"{name}: {OWNED[name]}" in str(caught.value)


@pytest.mark.usefixtures("spark")
def test_a_driver_on_a_cluster_that_takes_none_is_refused(run_task: RunTask, submit: Submit) -> None:
    result = run_task(submit(deploy_mode="cluster"))

    assert result.state == "failed"
    assert "the driver of a sink cannot run on local" in str(result.error)


@pytest.mark.usefixtures("spark")
def test_a_worker_without_spark_is_told_so(
    run_task: RunTask, submit: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")

    result = run_task(submit())

    assert result.state == "failed"
    assert "spark-submit was not found on the PATH of this worker" in str(result.error)


def test_a_templated_sink_is_checked_when_it_runs(
    run_task: RunTask, submit: Submit, spark: FakeSpark
) -> None:
    sink = {**SINK, "target": "kafka_test/{{ dag_run.conf['topic'] }}"}

    good = run_task(submit(sink=sink), conf={"topic": "from-conf"})
    bad = run_task(submit(sink=sink, task_id="bad"), conf={"topic": "not a topic"})

    assert good.state == "success"
    assert spark.seen["launch"]["spec"]["target"]["kafka"]["topic"] == "from-conf"
    assert bad.state == "failed"
    assert "'not a topic' is not a valid topic name" in str(bad.error)
