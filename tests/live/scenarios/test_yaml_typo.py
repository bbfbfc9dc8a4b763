"""Two endless sinks in one YAML file, in a real Airflow: a typo in one, in both, and in the YAML itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_sinks.local.airflow import AirflowStack
from airflow_provider_sinks.local.airflow_rest_api import DagRun
from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.stack import SPARK_MASTER
from tests.live.client_sink import client_arguments
from tests.live.sinks_in_airflow import AirflowSink

_FILE = """
from airflow_provider_sinks import dags_from_yaml

globals().update(dags_from_yaml({yaml!r}, spark_conn_id="spark_yaml", spark={spark!r}))  # an airflow dag
"""


class YamlSink(AirflowSink):
    """A sink that has no file of its own."""

    def write_dag(self, dag_id: str) -> None:
        """Leave it to the file of all."""

    @property
    def dag(self) -> dict[str, Any]:
        """The DAG as Airflow shows it."""
        return dict(self.airflow.call("GET", f"dags/{self.name}"))

    @property
    def is_broken(self) -> bool:
        """Whether the DAG is the one that says what is wrong."""
        return "broken" in [tag["name"] for tag in self.dag["tags"]]

    def newest_run(self) -> DagRun:
        runs = self.airflow.call("GET", f"dags/{self.name}/dagRuns", order_by="-run_after")["dag_runs"]
        return DagRun(self.name, runs[0]["dag_run_id"])

    def wait_more_rows(self, launch: int) -> None:
        """Return when a launch has written rows that it had not written before."""
        before = self.wait_running(launch).rows
        self.wait_until(lambda: self.wait_running(launch).rows > before, f"launch {launch} to go on")


class YamlFile:
    """The file of some sinks, and the line of Python that reads it."""

    def __init__(self, airflow: AirflowStack, sinks: list[YamlSink]) -> None:
        self._sinks = sinks
        self._python = airflow.dags_folder / f"from_{sinks[0].name}.py"
        self._yaml = Path(self._python).with_suffix(".yaml")

    def write(self, *, typo_in: tuple[YamlSink, ...] = (), behind: str = "") -> None:
        """Write the file; return when Airflow has read it so."""
        entries = [{**sink.sink(), **({"tirgger": 1} if sink in typo_in else {})} for sink in self._sinks]
        self._yaml.write_text("sinks:\n" + "".join(f"  - {json.dumps(one)}\n" for one in entries) + behind)
        if not self._python.exists():
            spark = {
                name: value for name, value in self._sinks[0].arguments.items() if name != "spark_conn_id"
            }
            self._python.write_text(_FILE.format(yaml=str(self._yaml), spark=spark))
            return
        wanted = [bool(behind) or sink in typo_in for sink in self._sinks]
        self._sinks[0].wait_until(
            lambda: [sink.is_broken for sink in self._sinks] == wanted, "Airflow to read the file", 90
        )

    def remove(self) -> None:
        self._python.unlink()

    @property
    def import_errors(self) -> list[str]:
        """What Airflow lists as errors of the file."""
        told = self._sinks[0].airflow.call("GET", "importErrors", limit=100)["import_errors"]
        return [error["stack_trace"] for error in told if error["filename"].endswith(self._python.name)]

    @property
    def readings(self) -> list[str]:
        """What Airflow logged each time when it read the file."""
        logs = self._sinks[0].airflow.home.glob(f"logs/dag_processor/*-*/*/{self._python.name}.log")
        return max(logs).read_text().split("Filling up the DagBag")[1:]


@pytest.fixture(scope="module", autouse=True)
def spark_connection(airflow: AirflowStack) -> None:
    airflow.add_connection("spark_yaml", "spark", host=SPARK_MASTER)


@contextmanager
def two_running(airflow: AirflowStack, broker: KafkaBroker) -> Iterator[tuple[YamlFile, YamlSink, YamlSink]]:
    """Two sinks of one file that run."""
    arguments = client_arguments("spark_yaml")
    one, other = (YamlSink(airflow, broker, story, arguments) for story in ("typo", "neighbour"))
    file = YamlFile(airflow, [one, other])
    for sink in (one, other):
        sink.prepare(20)
    file.write()
    with one.fed_all_the_time(), other.fed_all_the_time():
        for sink in (one, other):
            airflow.unpause(sink.name)
        for sink in (one, other):
            sink.wait_running(1)
        yield file, one, other
        for sink in (one, other):
            airflow.call("PATCH", f"dags/{sink.name}", {"is_paused": True})
            if sink.drivers():
                sink.mark(sink.newest_run(), "failed")
            sink.wait_no_driver()
    file.remove()


def test_running_sinks_survive_a_typo_and_start_again_once_it_is_mended(
    airflow: AirflowStack, broker: KafkaBroker
) -> None:
    with two_running(airflow, broker) as (file, one, other):
        file.write(typo_in=(one,))
        listed = [one.dag["is_stale"], other.dag["is_stale"]]
        for sink in (one, other):
            sink.wait_more_rows(1)
        readings, errors = file.readings, file.import_errors

        file.write(behind="  - {name: [\n")
        for sink in (one, other):
            sink.wait_more_rows(1)
            assert airflow.task_states(sink.newest_run())["submit"] == "running"

        file.write(typo_in=(one,))
        ended = one.newest_run()
        one.mark(ended, "failed")
        one.wait_no_driver()
        airflow.wait_for_run(ended)
        again = airflow.call("POST", f"dags/{one.name}/dagRuns", {"logical_date": None})
        asked = DagRun(one.name, again["dag_run_id"])
        assert airflow.wait_for_run(asked) == "failed"
        said = airflow.task_log(asked, "validate")

        file.write()
        one.wait_running(2)
        other.wait_more_rows(1)

    assert listed == [False, False]
    assert errors == []
    assert max(reading.count('"level":"warning"') for reading in readings) == 1
    assert f"sinks[{one.name}].tirgger: is not known" in "".join(readings)
    assert "sinks[" in said
    assert 'tirgger: is not known (did you mean "trigger"?)' in said
    for sink in (one, other):
        sink.demand_exact()
