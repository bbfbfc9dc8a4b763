"""Three sinks in DAGs of Airflow that hand rows round for ever."""

from airflow_provider_sinks import Sink, sink_dag

one = sink_dag(Sink(name="one", source="k/first", target="k/second"))  # planted: cycle
two = sink_dag(Sink(name="two", source="k/second", target="k/third"))
three = sink_dag(Sink(name="three", source="k/third", target="k/first"))
