"""The operator in cluster mode: a process plays `spark-submit`, and a test the resource manager."""

from __future__ import annotations

import json
import os
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_sinks.core.errors import Problem
from tests.airflow.fake_manager import FakeManager, fake_manager
from tests.airflow.fakes import SINK

if TYPE_CHECKING:
    from airflow.sdk.execution_time.supervisor import TaskRunResult

    from tests.airflow_side import RunTask, Submit

_CANARY = "canary-2718281828"
_SECRET = {
    "bootstrap.servers": "127.0.0.1:1",
    "security.protocol": "sasl_plaintext",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "me",
    "sasl.password": _CANARY,
}


@pytest.fixture
def manager(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connections: Callable[..., None]
) -> Iterator[FakeManager]:
    """A cluster whose drivers succeed soon, and a ``spark-submit`` for it on the PATH."""
    command = tmp_path / "bin" / "spark-submit"
    command.parent.mkdir()
    program = Path(__file__).with_name("fake_yarn_submit.py")
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{program}" "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_SEEN", str(tmp_path / "seen.json"))
    with fake_manager() as running:
        monkeypatch.setenv("FAKE_MANAGER", running.url)
        extra = {"deploy-mode": "cluster", "yarn_resourcemanager_webapp_address": running.url}
        connections(
            spark_default={"conn_type": "spark", "host": "yarn", "extra": extra},
            kafka_test={"conn_type": "kafka", "extra": _SECRET},
        )
        running.ends_after = 2
        yield running


def _sink(folder: Path, **changes: Any) -> dict[str, Any]:
    return {**SINK, "checkpoint": folder.as_uri(), **changes}


def _seen(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "seen.json").read_text()))


def test_a_driver_is_shipped_what_it_needs(
    run_task: RunTask, submit: Submit, manager: FakeManager, tmp_path: Path
) -> None:
    given = {"conf": {"spark.yarn.tags": "mine"}, "files": "lookup.csv", "py_files": "more.py"}

    result = run_task(submit(sink=_sink(tmp_path), poll_interval=1, **given))

    assert result.state == "success", result.error
    seen = _seen(tmp_path)
    argv = seen["argv"]
    options = dict(zip(argv[1::2], argv[2::2], strict=False))
    assert (options["--master"], options["--deploy-mode"]) == ("yarn", "cluster")
    assert seen["files"]["connections.json"] == "0o600"
    assert options["--files"].endswith("log4j2.properties,lookup.csv")
    assert options["--py-files"].endswith("airflow_provider_sinks.zip,more.py")
    assert argv[-3:] == [argv[-3], "--launch", "."]
    settings = [word for word in argv if word.startswith("spark.")]
    assert "spark.yarn.submit.waitAppCompletion=false" in settings
    assert "spark.yarn.maxAppAttempts=1" in settings
    assert any(word.startswith("spark.yarn.tags=mine,sink:orders,sinks-") for word in settings)
    assert (
        "spark.driver.extraJavaOptions=-Dlog4j2.configurationFile=log4j2.properties -XX:TieredStopAtLevel=1"
        in settings
    )
    assert seen["launch"]["status_uri"].startswith(f"{tmp_path.as_uri()}/orders/launches/")
    assert len(manager.apps) == 1


def test_the_place_of_the_status_can_be_chosen(
    run_task: RunTask, submit: Submit, manager: FakeManager, tmp_path: Path
) -> None:
    del manager
    elsewhere = (tmp_path / "elsewhere").as_uri()

    run_task(submit(sink=_sink(tmp_path), poll_interval=1, status_uri=elsewhere))

    assert _seen(tmp_path)["launch"]["status_uri"].startswith(f"{elsewhere}/orders/launches/")
    assert _seen(tmp_path)["launch"]["checkpoint_root"] == tmp_path.as_uri()


def test_a_sink_without_a_place_for_its_checkpoint_is_refused(
    run_task: RunTask, submit: Submit, manager: FakeManager
) -> None:
    result = run_task(submit())

    assert result.state == "failed"
    assert 'sink "orders" has no place for its checkpoint' in str(result.error)
    assert manager.apps == {}


def test_secrets_travel_in_one_file_and_are_seen_nowhere_else(
    run_task: RunTask,
    submit: Submit,
    manager: FakeManager,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    del manager
    task = submit(sink=_sink(tmp_path), poll_interval=1)

    run_task(task)

    seen = _seen(tmp_path)
    assert seen["connections"]["kafka_test"]["kafka"]["sasl.password"] == _CANARY
    assert _CANARY not in json.dumps([seen["argv"], seen["launch"]])
    assert _CANARY not in json.dumps({name: repr(getattr(task, name)) for name in task.template_fields})
    assert _CANARY not in capfd.readouterr().out
    assert list((Path(os.environ["AIRFLOW_HOME"]) / "sinks").rglob("connections.json")) == []


@pytest.mark.parametrize(
    ("master", "why"),
    [
        pytest.param(
            "spark://m:7077", "spark: Spark's own master takes no Python application there", id="standalone"
        ),
        pytest.param(
            "k8s://https://m:6443",
            "k8s: this version cannot find it again there after its worker was lost",
            id="kubernetes",
        ),
    ],
)
def test_a_cluster_that_takes_no_driver_is_refused_with_the_reason(
    run_task: RunTask,
    submit: Submit,
    manager: FakeManager,
    connections: Callable[..., None],
    *,
    master: str,
    why: str,
) -> None:
    connections(spark_default={"conn_type": "spark", "host": master, "extra": {"deploy-mode": "cluster"}})

    result = run_task(submit(deferrable=True))

    assert result.state == "failed"
    assert f"the driver of a sink cannot run on {why}" in str(result.error)
    assert manager.asked == []


@pytest.fixture
def edited_during_the_submit(
    manager: FakeManager, connections: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> FakeManager:
    """The connection of a sink changes while its driver is submitted."""
    edited = {**_SECRET, "client.id": "edited"}
    run = manager.run

    def run_and_edit(*arguments: str) -> None:
        connections(kafka_test={"conn_type": "kafka", "extra": edited})
        run(*arguments)

    monkeypatch.setattr(manager, "run", run_and_edit)
    monkeypatch.setattr("airflow_provider_sinks.operators.submit.cluster_launch._POLITE_SECONDS", 0.1)
    return manager


def test_a_connection_that_changes_during_the_submit_is_followed_before_the_task_waits(
    run_task: RunTask,
    submit: Submit,
    edited_during_the_submit: FakeManager,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    sink = _sink(tmp_path, name="edited_meanwhile")

    result = run_task(submit(sink=sink, poll_interval=1, deferrable=True))

    assert result.state == "success", result.error
    assert capfd.readouterr().out.count("launch 2: connection kafka_test changed") == 1
    assert _seen(tmp_path)["connections"]["kafka_test"]["kafka"]["client.id"] == "edited"
    assert len(edited_during_the_submit.apps) == 2


# Its YAML breaks while a driver runs: the DAG is another, its task has no spec of its own any more.


@dataclass
class Breaking:
    """A sink whose first try lost sight of its driver, and whose YAML is broken since."""

    name: str
    run_task: RunTask
    manager: FakeManager
    options: Mapping[str, Any]

    def task(self) -> Any:
        """The task of the DAG that says what is wrong."""
        from airflow_provider_sinks.dag.broken import Broken, broken_dag

        problem = Problem(f"s.yaml: sinks[{self.name}].tirgger", "is not known", 'did you mean "trigger"?')
        return broken_dag(Broken("s.yaml", self.name, (problem,)), self.options).get_task("submit")

    def next_try(self, **how: Any) -> TaskRunResult:
        """Let Airflow try once more, with the broken YAML."""
        return self.run_task(self.task(), again=True, **how)

    def driver_ends(self) -> None:
        """Let the driver succeed when it has been looked at twice more."""
        app_id = next(iter(self.manager.apps))
        self.manager.ends_after = sum(app_id in asked for asked in self.manager.asked) + 2


@pytest.fixture(params=[False, True], ids=["waits-on-a-worker", "deferred"])
def breaking(
    request: pytest.FixtureRequest, run_task: RunTask, manager: FakeManager, tmp_path: Path
) -> Breaking:
    """A driver runs, and nobody looks at it."""
    from airflow_provider_sinks import sink_dag

    name = f"breaking_{uuid.uuid4().hex[:6]}"
    options: dict[str, Any] = {"spark": {"deferrable": request.param, "poll_interval": 1}}
    manager.ends_after = None
    submitted = manager.run

    def run_and_go_away(*arguments: str) -> None:
        submitted(*arguments)
        manager.broken = True

    manager.run = run_and_go_away  # type: ignore[method-assign, assignment]
    first = run_task(sink_dag(_sink(tmp_path, name=name), **options).get_task("submit"))
    manager.broken, manager.run = False, submitted  # type: ignore[method-assign]
    assert first.state == "up_for_retry", first.error
    return Breaking(name, run_task, manager, options)


_WRONG = 'tirgger: is not known (did you mean "trigger"?)'


def test_the_task_of_a_broken_sink_goes_on_with_the_driver_that_runs(breaking: Breaking) -> None:
    breaking.driver_ends()

    result = breaking.next_try()

    assert result.state == "success", result.error
    assert len(breaking.manager.apps) == 1
    assert breaking.manager.killed == []


def test_the_task_of_a_broken_sink_starts_nothing(breaking: Breaking) -> None:
    breaking.manager.end("FAILED", "FAILED", next(iter(breaking.manager.apps)))

    result = breaking.next_try()

    assert result.state == "failed"
    assert _WRONG in str(result.error)
    assert len(breaking.manager.apps) == 1


def test_the_task_of_a_broken_sink_that_was_cleared_leaves_no_driver(
    breaking: Breaking, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow_provider_sinks.operators.submit import cluster_site, cluster_task

    monkeypatch.setattr(cluster_task, "_POLITE_SECONDS", 0.1)
    monkeypatch.setattr(cluster_site, "clears", lambda _: -1)

    result = breaking.next_try()

    assert result.state == "failed"
    assert _WRONG in str(result.error)
    assert breaking.manager.killed == [*breaking.manager.apps]


def test_the_task_of_a_broken_sink_follows_its_connections(
    breaking: Breaking, connections: Callable[..., None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("airflow_provider_sinks.operators.submit.cluster_launch._POLITE_SECONDS", 0.1)
    connections(kafka_test={"conn_type": "kafka", "extra": {**_SECRET, "client.id": "edited"}})
    breaking.manager.ends_after = 3

    result = breaking.next_try()

    assert result.state == "success", result.error
    assert len(breaking.manager.apps) == 2
    assert _seen(tmp_path)["launch"]["spec"]["name"] == breaking.name
    assert _seen(tmp_path)["connections"]["kafka_test"]["kafka"]["client.id"] == "edited"


@pytest.mark.parametrize("breaking", [False], indirect=True, ids=["waits-on-a-worker"])
def test_the_task_of_a_broken_sink_takes_no_spec_that_somebody_wrote_into_its_notes(
    breaking: Breaking, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from airflow_provider_sinks.dag import broken_submit

    def forged(store: Any) -> Any:
        note = cluster_site.noted(store)
        assert note is not None
        sink = {**note.sink, "target": {"kafka": {**note.sink["target"]["kafka"], "topic": "forged"}}}
        return replace(note, sink=sink, connections={"kafka_test": "changed"})

    from airflow_provider_sinks.operators.submit import cluster_site

    monkeypatch.setattr(broken_submit, "noted", forged)
    breaking.manager.ends_after = 3
    monkeypatch.setattr("airflow_provider_sinks.operators.submit.cluster_launch._POLITE_SECONDS", 0.1)

    result = breaking.next_try()

    assert _WRONG in str(result.error)
    assert "forged" not in (tmp_path / "seen.json").read_text()


@pytest.mark.parametrize("breaking", [True], indirect=True, ids=["deferred"])
def test_the_task_of_a_broken_sink_whose_time_is_over_leaves_no_driver(
    breaking: Breaking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("airflow_provider_sinks.operators.submit.cluster_task._POLITE_SECONDS", 0.1)

    breaking.next_try(trigger_failed="Trigger timeout")

    assert breaking.manager.killed == [*breaking.manager.apps]
