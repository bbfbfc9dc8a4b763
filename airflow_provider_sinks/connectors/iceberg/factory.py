"""What the writers of one run have in common: it travels to executors inside of tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_provider_sinks.connectors.iceberg.layout import Layout
from airflow_provider_sinks.connectors.iceberg.stage import StageFolder
from airflow_provider_sinks.core.dead_letters.letter import Circumstances
from airflow_provider_sinks.core.progress.record import WriterId

if TYPE_CHECKING:
    from airflow_provider_sinks.connectors.iceberg.writer import IcebergEpochWriter


@dataclass(frozen=True)
class TablePlan:
    """How data files of one table are written.

    :param location: of the table.
    :param layout: its schema and partitioning.
    :param spec_id: the number of that partitioning.
    :param properties: of the table, those for writers.
    """

    location: str
    layout: Layout
    spec_id: int = 0
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class IcebergWriterFactory:
    """Makes the writers of one run.

    :param circumstances: where dead letters come from, but for the epoch.
    :param columns: those of the table that are written, in the order of the rows.
    :param key: rows of one key replace each other; none where rows are appended.
    :param data: the table of the rows.
    :param dead: the table of what is set aside.
    :param stages: where stages lie; holds the secrets of the storage.
    """

    sink: str
    run: str
    circumstances: Circumstances
    columns: tuple[str, ...]
    key: tuple[str, ...]
    data: TablePlan
    dead: TablePlan | None
    stages: StageFolder = field(repr=False)

    def prepare(self, writer: WriterId) -> IcebergEpochWriter:
        """Return a writer; the storage is reached with its first row."""
        from airflow_provider_sinks.connectors.iceberg.writer import IcebergEpochWriter

        return IcebergEpochWriter(self, writer)
