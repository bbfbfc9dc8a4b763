"""Kafka as a kind of target: what its entry point leads to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sinks.connectors.base import HeldUp, Say
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.spec.sink import SinkSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from airflow_provider_sinks.connectors.kafka.connector import KafkaConnector


class KafkaKind:
    """See :class:`.base.ConnectorKind`."""

    writer_module = "airflow_provider_sinks.connectors.kafka.factory"

    def connect(
        self,
        spec: SinkSpec,
        connections: ResolvedConnections,
        read_seconds: float | None,
        held_up: HeldUp,
        say: Say,
    ) -> KafkaConnector:
        """Return the Kafka target of a sink; the client library is loaded now."""
        from airflow_provider_sinks.connectors.kafka.connector import KafkaConnector

        return KafkaConnector(spec, connections, read_seconds, held_up, say)

    def demand_fits(self, output: DataFrame, spec: SinkSpec) -> None:
        """Encode the columns, and throw the result away."""
        from airflow_provider_sinks.connectors.kafka.encoding import encode

        encode(output, spec.target.kafka, None)


KIND = KafkaKind()
