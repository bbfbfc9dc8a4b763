"""A sink that runs in a real Airflow, in the hands of ``airflow sinks``: stopped, reset, started again."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from airflow_provider_sinks.local.airflow import AirflowStack
from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.stack import SPARK_MASTER
from tests.live.client_sink import client_arguments, client_sink
from tests.live.sinks_in_airflow import AirflowSink

_FILE = """
from airflow_provider_sinks import sink_dag

dag = sink_dag({sink!r}, spark_conn_id="spark_life", spark={spark!r})  # an airflow dag
"""


class EndlessSink(AirflowSink):
    """A sink whose DAG is the factory's, with a run that has no end."""

    def write_dag(self, dag_id: str) -> None:
        """Write the sink's DAG file."""
        assert dag_id == self.name
        spark = {name: value for name, value in self.arguments.items() if name != "spark_conn_id"}
        self.dag_file.write_text(_FILE.format(sink=self.sink(), spark=spark))


@pytest.fixture(scope="module", autouse=True)
def spark_connection(airflow: AirflowStack) -> None:
    airflow.add_connection("spark_life", "spark", host=SPARK_MASTER)


@pytest.fixture
def sink(airflow: AirflowStack, broker: KafkaBroker) -> AirflowSink:
    return client_sink(airflow, broker, "life", "spark_life")


def _sinks(sink: AirflowSink, verb: str, *options: str, code: int | None = 0) -> Any:
    """Run a command beside Airflow, as a person does on its machine; return what it printed."""
    command = [sys.executable, "-m", "airflow", "sinks", verb, sink.name, *options, "-o", "json"]
    environment = sink.airflow.environment
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert code in (None, done.returncode), f"{verb}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return json.loads(done.stdout) if done.stdout else done.stderr


def test_a_running_sink_is_paused_begun_anew_started_again_and_stays_exact(sink: AirflowSink) -> None:
    with sink.fed_all_the_time():
        sink.start()
        sink.wait_running(1)
        running = _sinks(sink, "status")
        refused = _sinks(sink, "reset", "--yes", code=65)

        _sinks(sink, "pause")
        sink.wait_no_driver()
        paused = _sinks(sink, "status", "--history")
        begun = _sinks(sink, "reset", "--data", "recreate", "--yes")

        _sinks(sink, "resume")
        again = sink.wait_running(2)
        _sinks(sink, "restart")
        sink.wait_running(3)
        _sinks(sink, "pause")
        sink.wait_no_driver()

    assert running["state"] == "running"
    assert "is not stopped" in refused
    assert paused["state"] == "paused"
    assert paused["history"][-1]["state"] == "paused"
    assert "announce generation 2" in begun["steps"][-1]
    assert again.generation == 2
    sink.demand_exact()


_SOON = """
from airflow_provider_sinks.core import dag_gone

dag_gone.LOOK_SECONDS, dag_gone.GONE_FOR_SECONDS = 1.0, {seconds}
"""


def _write_impatient(sink: AirflowSink, seconds: float) -> None:
    """Let the tasks of the sink's DAG believe sooner that it is gone for good."""
    sink.dag_file.write_text(sink.dag_file.read_text() + _SOON.format(seconds=seconds))


def test_a_sink_whose_dag_file_is_removed_is_an_orphan_and_ends_by_itself_or_by_command(
    airflow: AirflowStack, broker: KafkaBroker
) -> None:
    left, ended = (client_sink(airflow, broker, story, "spark_life") for story in ("left", "ended"))
    for sink, seconds in ((left, 30.0), (ended, 3600.0)):
        _write_impatient(sink, seconds)
    runs = [sink.start() for sink in (left, ended)]
    for sink in (left, ended):
        sink.wait_running(1)

    for sink in (left, ended):
        sink.dag_file.unlink()
    ended.wait_until(lambda: _sinks(ended, "status", code=None)["state"] == "orphaned", "the orphan", 120)
    _sinks(ended, "pause")
    for sink in (left, ended):
        sink.wait_no_driver(120)
    left.wait_task(runs[0], "skipped")
    # Airflow deletes the shown status within a minute; what is left is the witness.
    ended.wait_until(lambda: _sinks(ended, "status", code=None)["state"] == "stopped", "its rest", 120)

    assert airflow.task_states(runs[1])["submit"] == "failed"
    assert _sinks(ended, "status")["rows_total"] == ended.witness()["rows"]
    for sink in (left, ended):
        sink.demand_exact()


def test_an_endless_sink_is_resumed_the_moment_after_it_was_paused(
    airflow: AirflowStack, broker: KafkaBroker
) -> None:
    sink = EndlessSink(airflow, broker, "endless", client_arguments("spark_life"))
    sink.prepare(20)
    with sink.fed_all_the_time():
        airflow.unpause(sink.name)
        sink.wait_running(1)
        _sinks(sink, "pause")
        _sinks(sink, "resume")
        sink.wait_running(2)
        _sinks(sink, "pause")
        sink.wait_no_driver()

    assert [run["state"] for run in airflow.call("GET", f"dags/{sink.name}/dagRuns")["dag_runs"]] == [
        "failed",
        "failed",
    ]
    sink.demand_exact()
