"""Sinks that wait in the triggerer, their drivers on a real YARN, while their DAGs are lost.

By a typo in their YAML, or with their file. The triggerer believes sooner than usual that a DAG is gone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from airflow_provider_sinks.local.airflow import AirflowStack
from airflow_provider_sinks.local.airflow_rest_api import DagRun
from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.yarn import YarnCluster
from tests.live.airflow_sinks import airflow_sinks
from tests.live.cluster_sink import CONNECTION, ClusterSink
from tests.live.sinks_in_airflow import TASK

_WAIT_SECONDS = 240.0
_GONE_FOR_SECONDS = 90.0
_DEFERRED = {"deferrable": True}
_ON_YARN = ("--yarn-conn-id", CONNECTION)

_IMPATIENT = """
from airflow_provider_sinks.core.lifecycle import dag_gone

dag_gone.GONE_FOR_SECONDS, dag_gone.LOOK_OF_MANY_SECONDS = {seconds}, 5.0
"""

_FROM_YAML = """
from airflow_provider_sinks import dags_from_yaml

globals().update(dags_from_yaml({yaml!r}, spark_conn_id={conn_id!r}, spark={spark!r}))  # an airflow dag
"""


class YamlClusterSink(ClusterSink):
    """A sink that stands in a YAML file of its own."""

    def write_dag(self, dag_id: str) -> None:
        """Write both files."""
        assert dag_id == self.name
        self.write_yaml()
        spark = {**self.submits_with(), **self.arguments, "poll_interval": 1}
        text = _FROM_YAML.format(yaml=str(self._yaml), conn_id=CONNECTION, spark=spark)
        self.dag_file.write_text(text)

    def write_yaml(self, *, typo: bool = False) -> None:
        entry = {**self.sink(), **({"tirgger": 1} if typo else {})}
        self._yaml.write_text(json.dumps({"sinks": [entry]}))

    def break_yaml(self) -> None:
        """Return when Airflow has read a typo."""
        self.write_yaml(typo=True)
        self.wait_until(lambda: self.is_broken, "Airflow to read the typo", 90)

    def mend_yaml(self) -> None:
        """Return when Airflow has read it without the typo."""
        self.write_yaml()
        self.wait_until(lambda: not self.is_broken, "Airflow to read the mended file", 90)

    @property
    def is_broken(self) -> bool:
        """Whether the DAG is the one that says what is wrong."""
        dag = self.airflow.call("GET", f"dags/{self.name}")
        return "broken" in [tag["name"] for tag in dag["tags"]]

    @property
    def newest_run(self) -> DagRun:
        runs = self.airflow.call("GET", f"dags/{self.name}/dagRuns", order_by="-run_after")["dag_runs"]
        return DagRun(self.name, runs[0]["dag_run_id"])

    @property
    def _yaml(self) -> Path:
        return self.dag_file.with_suffix(".yaml")


@pytest.fixture(scope="module", autouse=True)
def impatient(airflow: AirflowStack, yarn: YarnCluster) -> Iterator[None]:
    """A triggerer that believes soon that a DAG is gone, and the connection to the cluster."""
    extra = {"deploy-mode": "cluster", "yarn_resourcemanager_webapp_address": yarn.url}
    airflow.add_connection(CONNECTION, "spark", host="yarn", extra=extra)
    settings = airflow.home / "config" / "airflow_local_settings.py"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(_IMPATIENT.format(seconds=_GONE_FOR_SECONDS))
    _restart_triggerer(airflow)
    yield
    settings.unlink()
    _restart_triggerer(airflow)
    airflow.call("DELETE", f"connections/{CONNECTION}")


def _restart_triggerer(airflow: AirflowStack) -> None:
    triggerer = airflow.services["triggerer"]
    triggerer.kill()
    triggerer.start()


def test_a_typo_in_its_yaml_neither_ends_nor_loses_a_sink_that_comes_back_from_the_triggerer(
    airflow: AirflowStack, broker: KafkaBroker, yarn: YarnCluster, tmp_path: Path
) -> None:
    sink = YamlClusterSink(airflow, broker, "typo", _DEFERRED, yarn=yarn, folder=tmp_path)
    sink.prepare(rows=20)
    with sink.fed_all_the_time():
        airflow.unpause(sink.name)
        sink.wait_running(1)
        run = sink.newest_run
        airflow.wait_for_task(run, TASK, "deferred", _WAIT_SECONDS)

        sink.break_yaml()
        sink.change_connection(**{"client.id": "edited"})  # the trigger rings, and a worker reads the DAG
        sink.wait_running(2)
        airflow.wait_for_task(run, TASK, "deferred", _WAIT_SECONDS)
        said = airflow.task_log(run, TASK)

        sink.mend_yaml()
        airflow.call("PATCH", f"dags/{sink.name}", {"is_paused": True})
        sink.mark(run, "failed")
        sink.wait_no_driver()

    assert 'tirgger: is not known (did you mean "trigger"?)' in said
    assert f"launch 2: connection {sink.conn_id} changed" in said
    assert len(sink.applications()) == 2
    sink.dag_file.unlink()
    sink.demand_exact()


def test_a_sink_whose_dag_file_is_removed_is_an_orphan_and_ends_by_itself_or_by_command(
    airflow: AirflowStack, broker: KafkaBroker, yarn: YarnCluster, tmp_path: Path
) -> None:
    make = partial(ClusterSink, airflow, broker, yarn=yarn, folder=tmp_path)
    left, ended = (make(story, _DEFERRED) for story in ("left", "ended"))
    for sink in (left, ended):
        sink.prepare(rows=20)
    runs = [sink.start() for sink in (left, ended)]
    for sink, run in zip((left, ended), runs, strict=True):
        sink.wait_running(1)
        airflow.wait_for_task(run, TASK, "deferred", _WAIT_SECONDS)

    for sink in (left, ended):
        sink.dag_file.unlink()
    ended.wait_until(lambda: _state(ended) == "orphaned", "the orphan")
    left.change_connection(**{"client.id": "edited"})  # no worker would come to follow it
    airflow_sinks(ended, "pause", *_ON_YARN)
    ended.wait_no_driver()
    left.wait_no_driver(_WAIT_SECONDS)
    left.wait_task(runs[0], "skipped")

    assert airflow.task_states(runs[1])[TASK] == "failed"
    assert "the DAG is gone for good: ending driver" in airflow.task_log(runs[0], TASK)
    for sink in (left, ended):
        assert len(sink.applications()) == 1
        sink.demand_exact()


def _state(sink: ClusterSink) -> str:
    return str(airflow_sinks(sink, "status", *_ON_YARN, code=None)["state"])
