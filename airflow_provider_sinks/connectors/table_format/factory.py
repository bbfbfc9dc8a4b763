"""What the writers of one run have in common: it travels to executors inside of tasks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_provider_sinks.connectors.rows import DELETED
from airflow_provider_sinks.connectors.table_format.stage import StageFolder
from airflow_provider_sinks.core.dead_letters.letter import Circumstances
from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.progress.record import WriterId

if TYPE_CHECKING:
    from airflow_provider_sinks.connectors.table_format.data_files import Announce, DataFiles
    from airflow_provider_sinks.connectors.table_format.writer import StagingWriter


@dataclass(frozen=True, kw_only=True)
class StagingFactory(ABC):
    """Makes the writers of one run.

    :param circumstances: where dead letters come from, but for the epoch.
    :param columns: those of the table that are written, in the order of the rows.
    :param key: rows of one key replace each other; none where rows are appended.
    :param letter_columns: those of the table of dead letters; none without one.
    :param stages: where stages lie; holds the secrets of the storage.
    :param has_deletes: rows say whether they take their key away.
    """

    sink: str
    run: str
    circumstances: Circumstances
    columns: tuple[str, ...]
    key: tuple[str, ...]
    letter_columns: tuple[str, ...]
    stages: StageFolder = field(repr=False)
    has_deletes: bool = False

    @property
    @abstractmethod
    def location(self) -> str:
        """Where the files lie, for messages."""

    @property
    @abstractmethod
    def writes_keys(self) -> bool:
        """Whether the keys of rows that replace others are files of their own."""

    @property
    def taken(self) -> tuple[str, ...]:
        """The columns that a writer takes of each row."""
        return (*self.columns, DELETED) if self.has_deletes else self.columns

    @property
    def staged(self) -> tuple[str, ...]:
        """The columns that staged rows have: where no file has the keys alone, they say which are gone."""
        return self.columns if self.writes_keys else self.taken

    @abstractmethod
    def files(
        self, role: Role, names: tuple[str, ...], announce: Announce, *, is_of_keys: bool
    ) -> DataFiles[Any]:
        """Return the files of one writer for one table in one epoch."""

    def prepare(self, writer: WriterId) -> StagingWriter:
        """Return a writer; the storage is reached with its first row."""
        from airflow_provider_sinks.connectors.table_format.writer import StagingWriter

        return StagingWriter(self, writer)
