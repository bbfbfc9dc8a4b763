"""A DAG of Airflow with a misspelt option."""

from airflow_provider_sinks import Sink, kafka, sink_dag

sink = Sink(  # planted: unknown-option
    name="misspelt",
    source="k/misspelt",
    target=kafka("k", "misspelt-out", partitons=6),
)
dag = sink_dag(sink)
