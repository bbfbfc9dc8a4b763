"""A DAG of Airflow that is another one each time it is read."""

import uuid

from airflow_provider_sinks import Sink, sink_dag

sink = Sink(name="unstable", source="k/unstable", target="k/unstable-out")
dag = sink_dag(sink, spark={"env_vars": {"RUN": str(uuid.uuid4())}})  # planted: unstable-dag
