"""Exactly-once streaming sinks for Airflow. Names here are loaded when they are first used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_sinks.assets import sink_assets
    from airflow_provider_sinks.connectors.delta.short import delta
    from airflow_provider_sinks.connectors.iceberg.short import iceberg
    from airflow_provider_sinks.connectors.kafka.short import kafka
    from airflow_provider_sinks.connectors.postgres.short import postgres
    from airflow_provider_sinks.connectors.spark_format.short import spark_format
    from airflow_provider_sinks.core.errors import SinkError
    from airflow_provider_sinks.core.spec.build import Sink
    from airflow_provider_sinks.core.spec.sink import SinkSpec
    from airflow_provider_sinks.dag.factory import SinkTaskGroup, sink_dag
    from airflow_provider_sinks.dag.yaml_files import dags_from_yaml
    from airflow_provider_sinks.provider_info import get_provider_info

__all__ = [
    "Sink",
    "SinkError",
    "SinkSpec",
    "SinkTaskGroup",
    "__version__",
    "dags_from_yaml",
    "delta",
    "get_provider_info",
    "iceberg",
    "kafka",
    "postgres",
    "sink_assets",
    "sink_dag",
    "spark_format",
]

__version__ = "0.1.0"

_HOME_OF = {
    "Sink": "core.spec.build",
    "SinkError": "core.errors",
    "SinkSpec": "core.spec.sink",
    "SinkTaskGroup": "dag.factory",
    "dags_from_yaml": "dag.yaml_files",
    "delta": "connectors.delta.short",
    "get_provider_info": "provider_info",
    "iceberg": "connectors.iceberg.short",
    "kafka": "connectors.kafka.short",
    "postgres": "connectors.postgres.short",
    "sink_assets": "assets",
    "sink_dag": "dag.factory",
    "spark_format": "connectors.spark_format.short",
}


def __getattr__(name: str) -> Any:
    """Load a name of the short API: nothing heavy is imported before it is needed."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
