"""A DAG of Airflow that looks a connection up before any task runs."""

from airflow.sdk import BaseHook

from airflow_provider_sinks import Sink, sink_dag

host = BaseHook.get_connection("kafka_prod").host  # planted: connection
dag = sink_dag(Sink(name="connected", source="k/connected", target="k/connected-out", checkpoint=f"s3a://{host}"))
