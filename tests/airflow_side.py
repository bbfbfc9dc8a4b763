"""Airflow in this process: a home and an SQLite database of its own, and tasks run by its own task runner.

A conftest or test module that imports these fixtures calls :func:`use_home` before Airflow is imported.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.airflow.fakes import KAFKA, SINK, SPARK, FakeSpark

if TYPE_CHECKING:
    from airflow.sdk import DAG, BaseOperator
    from airflow.sdk.execution_time.supervisor import TaskRunResult

    from airflow_provider_sinks.operators.submit_sink_job import SubmitSinkJobOperator

HOME = Path(tempfile.mkdtemp(prefix="sinks airflow "))
atexit.register(shutil.rmtree, HOME, ignore_errors=True)

RunTask = Callable[..., "TaskRunResult"]
RunDag = Callable[["DAG"], dict[tuple[str, int], "str | None"]]
Submit = Callable[..., "SubmitSinkJobOperator"]


def use_home() -> None:
    """Give Airflow its home; to be called before anything imports it."""
    (HOME / "dags").mkdir(exist_ok=True)
    os.environ |= {
        "AIRFLOW_HOME": str(HOME),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(HOME / "dags"),
        "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "0",  # its alarm would put off pytest's own
    }


def tolerate_warnings(items: list[pytest.Item], folder: Path) -> None:
    """Airflow's own warnings are Airflow's; ours stay errors."""
    for item in items:
        if item.path.is_relative_to(folder):
            item.add_marker(pytest.mark.filterwarnings("default"), append=False)
            item.add_marker(pytest.mark.filterwarnings("error:::airflow_provider_sinks"), append=False)


@pytest.fixture(scope="session")
def airflow_db() -> None:
    """Make the metadata database."""
    from airflow.utils.db import initdb

    use_home()
    initdb()


@pytest.fixture
def run_task(request: pytest.FixtureRequest) -> RunTask:
    """Run one task of a DAG as Airflow does, with its database and triggers, and return how it ended.

    ``trigger_failed`` resumes it as Airflow does when its trigger did not ring: with the reason. ``again``
    makes the next try of the DAG's newest run, as a retry does.
    """
    request.getfixturevalue("airflow_db")

    def run(
        task: BaseOperator,
        conf: Mapping[str, Any] | None = None,
        trigger_failed: str = "",
        *,
        again: bool = False,
    ) -> TaskRunResult:
        return _run(task.dag, task, dict(conf or {}), trigger_failed, again=again)

    return run


@pytest.fixture
def run_dag(request: pytest.FixtureRequest) -> RunDag:
    """Run a whole DAG as ``airflow dags test`` does, mapped tasks too; return states by task and index."""
    request.getfixturevalue("airflow_db")

    def run(dag: DAG) -> dict[tuple[str, int], str | None]:
        from airflow.utils.session import create_session

        _process(dag)
        done = dag.test()
        with create_session() as session:
            found = done.get_task_instances(session=session)
            return {(instance.task_id, instance.map_index): instance.state for instance in found}

    return run


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Define Airflow connections for one test: ``connections(kafka_prod={"conn_type": "kafka", ...})``."""
    import json

    def define(**by_id: Mapping[str, Any]) -> None:
        for conn_id, fields in by_id.items():
            monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps(fields))

    return define


@pytest.fixture
def spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connections: Callable[..., None]) -> FakeSpark:
    """A ``spark-submit`` that plays a driver, and connections with which a sink can be submitted."""
    fake = FakeSpark(tmp_path)
    monkeypatch.setenv("PATH", f"{fake.install()}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_DRIVER", str(fake.script_file))
    connections(spark_default=SPARK, kafka_test=KAFKA)
    return fake


@pytest.fixture
def dag(request: pytest.FixtureRequest) -> Iterator[DAG]:
    """A DAG for the test's tasks."""
    from datetime import UTC, datetime

    from airflow.sdk import DAG

    name = "".join(letter if letter.isalnum() else "_" for letter in request.node.name)[:200]
    with DAG(name, schedule=None, start_date=datetime(2025, 1, 1, tzinfo=UTC)) as made:
        yield made


@pytest.fixture
def submit(dag: DAG) -> Submit:
    """Make the operator; retries let a failure that heals be told from one that does not."""
    from airflow_provider_sinks.operators.submit_sink_job import SubmitSinkJobOperator

    def make(**arguments: Any) -> SubmitSinkJobOperator:
        return SubmitSinkJobOperator(
            **{"task_id": "submit", "sink": SINK, "retries": 2, "dag": dag, **arguments}
        )

    return make


def xcom_of(dag_id: str) -> Any:
    """Return what the only task of a DAG that left anything left as its XCom, or None."""
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session

    with create_session() as session:
        found = session.query(XComModel).filter_by(dag_id=dag_id, key="return_value").one_or_none()
        return XComModel.deserialize_value(found) if found else None


def _run(
    dag: DAG, task: BaseOperator, conf: dict[str, Any], trigger_failed: str, *, again: bool
) -> TaskRunResult:
    from airflow.models.dagrun import DagRun, get_or_create_dagrun
    from airflow.sdk import timezone
    from airflow.sdk.definitions.dag import _run_task
    from airflow.serialization.serialized_objects import DagSerialization
    from airflow.utils.session import create_session
    from airflow.utils.state import TaskInstanceState
    from airflow.utils.types import DagRunTriggeredByType

    _process(dag)
    with create_session() as session:
        now = timezone.utcnow()
        newest = session.query(DagRun).filter_by(dag_id=dag.dag_id).order_by(DagRun.id.desc()).first()
        run = (
            newest
            if again and newest
            else get_or_create_dagrun(
                dag=DagSerialization.deserialize_dag(DagSerialization.serialize_dag(dag)),
                run_id=f"test-{now.isoformat()}",
                logical_date=now,
                data_interval=(now, now),
                run_after=now,
                start_date=now,
                conf=conf,
                triggered_by=DagRunTriggeredByType.TEST,
                triggering_user_name="test",
                session=session,
            )
        )
        instance = run.get_task_instance(task.task_id, session=session)
        assert instance is not None
        instance.try_number += 1
        instance.state = TaskInstanceState.SCHEDULED
        if trigger_failed:
            instance.next_method, instance.next_kwargs = "__fail__", {"error": trigger_failed}
        session.commit()
        result = _run_task(ti=instance, task=task, run_triggerer=True)
    assert result is not None
    return result


def _process(dag: DAG) -> None:
    """Write a DAG and its assets into the database, as a DAG processor does."""
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.dag_processing.collection import update_dag_parsing_results_in_db
    from airflow.serialization.serialized_objects import LazyDeserializedDAG
    from airflow.utils.session import create_session

    with create_session() as session:
        DagBundlesManager().sync_bundles_to_db(session=session)
        session.commit()
        dag.relative_fileloc = "test.py"
        parsed = [LazyDeserializedDAG.from_dag(dag)]
        update_dag_parsing_results_in_db("dags-folder", None, parsed, {}, None, set(), session=session)
