"""A DAG of Airflow that needs a module which nobody installed."""

import module_that_nobody_installed  # planted: import-error

from airflow_provider_sinks import Sink, sink_dag

dag = sink_dag(Sink(name="homeless", source="k/homeless", target="k/homeless-out"))
