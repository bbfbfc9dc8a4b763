"""Tasks mapped over sinks or connections: what Airflow knows of them, and what it remembers where."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from tests.airflow.fakes import SINK, FakeSpark, status

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from tests.airflow_side import RunDag


@pytest.fixture
def sinks() -> list[dict[str, Any]]:
    """Two sinks of the test's own."""
    return [{**SINK, "name": f"mapped_{uuid.uuid4().hex[:8]}"} for _ in range(2)]


def events(sink: dict[str, Any]) -> list[tuple[int | None, int | None]]:
    """Return the events of a sink's asset: map index, and rows in total."""
    from airflow.models.asset import AssetEvent, AssetModel
    from airflow.utils.session import create_session

    with create_session() as session:
        asset = session.query(AssetModel).filter_by(name=f"sink:{sink['name']}").one_or_none()
        found = session.query(AssetEvent).filter_by(asset_id=asset.id).all() if asset else []
        return [(event.source_map_index, event.extra.get("rows_total")) for event in found]


def remembered(sink: dict[str, Any]) -> tuple[int | None, int | None]:
    """Return the epoch in the Variable, and in the store of the asset."""
    from airflow.models.asset import AssetModel
    from airflow.models.asset_state_store import AssetStateStoreModel
    from airflow.models.variable import Variable
    from airflow.utils.session import create_session

    with create_session() as session:
        asset = session.query(AssetModel).filter_by(name=f"sink:{sink['name']}").one_or_none()
        query = session.query(AssetStateStoreModel).filter_by(key="witness")
        stored = query.filter_by(asset_id=asset.id).one_or_none() if asset else None
        variable = Variable.get(f"sinks.{sink['name']}.witness", None)
        return _epoch(variable), _epoch(stored.value if stored else None)


def _epoch(witness: str | None) -> int | None:
    return int(json.loads(witness)["epoch"]) if witness else None


def test_with_named_assets_each_sink_has_its_events_and_both_copies_of_its_memory(
    run_dag: RunDag, dag: DAG, spark: FakeSpark, sinks: list[dict[str, Any]]
) -> None:
    from airflow_provider_sinks import sink_assets
    from airflow_provider_sinks.operators.submit_sink_job import SubmitSinkJobOperator

    spark.play(statuses=[status(state="stopped", epoch=3, rows_total=40)])
    SubmitSinkJobOperator.partial(task_id="submit", outlets=sink_assets(sinks), dag=dag).expand(sink=sinks)

    states = run_dag(dag)

    assert states == {("submit", 0): "success", ("submit", 1): "success"}
    assert [events(sink) for sink in sinks] == [[(0, 40)], [(1, 40)]]
    assert [remembered(sink) for sink in sinks] == [(3, 3), (3, 3)]


def test_without_them_the_variable_remembers_alone_and_the_next_launch_knows_it(
    run_dag: RunDag, dag: DAG, spark: FakeSpark, sinks: list[dict[str, Any]]
) -> None:
    from airflow_provider_sinks.operators.submit_sink_job import SubmitSinkJobOperator

    spark.play(statuses=[status(state="stopped", epoch=3, rows_total=40)])
    SubmitSinkJobOperator.partial(task_id="submit", dag=dag).expand(sink=sinks)

    run_dag(dag)
    run_dag(dag)

    assert [events(sink) for sink in sinks] == [[], []]
    assert [remembered(sink) for sink in sinks] == [(3, None), (3, None)]
    assert spark.seen["launch"]["number"] == 2
    assert spark.seen["launch"]["witness"]["epoch"] == 3


@pytest.mark.usefixtures("spark")
def test_one_report_for_each_connection(run_dag: RunDag, dag: DAG) -> None:
    from airflow_provider_sinks.operators.validate_connection import ValidateConnectionOperator

    ids = ["spark_default", "absent"]
    ValidateConnectionOperator.partial(task_id="validate", retries=0, dag=dag).expand(conn_id=ids)

    states = run_dag(dag)

    assert states == {("validate", 0): "success", ("validate", 1): "failed"}
    assert [report[0]["outcome"] for report in reports(dag)] == ["pass", "fail"]


@pytest.mark.usefixtures("spark")
def test_one_report_for_each_sink(run_dag: RunDag, dag: DAG) -> None:
    from airflow_provider_sinks.operators.validate_connection import ValidateConnectionOperator

    bad = [{**SINK, "source": f"absent{number}/in", "target": f"absent{number}/out"} for number in (1, 2)]
    ValidateConnectionOperator.partial(task_id="validate", retries=0, dag=dag).expand(sink=bad)

    run_dag(dag)

    failed = [[check["subject"] for check in report if check["outcome"] == "fail"] for report in reports(dag)]
    assert failed == [["absent1"], ["absent2"]]


def reports(dag: DAG) -> list[Any]:
    """Return the XComs of a DAG's only task, in the order of its instances."""
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session

    with create_session() as session:
        found = session.query(XComModel).filter_by(dag_id=dag.dag_id, key="return_value")
        return [XComModel.deserialize_value(xcom) for xcom in found.order_by(XComModel.map_index).all()]


def names(dag: DAG) -> list[str | None]:
    """Return what the pages call the instances of a DAG's only task, in their order."""
    from airflow.models.taskinstance import TaskInstance
    from airflow.utils.session import create_session

    with create_session() as session:
        found = session.query(TaskInstance).filter_by(dag_id=dag.dag_id)
        return [instance.rendered_map_index for instance in found.order_by(TaskInstance.map_index).all()]


def test_instances_are_named_by_their_sinks(
    run_dag: RunDag, dag: DAG, spark: FakeSpark, sinks: list[dict[str, Any]]
) -> None:
    from airflow_provider_sinks.operators.submit_sink_job import SubmitSinkJobOperator

    spark.play(statuses=[status(state="stopped")])
    SubmitSinkJobOperator.partial(task_id="submit", dag=dag).expand(sink=sinks)

    run_dag(dag)

    assert names(dag) == [sink["name"] for sink in sinks]


@pytest.mark.usefixtures("spark")
def test_failed_checks_of_connections_are_named_by_them_and_an_authors_own_name_counts(
    run_dag: RunDag, dag: DAG
) -> None:
    from airflow_provider_sinks.operators.validate_connection import ValidateConnectionOperator

    validate = ValidateConnectionOperator.partial(task_id="validate", retries=0, dag=dag)
    validate.expand(conn_id=["spark_default", "absent"])
    own = ValidateConnectionOperator.partial(
        task_id="zz_own", retries=0, dag=dag, map_index_template="of {{ task.conn_id }}"
    )
    own.expand(conn_id=["spark_default"])

    run_dag(dag)

    assert sorted(map(str, names(dag))) == ["absent", "of spark_default", "spark_default"]


def test_the_topics_of_each_sink_are_checked_under_its_name(
    run_dag: RunDag, dag: DAG, sinks: list[dict[str, Any]]
) -> None:
    from airflow_provider_sinks.sensors.check_topics import CheckTopicsSensor

    CheckTopicsSensor.partial(task_id="check", retries=0, dag=dag).expand(sink=sinks)

    run_dag(dag)  # no connection: each fails

    assert names(dag) == [sink["name"] for sink in sinks]


@pytest.mark.usefixtures("spark")
def test_a_task_that_is_not_mapped_has_no_such_name(run_dag: RunDag, dag: DAG) -> None:
    from airflow_provider_sinks.operators.validate_connection import ValidateConnectionOperator

    ValidateConnectionOperator(task_id="validate", conn_id="spark_default", dag=dag)

    run_dag(dag)

    assert names(dag) == [None]
