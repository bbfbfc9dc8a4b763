"""What strangers do to a whole Airflow: queries that read the worker, options that are not theirs to set.

Beside it a broker that falls silent, tasks that are mapped, a DAG file that is deleted.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from airflow_provider_sinks.local.airflow import AirflowStack
from airflow_provider_sinks.local.broker import KafkaBroker
from tests.faults import topics
from tests.live.airflow_sinks import airflow_sinks, listed
from tests.live.client_sink import client_arguments, client_sink
from tests.live.sinks_in_airflow import TASK, AirflowSink

_SPARK = "spark_of_strangers"
_SILENT_SECONDS = 45.0
_OWN_SECRETS = ("AIRFLOW__CORE__FERNET_KEY", "AIRFLOW__API_AUTH__JWT_SECRET", "AIRFLOW__API__SECRET_KEY")


@pytest.fixture(scope="module", autouse=True)
def spark_connection(airflow: AirflowStack) -> None:
    airflow.add_connection(_SPARK, "spark", host="local[1,4]")


@pytest.fixture(scope="module")
def silent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A broker that may be frozen."""
    with KafkaBroker.start(tmp_path_factory.mktemp("kafka")) as running:
        yield running


@pytest.fixture(scope="module")
def running(airflow: AirflowStack, silent: KafkaBroker) -> Iterator[AirflowSink]:
    """An endless sink that has written rows."""
    sink = client_sink(airflow, silent, "endless", _SPARK)
    run = sink.start()
    sink.wait_until(lambda: sink.airflow.task_states(run)[TASK] == "running", "the task to run")
    sink.wait_running(1)
    yield sink
    if sink.drivers():
        sink.mark(run, "failed")
        sink.wait_no_driver()


def test_what_a_driver_shows_holds_no_secret_of_airflow(airflow: AirflowStack, running: AirflowSink) -> None:
    secrets = [airflow.environment[name] for name in _OWN_SECRETS]
    (driver,) = running.drivers()
    family = [driver, *driver.children(recursive=True)]
    status = running.wait_running(1)
    environment = httpx.get(f"{status.spark_ui_url}/environment/", timeout=60).raise_for_status().text
    applications = f"{status.spark_ui_url}/api/v1/applications/{status.spark_app_id}/environment"
    control = _what_a_task_has(airflow)

    assert [hashlib.sha256(secret.encode()).hexdigest() in control for secret in secrets] == [True] * 3
    assert "PATH=" in _environment(driver)
    seen = {f"{process.name()} {process.pid}": _environment(process) for process in family}
    seen["Spark UI"] = environment
    seen["Spark UI, REST"] = httpx.get(applications, timeout=60).raise_for_status().text
    seen["log of the driver"] = running.launches[-1].driver_log.read_text()
    assert "spark.app.id" in seen["Spark UI"]
    assert [place for place, text in seen.items() if any(secret in text for secret in secrets)] == []
    assert [place for place, text in seen.items() if "AIRFLOW__" in text] == []


_CONTROL = """
import datetime
import hashlib
import os

from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk import DAG


def tell():
    print([hashlib.sha256(os.environ[name].encode()).hexdigest() for name in {names!r}])


with DAG({dag_id!r}, schedule=None, start_date=datetime.datetime(2025, 1, 1)):
    PythonOperator(task_id="tell", python_callable=tell)
"""


def _what_a_task_has(airflow: AirflowStack) -> str:
    """Return digests of what a task finds in its environment: what a driver would inherit."""
    dag_id = f"control_{uuid.uuid4().hex[:6]}"
    file = airflow.dags_folder / f"{dag_id}.py"
    file.write_text(_CONTROL.format(names=_OWN_SECRETS, dag_id=dag_id))
    run = airflow.trigger(dag_id)
    assert airflow.wait_for_run(run) == "success"
    file.unlink()
    return airflow.task_log(run, "tell")


def _environment(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.NoSuchProcess):
        return "\n".join(f"{name}={value}" for name, value in process.environ().items())
    return ""


def test_a_broker_that_is_frozen_for_45_s_is_waited_for_by_the_task_that_runs(
    silent: KafkaBroker, running: AirflowSink
) -> None:
    before = _task(running)
    running.feed(200)
    silent.pause()
    since = time.monotonic()
    try:
        running.wait_until(lambda: "waits_for" in running.shown(), "the status to say what it waits for")
        shown, told = running.shown(), airflow_sinks(running, "status", code=None)
        time.sleep(max(0.0, _SILENT_SECONDS - (time.monotonic() - since)))
    finally:
        silent.resume()
    running.feed(20)
    wanted = dict.fromkeys(range(2), running.fed)
    running.wait_until(lambda: _positions(running) == wanted, "all rows")

    assert f"Kafka at {silent.bootstrap}, silent for " in shown["waits_for"]
    assert (shown["state"], shown["error"]) == ("running", None)
    assert told["waits_for"].startswith("Kafka at ")
    assert before[0] == "running"
    assert _task(running) == before
    assert len(running.launches) == 1
    running.wait_until(lambda: "waits_for" not in running.shown(), "the status to say that it goes on")
    running.demand_exact(rows_min=2 * running.fed)


def _task(sink: AirflowSink) -> tuple[str, int]:
    """Return the state of the sink's task, and the number of its try."""
    (run,) = sink.airflow.call("GET", f"dags/{sink.name}/dagRuns")["dag_runs"]
    path = f"dags/{sink.name}/dagRuns/{run['dag_run_id']}/taskInstances/{TASK}"
    task = sink.airflow.call("GET", path)
    return task["state"], task["try_number"]


def _positions(sink: AirflowSink) -> dict[int, int]:
    status = sink.status(1)
    assert status is not None
    assert not status.state.is_final, str(status)
    return dict(status.positions)


_OF_CONF = """
import datetime

from airflow.sdk import DAG

from airflow_provider_sinks.operators.submit_sink_job import SubmitSinkJobOperator

with DAG({dag_id!r}, schedule=None, start_date=datetime.datetime(2025, 1, 1)):
    SubmitSinkJobOperator(task_id="submit", sink="{{{{ dag_run.conf['sink'] | tojson }}}}", **{arguments!r})
"""
_GETENV = "reflect('java.lang.System', 'getenv', 'AIRFLOW__CORE__FERNET_KEY')"


def test_a_query_that_asks_java_for_the_environment_is_refused_at_its_start(
    airflow: AirflowStack, broker: KafkaBroker
) -> None:
    """The sink comes from who triggers, so nobody could look at it when the DAG was read."""
    dag_id = f"of_conf_{uuid.uuid4().hex[:6]}"
    file = airflow.dags_folder / f"{dag_id}.py"
    file.write_text(_OF_CONF.format(dag_id=dag_id, arguments=client_arguments(_SPARK)))
    sink = AirflowSink(airflow, broker, "asks_java", {})
    bodies = [
        {**sink.sink(), "select": ["value", f"{_GETENV} AS key"]},
        {**sink.sink(), "where": f"{_GETENV} = value"},
        {**sink.sink(), "query": f"SELECT concat(value, {_GETENV}) AS value FROM source"},  # noqa: S608  refused
    ]

    runs = [airflow.trigger(dag_id, {"sink": body}) for body in bodies]
    ended = [airflow.wait_for_run(run) for run in runs]
    logs = [airflow.task_log(run, TASK) for run in runs]
    file.unlink()

    assert ended == ["failed"] * 3
    for log, place in zip(logs, ("select[1]", "where", "query"), strict=True):
        assert f"{place}: calls reflect(), which no query may" in log
        assert airflow.environment[_OWN_SECRETS[0]] not in log
    assert sink.launches == []


_MAPPED = """
import datetime

from airflow.sdk import DAG

from airflow_provider_sinks import sink_assets
from airflow_provider_sinks.operators.submit_sink_job import SubmitSinkJobOperator

SINKS = {sinks!r}
with DAG({dag_id!r}, schedule=None, start_date=datetime.datetime(2025, 1, 1)):
    submit = SubmitSinkJobOperator.partial(task_id="submit", outlets=sink_assets(SINKS), **{arguments!r})
    submit.expand(sink=SINKS)
"""


class SinkOfAFile(AirflowSink):
    """A sink whose DAG another file holds; it takes what is there and ends."""

    def write_dag(self, dag_id: str) -> None:
        """Leave it to the file of all."""

    def sink(self) -> dict[str, Any]:
        """The sink without a trigger."""
        return {name: value for name, value in super().sink().items() if name != "trigger"}


def test_mapped_tasks_are_named_by_their_sinks_and_a_normal_end_is_no_broken_pipe(
    airflow: AirflowStack, broker: KafkaBroker
) -> None:
    dag_id = f"mapped_{uuid.uuid4().hex[:6]}"
    sinks = [SinkOfAFile(airflow, broker, f"mapped{number}", {}) for number in range(2)]
    for sink in sinks:
        sink.prepare(20)
    file = airflow.dags_folder / f"{dag_id}.py"
    specs = [sink.sink() for sink in sinks]
    file.write_text(_MAPPED.format(dag_id=dag_id, sinks=specs, arguments=client_arguments(_SPARK)))

    run = airflow.trigger(dag_id)
    ended = airflow.wait_for_run(run)
    found = airflow.call("GET", f"{run.path}/taskInstances")["task_instances"]
    file.unlink()

    assert ended == "success", found
    names = {task["map_index"]: task["rendered_map_index"] for task in found}
    assert names == {index: sink.name for index, sink in enumerate(sinks)}
    for sink in sinks:
        (launch,) = sink.launches
        log = launch.driver_log.read_text()
        assert "epoch 1: 40 rows" in log
        assert [line for line in log.splitlines() if _is_noise(line)] == []
        sink.demand_exact(rows_min=40)


def _is_noise(line: str) -> bool:
    """Return whether a line tells of trouble; a sink that falls behind is in ``live/test_driver_log.py``."""
    return any(word in line for word in ("Broken pipe", "BrokenPipe", "Traceback", " ERROR "))


def test_an_orphan_that_runs_is_ended_and_forgotten_by_drop(
    airflow: AirflowStack, broker: KafkaBroker
) -> None:
    sink = client_sink(airflow, broker, "dropped", _SPARK)
    run = sink.start()
    sink.wait_running(1)
    sink.dag_file.unlink()
    sink.wait_until(
        lambda: airflow_sinks(sink, "status", code=None)["state"] == "orphaned", "the orphan", 180
    )

    row = listed(sink)
    dropped = airflow_sinks(sink, "drop", "--yes")
    sink.wait_no_driver(120)

    assert (row["state"], row["task"]) == ("orphaned", "running")
    assert dropped["steps"][0].startswith("end ")
    assert airflow.task_states(run)[TASK] == "failed"
    variables = airflow.call("GET", "variables", limit=1000)["variables"]
    assert [one["key"] for one in variables if sink.name in one["key"]] == []
    assert topics.read(sink.client, f"{sink.name}_out")  # its topics stay
    sink.demand_exact()


_WITH_OPTION = """
from airflow_provider_sinks import sink_dag

dag = sink_dag({sink!r}, dag_id={dag_id!r}, spark_conn_id="spark_default", spark={spark!r})  # an airflow dag
"""
_OF_JAVA = "('java.lang.System', 'getenv', 'AIRFLOW__CORE__FERNET_KEY') = value"
_REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "login": (
        {"checkpoint": "s3a://key:planted-secret@bucket/sinks"},
        {},
        "checkpoint: holds a login",
    ),
    "dots": ({"checkpoint": "/data/../etc"}, {}, "checkpoint: leads out of its folder by .."),
    "scheme": (
        {"checkpoint": "hfds://bucket/sinks"},
        {},
        "checkpoint: 'hfds' is no scheme of a file system (did you mean \"hdfs\"?)",
    ),
    "bound": (
        {"dead_letter": {"topic": "dead", "partitions": 10_001}},
        {},
        "dead_letter.partitions: 10,001 is more than 10,000",
    ),
    "conf": ({}, {"conf": {"spark.speculation": "true"}}, "spark.speculation"),
    "substitute": (
        {},
        {"conf": {"spark.sql.variable.substitute": "true"}},
        "spark.sql.variable.substitute",
    ),
    **{
        call: ({"where": f"{call}{_OF_JAVA}"}, {}, f"where: calls {call}(), which no query may")
        for call in ("reflect", "java_method", "try_reflect")
    },
    "parameter": (
        {"where": "value = ${env:HOME}"},
        {},
        "where: has a parameter, ${env:HOME}, that nobody gives a value",
    ),
}


def test_options_that_are_not_theirs_to_set_are_import_errors_that_name_them(
    airflow: AirflowStack, broker: KafkaBroker
) -> None:
    files: dict[str, Path] = {}
    for name, (spec, spark, _) in _REFUSED.items():
        sink = {**AirflowSink(airflow, broker, name, {}).sink(), **spec}
        files[name] = airflow.dags_folder / f"refused_{name}_{uuid.uuid4().hex[:6]}.py"
        files[name].write_text(_WITH_OPTION.format(sink=sink, dag_id=files[name].stem, spark=spark))

    watched = AirflowSink(airflow, broker, "watched", {})
    watched.wait_until(lambda: len(_import_errors(airflow, files)) == len(files), "the import errors", 120)
    errors = _import_errors(airflow, files)
    dags = [dag["dag_id"] for dag in airflow.call("GET", "dags", limit=100)["dags"]]
    for file in files.values():
        file.unlink()
    watched.wait_until(lambda: not _import_errors(airflow, files), "the files to be missed", 120)

    for name, (_, _, said) in _REFUSED.items():
        assert said in errors[name], name
    assert not {file.stem for file in files.values()} & set(dags)


def _import_errors(airflow: AirflowStack, files: dict[str, Path]) -> dict[str, str]:
    """Return what Airflow says of each of these files that it could not read."""
    told = airflow.call("GET", "importErrors", limit=100)["import_errors"]
    return {
        name: error["stack_trace"]
        for name, file in files.items()
        for error in told
        if error["filename"].endswith(file.name)
    }
