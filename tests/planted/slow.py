"""A DAG of Airflow that takes its time."""

import time

from airflow_provider_sinks import Sink, sink_dag

time.sleep(6)  # planted: slow
dag = sink_dag(Sink(name="slow", source="k/slow", target="k/slow-out"))
