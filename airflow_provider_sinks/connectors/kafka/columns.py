"""The columns in which rows reach a Kafka writer."""

from __future__ import annotations

from airflow_provider_sinks.connectors.rows import COORDINATES, RAW

KEY = "__sinks_key"
VALUE = "__sinks_value"

WRITER_COLUMNS = (*COORDINATES, KEY, VALUE, *RAW)
"""Where the row comes from and why it did not parse; key and value for the target (binary); the source
record's own key and value, which are left out where the sink has no dead-letter topic."""
