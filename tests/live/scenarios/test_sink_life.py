"""A sink that runs in a real Airflow, in the hands of ``airflow sinks``: stopped, reset, started again."""

from __future__ import annotations

import pytest

from airflow_provider_sinks.local.airflow import AirflowStack
from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.stack import SPARK_MASTER
from tests.live.airflow_sinks import airflow_sinks
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


def test_a_running_sink_is_paused_begun_anew_started_again_and_stays_exact(sink: AirflowSink) -> None:
    with sink.fed_all_the_time():
        sink.start()
        sink.wait_running(1)
        running = airflow_sinks(sink, "status")
        refused = airflow_sinks(sink, "reset", "--yes", code=65)

        airflow_sinks(sink, "pause")
        sink.wait_no_driver()
        paused = airflow_sinks(sink, "status", "--history")
        begun = airflow_sinks(sink, "reset", "--data", "recreate", "--yes")

        airflow_sinks(sink, "resume")
        again = sink.wait_running(2)
        airflow_sinks(sink, "restart")
        sink.wait_running(3)
        airflow_sinks(sink, "pause")
        sink.wait_no_driver()

    assert running["state"] == "running"
    assert "is not stopped" in refused
    assert paused["state"] == "paused"
    assert paused["history"][-1]["state"] == "paused"
    assert "announce generation 2" in begun["steps"][-1]
    assert again.generation == 2
    sink.demand_exact()


_SOON = """
from airflow_provider_sinks.core.lifecycle import dag_gone

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
    ended.wait_until(
        lambda: airflow_sinks(ended, "status", code=None)["state"] == "orphaned", "the orphan", 120
    )
    airflow_sinks(ended, "pause")
    for sink in (left, ended):
        sink.wait_no_driver(120)
    left.wait_task(runs[0], "skipped")
    # Airflow deletes the shown status within a minute; what is left is the witness.
    ended.wait_until(lambda: airflow_sinks(ended, "status", code=None)["state"] == "stopped", "its rest", 120)

    assert airflow.task_states(runs[1])["submit"] == "failed"
    assert airflow_sinks(ended, "status")["rows_total"] == ended.witness()["rows"]
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
        airflow_sinks(sink, "pause")
        airflow_sinks(sink, "resume")
        sink.wait_running(2)
        airflow_sinks(sink, "pause")
        sink.wait_no_driver()

    assert [run["state"] for run in airflow.call("GET", f"dags/{sink.name}/dagRuns")["dag_runs"]] == [
        "failed",
        "failed",
    ]
    sink.demand_exact()
