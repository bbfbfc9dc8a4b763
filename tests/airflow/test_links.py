"""Links on the page of a task, while it runs and after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from airflow_provider_sinks.links import asset_url, history_url
from tests.airflow.fakes import FakeSpark, status
from tests.support import until

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from tests.airflow_side import RunTask, Submit

SPARK = {"conn_type": "spark", "host": "local[2,4]", "extra": {"history-server": "http://history:18080/"}}


def _links(dag: DAG) -> dict[str, str]:
    """What Airflow's page shows."""
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session

    with create_session() as session:
        found = session.query(XComModel).filter_by(dag_id=dag.dag_id).all()
        return {row.key: XComModel.deserialize_value(row) for row in found if row.key.startswith("_link_")}


def test_each_link_is_there_once_it_is_known(
    run_task: RunTask, submit: Submit, spark: FakeSpark, dag: DAG, connections: Callable[..., None]
) -> None:
    connections(spark_default=SPARK)
    spark.play(statuses=[status(), status(spark_ui_url="http://worker:4040", spark_app_id="app-1")])

    result = run_task(submit())

    assert result.state == "success", result.error
    assert _links(dag) == {
        "_link_SparkUILink": "http://worker:4040",
        "_link_SparkHistoryLink": "http://history:18080/history/app-1/jobs/",
        "_link_SinkStatusLink": asset_url("orders"),
    }


def test_a_history_server_among_the_spark_settings_is_linked_too(
    run_task: RunTask, submit: Submit, spark: FakeSpark, dag: DAG
) -> None:
    spark.play(statuses=[status(spark_app_id="app-1")])

    run_task(submit(conf={"spark.yarn.historyServer.address": "history:18080"}))

    assert _links(dag)["_link_SparkHistoryLink"] == "http://history:18080/history/app-1/jobs/"


def test_a_link_is_there_while_the_task_runs(
    run_task: RunTask, submit: Submit, spark: FakeSpark, dag: DAG
) -> None:
    import threading

    seen: dict[str, str] = {}
    spark.play(wait=180, statuses=[status(spark_ui_url="http://worker:4040")])

    def look() -> None:
        until((spark.folder / "seen.json").exists, "the driver to run", 120)
        until(lambda: "_link_SparkUILink" in _links(dag), "the link", 120)
        seen.update(_links(dag))
        (spark.directory / "stop").touch()

    looking = threading.Thread(target=look)
    looking.start()
    run_task(submit())
    looking.join()

    assert seen["_link_SparkUILink"] == "http://worker:4040"
    assert seen["_link_SinkStatusLink"] == asset_url("orders")


def test_what_is_not_known_is_empty(run_task: RunTask, submit: Submit, spark: FakeSpark, dag: DAG) -> None:
    spark.play(statuses=[status(spark_app_id="app-1")])

    run_task(submit())

    assert _links(dag)["_link_SparkUILink"] == ""
    assert _links(dag)["_link_SparkHistoryLink"] == ""


def test_links_survive_serialisation(submit: Submit) -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    dag = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(submit().dag))

    assert sorted(dag.get_task("submit").extra_links) == ["Sink status", "Spark UI", "Spark history"]


@pytest.mark.parametrize(
    ("server", "application", "url"),
    [
        pytest.param("", "app-1", "", id="no-history-server"),
        pytest.param("http://history:18080", "", "", id="no-application"),
        pytest.param("http://h:1", "app-1", "http://h:1/history/app-1/jobs/", id="both"),
    ],
)
def test_the_history_is_linked_where_it_is_known(server: str, application: str, url: str) -> None:
    assert history_url(server, application) == url


def test_the_status_is_the_page_of_the_asset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example/prod/")

    assert asset_url("a b") == "https://airflow.example/prod/assets?name_pattern=sink%3Aa%20b"
