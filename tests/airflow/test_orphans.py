"""``airflow sinks`` and a sink whose DAG is gone: found by what runs and by what is remembered, and ended."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from airflow_provider_sinks.core.launch.files import LaunchFiles
from airflow_provider_sinks.core.launch.yarn import owner_tag, sink_tag
from airflow_provider_sinks.core.progress.witness import Witness
from airflow_provider_sinks.drivers.abandoned import DriverMark
from airflow_provider_sinks.drivers.launch_folders import new_directory
from tests.airflow.desk import Define, Desk
from tests.airflow.fake_manager import fake_manager
from tests.airflow.fakes import IDENTITIES

_DRIVER = """
import sys, time
from pathlib import Path
print("up", flush=True)
while not (Path(sys.argv[1]) / "stop").exists():
    time.sleep(0.05)
"""
AT = "2026-11-22T05:00:00Z"
MEMORY = Witness(1, 7, 4200, {0: 9}, IDENTITIES, "us", 3, AT).to_json()


@pytest.fixture
def driver(desk: Desk) -> Iterator[subprocess.Popen[str]]:
    """A process of this machine that runs in a launch directory of the desk's sink."""
    files = LaunchFiles(new_directory(desk.sink, 3))
    command = [sys.executable, "-c", _DRIVER, str(files.directory)]
    process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    DriverMark.of(process.pid).write(files)
    yield process
    process.kill()
    process.communicate()


def lose_dag(desk: Desk) -> None:
    """Do what Airflow does when a DAG file is gone, and a minute later."""
    from airflow.jobs.scheduler_job_runner import SchedulerJobRunner
    from airflow.models.asset import remove_references_to_deleted_dags
    from airflow.models.dag import DagModel
    from airflow.utils.session import create_session

    with create_session() as session:
        session.query(DagModel).filter_by(dag_id=desk.sink).one().is_stale = True
        session.flush()
        remove_references_to_deleted_dags(session)
        session.flush()
        SchedulerJobRunner._update_asset_orphanage(
            SchedulerJobRunner.__new__(SchedulerJobRunner), session=session
        )


def remember(desk: Desk) -> None:
    """Leave the witness of a sink that ran."""
    body = {"key": f"sinks.{desk.sink}.witness", "value": MEMORY}
    desk.api.call("POST", "variables", body)


def run_it(desk: Desk) -> None:
    """Let a task of the sink run, with what it was rendered to."""
    from airflow.models.renderedtifields import RenderedTaskInstanceFields
    from airflow.models.taskinstance import TaskInstance
    from airflow.utils.session import create_session

    desk.start()
    with create_session() as session:
        instance = session.query(TaskInstance).filter_by(dag_id=desk.sink, run_id=desk.runs[-1]).one()
        rendered: dict[str, Any] = {"sink": json.dumps({"name": desk.sink}), "name": f"sink:{desk.sink}"}
        session.add(RenderedTaskInstanceFields(ti=instance, render_templates=False, rendered_fields=rendered))


def listed(desk: Desk, *options: str) -> dict[str, Any] | None:
    """Return the sink's row of ``list``."""
    rows = desk.run("list", *options, "-o", "json").data
    return next((row for row in rows if row["sink"] == desk.sink), None)


def test_a_task_that_runs_though_its_dag_is_gone_is_an_orphan_that_pause_ends(desk: Desk) -> None:
    run_it(desk)
    remember(desk)
    lose_dag(desk)

    row, status = listed(desk), desk.run("status", desk.sink, "-o", "json")
    paused = desk.run("pause", desk.sink, "-o", "json")
    left, again = listed(desk), desk.run("pause", desk.sink)

    assert row is not None
    assert (row["state"], row["task"], row["dags"], row["rows_total"]) == ("orphaned", "running", [], 4200)
    assert (status.code, status.data["epoch"]) == (70, 7)
    assert f"airflow sinks pause {desk.sink}" in status.data["hint"]
    assert [step.split()[0] for step in paused.data["steps"]] == ["end"]
    assert desk.task_states() == ["failed"]
    assert left is not None
    assert (left["state"], left["epoch"]) == ("stopped", 7)
    assert (again.code, desk.run("resume", desk.sink).code) == (0, 65)


def test_a_driver_that_lives_though_no_task_does_is_ended(desk: Desk, driver: subprocess.Popen[str]) -> None:
    lose_dag(desk)

    row = listed(desk)
    restarted = desk.run("restart", desk.sink)
    paused = desk.run("pause", desk.sink, "-o", "json")

    assert row is not None
    assert (row["state"], row["drivers"]) == ("orphaned", [f"process {driver.pid} of this machine"])
    assert (restarted.code, paused.code) == (65, 0)
    assert driver.wait(10) == 0
    assert listed(desk) is None  # nothing runs, and nothing is remembered


def test_a_driver_whose_task_is_over_is_ended_with_its_dag_too(
    desk: Desk, driver: subprocess.Popen[str]
) -> None:
    desk.unpause()

    paused = desk.run("pause", desk.sink, "-o", "json")

    assert [step.split()[:2] for step in paused.data["steps"]] == [["pause", "DAG"], ["end", "driver"]]
    assert driver.wait(10) == 0


def test_a_task_that_runs_though_its_dag_is_gone_is_ended_and_forgotten_by_drop(
    desk: Desk, driver: subprocess.Popen[str]
) -> None:
    run_it(desk)
    remember(desk)
    lose_dag(desk)
    before = listed(desk)

    dry = desk.run("drop", desk.sink, "--dry-run", "-o", "json")
    still = (desk.task_states(), driver.poll())
    dropped = desk.run("drop", desk.sink, "--yes", "-o", "json")
    again = desk.run("drop", desk.sink, "--yes")

    assert before is not None
    assert before["state"] == "orphaned"
    assert (dry.code, still) == (0, (["running"], None))
    assert dropped.code == 0
    assert [step.split()[0] for step in dropped.data["steps"]] == ["end", "end", "forget"]
    assert dry.data["steps"] == dropped.data["steps"]
    assert desk.task_states() == ["failed"]
    assert driver.wait(10) == 0
    assert listed(desk) is None  # nothing runs, and nothing is remembered
    assert again.code == 64


@pytest.mark.usefixtures("hasty")
def test_what_is_only_remembered_is_listed_and_can_be_dropped(desk: Desk) -> None:
    remember(desk)
    lose_dag(desk)

    row = listed(desk)
    dropped = desk.run("drop", desk.sink, "--yes")

    assert row is not None
    assert (row["state"], row["rows_total"], row["paused"]) == ("stopped", 4200, True)
    assert dropped.code == 0
    assert listed(desk) is None


def test_a_dag_whose_file_cannot_be_read_is_not_gone(desk: Desk) -> None:
    from airflow.models.dag import DagModel
    from airflow.models.errors import ParseImportError
    from airflow.utils.session import create_session

    run_it(desk)
    with create_session() as session:
        broken = session.query(DagModel).filter_by(dag_id=desk.sink).one()
        broken.is_stale = broken.has_import_errors = True
        place = {"filename": broken.relative_fileloc, "bundle_name": broken.bundle_name}
        session.add(ParseImportError(**place, stacktrace="SyntaxError", timestamp=datetime.now(UTC)))

    row = listed(desk)

    assert row is not None
    assert row["dags"] == [desk.sink]
    assert row["state"] != "orphaned"


@pytest.mark.parametrize("verb", ["pause", "drop"])
def test_a_driver_on_yarn_is_found_by_its_tags_and_one_of_another_airflow_is_not(
    desk: Desk, connections: Define, verb: str
) -> None:
    from airflow.models.variable import Variable

    Variable.set("sinks.owner", "us")
    with fake_manager() as manager:
        for number, owner in enumerate(("us", "them")):
            manager.run(f"application_1_{number}", sink_tag(desk.sink), owner_tag(owner, desk.sink))
        extra = {"deploy-mode": "cluster", "yarn_resourcemanager_webapp_address": manager.url}
        connections(yarn={"conn_type": "spark", "host": "yarn", "extra": extra})
        remember(desk)
        lose_dag(desk)

        without, row = listed(desk), listed(desk, "--yarn-conn-id", "yarn")
        ended = desk.run(verb, desk.sink, "--yes", "--yarn-conn-id", "yarn")
        left = listed(desk, "--yarn-conn-id", "yarn")

    assert without is not None
    assert without["state"] == "stopped"
    assert row is not None
    assert (row["state"], row["drivers"]) == ("orphaned", ["application_1_0 of YARN"])
    assert (ended.code, manager.killed) == (0, ["application_1_0"])
    assert (left is None) is (verb == "drop")  # a sink that is paused is remembered
