"""The local Airflow runs a DAG."""

from __future__ import annotations

from airflow_provider_sinks.local.airflow import AirflowStack

DAG = """
from airflow.sdk import dag, task

@dag(schedule=None)
def greeting():
    @task
    def greet():
        print("hello from a task")

    greet()

greeting()
"""


def test_an_airflow_runs_a_dag(airflow: AirflowStack) -> None:
    (airflow.dags_folder / "greeting.py").write_text(DAG)
    run = airflow.trigger("greeting")

    assert airflow.wait_for_run(run) == "success"
    assert "hello from a task" in airflow.task_log(run, "greet")
