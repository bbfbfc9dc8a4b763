"""A DAG of Airflow that brings an application of its own."""

from airflow_provider_sinks import Sink, sink_dag

sink = Sink(name="applied", source="k/applied", target="k/applied-out")
dag = sink_dag(sink, spark={"application": "job.py"})  # planted: owned-argument
