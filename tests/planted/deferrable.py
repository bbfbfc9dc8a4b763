"""A DAG of Airflow that would defer a driver which runs on the worker."""

from airflow_provider_sinks import Sink, sink_dag

sink = Sink(name="deferred", source="k/deferred", target="k/deferred-out")
dag = sink_dag(sink, spark={"deferrable": True, "deploy_mode": "client"})  # planted: deferrable
