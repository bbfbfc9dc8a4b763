"""The table that a sink makes for its rows."""

from __future__ import annotations

from airflow_provider_sinks.connectors.iceberg.partitions import PartitionTerm
from airflow_provider_sinks.connectors.iceberg.spec import IcebergTarget
from airflow_provider_sinks.connectors.table_format.creation import CreateTable
from airflow_provider_sinks.core.decision.facts import Role


def data_table(target: IcebergTarget) -> CreateTable:
    """Return how the target is made, but for its columns, which the query tells."""
    return CreateTable(
        Role.DATA,
        target.table,
        key=target.key,
        partition_by=tuple(map(PartitionTerm.parse, target.partition_by)),
        properties=target.properties,
        not_set="" if target.create else "target.iceberg.create is not set.",
    )
