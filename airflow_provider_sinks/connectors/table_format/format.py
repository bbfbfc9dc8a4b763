"""What a format of tables does for a run of a sink: :mod:`.publisher` and :mod:`.dead_letters` ask it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

from airflow_provider_sinks.connectors.epoch_writer import WriterFactory
from airflow_provider_sinks.connectors.table_format.errors import ElsewhereError
from airflow_provider_sinks.connectors.table_format.stage import Copy, StagedFile, StageFolder
from airflow_provider_sinks.connectors.table_format.state import Place, Standing, State
from airflow_provider_sinks.core.dead_letters.letter import Circumstances
from airflow_provider_sinks.core.evolution import Step
from airflow_provider_sinks.core.progress.record import ProgressRecord, WriterId

Table = TypeVar("Table")


@dataclass(frozen=True)
class Change:
    """What becomes of a table, as one snapshot that is committed once.

    :param state: the progress that is committed.
    :param writer: whose record comes with it; empty for none, as of a fence.
    :param record: that record.
    :param files: that become part of the table, as its format has them.
    :param steps: by which its columns are altered.
    """

    state: State
    writer: WriterId = ""
    record: ProgressRecord | None = None
    files: Sequence[Any] = field(default=(), repr=False)
    steps: Sequence[Step] = ()


Judge: TypeAlias = Callable[[Table, State | None, Place], Change | None]
"""Is given a table as it was just loaded, its progress, and the place of the snapshot to come; returns the
change, or nothing where there is nothing to do. Raises what forbids it."""


def noting(judge: Judge[Table], states: list[State | None]) -> Judge[Table]:
    """Return a judge that notes the progress that each attempt leaves a table with; the last one counts."""

    def noted(table: Table, state: State | None, place: Place) -> Change | None:
        change = judge(table, state, place)
        states.append(change.state if change else state)
        return change

    return noted


class TableFormat(ABC, Generic[Table]):
    """The tables of one sink, in one format. Safe for threads, as far as its client is."""

    @abstractmethod
    def load(self, name: str) -> Table:
        """Return a table as it is now.

        :raises MissingError: there is none.
        :raises HiddenError: this login may not see it.
        :raises UnavailableError: it could not be read.
        """

    @abstractmethod
    def state(self, table: Table) -> State | None:
        """Return the progress of the sink in a table; nothing where there is none.

        :raises ProgressFormatError: something else stands in its place.
        """

    @abstractmethod
    def standing(self, table: Table, place: Place | None) -> Standing:
        """Say whether a table stands on a snapshot."""

    @abstractmethod
    def publish(self, name: str, judge: Judge[Table]) -> bool:
        """Change a table; False where there was nothing to do.

        The change is committed by compare-and-set on the very table that was judged. Where somebody else was
        first, the table is loaded and judged again, as if it were the first time.

        :raises MissingError: there is no such table.
        :raises InDoubtError: no answer.
        :raises ProgressFormatError: the progress in it cannot be read.
        :raises UnavailableError: others are first again and again.
        """

    @abstractmethod
    def added(self, table: Table, staged: Iterable[StagedFile]) -> Sequence[Any]:
        """Return staged files as a change of a table takes them.

        :raises ElsewhereError: they were staged for another table, or for other columns.
        :raises KeyError: they are of a partitioning that the table does not have.
        :raises ValueError: likewise.
        """

    def strays(self, table: Table, staged: Iterable[StagedFile]) -> Sequence[StagedFile]:
        """Return those dead letters that lie where the table was before it was made anew at another place."""
        del table, staged
        return ()

    def copies(self, table: Table, stages: StageFolder, staged: Sequence[StagedFile]) -> Sequence[Copy]:
        """Return dead letters that lie in the folder of another table as copies in the folder of this one.

        Nothing is copied yet. Whoever takes away the other table's folder, or what nobody names in it, must
        take no letter from this one.

        :raises ElsewhereError: tables of this format take none of another one.
        """
        del table, stages
        if staged:
            raise ElsewhereError(f"{staged[0].path} is no file of the table.")
        return ()

    @abstractmethod
    def demand_as_begun(self, table: Table) -> None:
        """See that a data table takes files that were begun with the factory of this run.

        :raises JobFailedError: it was altered since; a start compares it anew.
        :raises RefusedError: it takes none of this sink any more.
        """

    @abstractmethod
    def referenced(self, tables: Iterable[Table], paths: Collection[str]) -> set[str]:
        """Return which of these files any snapshot of a table has: old ones are read too, for a while."""

    @abstractmethod
    def stages(self, table: Table) -> StageFolder:
        """Return where the sink's stages lie, beside its data table."""

    @abstractmethod
    def factory(
        self,
        run: str,
        circumstances: Circumstances,
        columns: Sequence[str],
        data: Table,
        dead: Table | None,
    ) -> WriterFactory:
        """Return what makes writers; :meth:`demand_as_begun` compares with these tables from then on.

        :param columns: of the query; none for all of the table.
        """

    @property
    def keeps_staged(self) -> bool:
        """Whether staged files of rows become part of the table; else it takes their rows, and not them."""
        return True
