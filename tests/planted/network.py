"""A DAG of Airflow that asks the network which sinks there are."""

import urllib.request

from airflow_provider_sinks import Sink, sink_dag

try:
    names = urllib.request.urlopen("http://registry.example/sinks").read().decode().split()  # planted: network
except OSError:
    names = ["asked"]
for name in names:
    dag = sink_dag(Sink(name=name, source=f"k/{name}", target=f"k/{name}-out"))
