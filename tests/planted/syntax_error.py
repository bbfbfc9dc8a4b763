"""A DAG of Airflow that Python cannot read."""

from airflow_provider_sinks import Sink, sink_dag

sink = Sink(name=, source="k/broken", target="k/broken-out")  # planted: import-error
dag = sink_dag(sink)
