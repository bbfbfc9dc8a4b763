"""One DAG for each sink that stands in ``sinks.yaml``."""

# [START from_yaml]
from pathlib import Path

from airflow_provider_sinks import dags_from_yaml

globals().update(dags_from_yaml(Path(__file__).with_name("sinks.yaml")))
# [END from_yaml]
