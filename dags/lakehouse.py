"""Four sinks of one YAML file into Kafka, Postgres, Iceberg and Delta; ``make demo`` kills each once."""

# [START lakehouse]
from pathlib import Path

from airflow_provider_sinks import dags_from_yaml

globals().update(dags_from_yaml(Path(__file__).with_name("lakehouse.yaml")))
# [END lakehouse]
