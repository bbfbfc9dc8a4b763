"""A DAG of Airflow that waits for what never comes."""

from threading import Event

from airflow_provider_sinks import Sink, sink_dag

Event().wait()  # planted: hangs
dag = sink_dag(Sink(name="waits", source="k/waits", target="k/waits-out"))
