"""A DAG of Airflow with a sink that no constructor looked at."""

from airflow.sdk import DAG

from airflow_provider_sinks.operators.submit_sink_job import SubmitSinkJobOperator

with DAG("by_hand", schedule=None):
    SubmitSinkJobOperator(  # planted: invalid-sink
        task_id="submit",
        sink={"name": "by_hand", "source": "k/by-hand", "target": "k/by hand"},
    )
