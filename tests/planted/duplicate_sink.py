"""Two DAGs of Airflow that run one sink."""

from airflow_provider_sinks import Sink, sink_dag

sink = Sink(name="twice", source="k/twice", target="k/twice-out")
hourly = sink_dag(sink, dag_id="twice_hourly", schedule="@hourly")
daily = sink_dag(sink, dag_id="twice_daily", schedule="@daily")  # planted: duplicate-sink
