"""A DAG of Airflow with a misspelt argument."""

from airflow_provider_sinks import Sink, sink_dag

sink = Sink(name="scheduled", source="k/scheduled", target="k/scheduled-out")
dag = sink_dag(sink, shedule="@hourly")  # planted: unknown-option
