"""The part of a target of tables and snapshots that alters its data table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airflow_provider_sinks.connectors.table_format.types import SparkType
from airflow_provider_sinks.core.evolution import SchemaDiff, Step, columns_of
from airflow_provider_sinks.core.progress.record import ProgressRecord


@dataclass(frozen=True)
class TableEvolution:
    """See :class:`.schema_parts.SchemaEvolvable`.

    :param difference: compares a query's columns with the table's.
    :param alter: alters the table, and announces the run.
    """

    difference: Callable[[Mapping[str, SparkType]], SchemaDiff]
    alter: Callable[[Sequence[Step], ProgressRecord], None]

    def diff(self, output: Mapping[str, Any]) -> SchemaDiff:
        """Compare."""
        return self.difference(columns_of(output))

    def apply(self, steps: Sequence[Step], record: ProgressRecord) -> None:
        """Alter and announce."""
        self.alter(steps, record)
