"""A DAG of Airflow whose topic stands in a Variable."""

from airflow.sdk import Variable

from airflow_provider_sinks import Sink, sink_dag

topic = Variable.get("topic", default="variable")  # planted: variable
dag = sink_dag(Sink(name="variable", source=f"k/{topic}", target="k/variable-out"))
