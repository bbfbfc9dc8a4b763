"""What one run publishes into the tables of its sink: its fence, its announcements, its epochs.

The order of an epoch, and why it is exactly once:

1. The rows become visible with their record, and with the names of the epoch's dead letters, by one change of
   the data table (:mod:`.publication`): the point of no return.
2. The dead letters are published in their own table, with the same record (:mod:`.dead_letters`). A driver
   that dies in between leaves their names in the data table. Whoever changes that table next publishes them
   first: a repeated commit, the next epoch, or the next start behind its fence.
3. The stages are removed. Whatever is left of them is swept by the next start.

Behind the first step nothing is rolled back, whatever fails there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Generic, TypeVar

from airflow_provider_sinks.connectors.base import Run, Say
from airflow_provider_sinks.connectors.epoch_writer import LostStageError, Token, WriterFactory
from airflow_provider_sinks.connectors.table_format import protocol
from airflow_provider_sinks.connectors.table_format.dead_letters import DeadLetters
from airflow_provider_sinks.connectors.table_format.errors import HiddenError, MissingError
from airflow_provider_sinks.connectors.table_format.format import Change, Judge, Table, TableFormat, noting
from airflow_provider_sinks.connectors.table_format.sink_tables import SinkTables
from airflow_provider_sinks.connectors.table_format.stage import Stage, StageFolder
from airflow_provider_sinks.connectors.table_format.state import Pending, Place, State, has_letters
from airflow_provider_sinks.connectors.table_format.sweep import sweep
from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.errors import FencedError, RefusedError, SinkError
from airflow_provider_sinks.core.evolution import Step
from airflow_provider_sinks.core.progress.record import (
    DRIVER,
    SINGLE_WRITER,
    ProgressFormatError,
    ProgressRecord,
)

Result = TypeVar("Result")


class Publisher(Generic[Table]):
    """One run of a sink, as its tables know it. Safe for threads, as far as their format is.

    :param tables: the format of its tables.
    :param say: told what a person should know although nothing stops.
    """

    def __init__(self, sink: SinkTables, tables: TableFormat[Table], run: Run, say: Say) -> None:
        self._sink = sink
        self._format = tables
        self._run = run
        self._say = say
        self._letters = DeadLetters(sink, tables, run.id, say)
        self._committed: frozenset[str] = frozenset()
        self._stages: StageFolder | None = None
        self._generation = 0
        self._known = protocol.NOWHERE

    def take(self) -> None:
        """Put this run in force in both tables, whoever was; then publish what a driver has left behind."""
        with suppress(MissingError):  # judged by the decision
            self._readable(lambda: self._format.publish(self._sink.data, self._taking))
        self.take_dead_letters()

    def take_dead_letters(self) -> None:
        """Put this run in force in the table of dead letters; then publish what a driver has left behind.

        :raises FencedError: a newer run is in force.
        """
        left: tuple[Pending | None, StageFolder | None] = None, None
        with suppress(MissingError):  # judged by the decision
            left = self._readable(self._left_behind)
        with suppress(MissingError):
            self._readable(lambda: self._letters.take(*left))

    def announce(self, record: ProgressRecord, steps: Sequence[Step] = ()) -> None:
        """Commit the driver's record; before, a table of dead letters that was made now gets what is pending.

        :param steps: by which the data table is altered in the same commit, or right before.
        :raises FencedError: a newer run is in force.
        """
        run, sink, known = self._run.id, self._sink.name, self._known
        self._generation = record.generation
        self._present(lambda: self._letters.keep(*self._left_behind()))

        def judge(table: Table, state: State | None, place: Place) -> Change | None:
            if state is not None:
                protocol.demand_in_force(sink, state, run, known)
            stands = self._format.standing(table, state.at if state else None)
            found = protocol.announced(sink, run, state, stands, record=record, at=place, known=known)
            return Change(found, DRIVER, record, steps=steps) if found else None

        self._publish(judge)

    def demand_in_force(self) -> None:
        """Raise :class:`FencedError` when a newer run took the sink; if an older has it, it was put back."""
        known = self._known  # before the table is loaded: an epoch may be committed meanwhile
        with suppress(MissingError, HiddenError, ProgressFormatError):  # the guard sees the first by itself
            table = self._format.load(self._sink.data)
            protocol.demand_in_force(self._sink.name, self._format.state(table), self._run.id, known)

    def demand_holds(self, name: str, table: Table) -> None:
        """See that this run is in force in one of its tables, as that was loaded.

        :raises FencedError: a newer run is.
        """
        known = self._letters.known if name == self._sink.dead_letter else self._known
        state = self._readable(lambda: self._format.state(table))
        protocol.demand_in_force(self._sink.name, state, self._run.id, known)

    def factory(self, columns: Sequence[str]) -> WriterFactory:
        """Return what makes writers of this run.

        :param columns: of the query; none for all of the table.
        """
        data = self._present(lambda: self._format.load(self._sink.data))
        name = self._sink.dead_letter
        dead = self._present(lambda: self._format.load(name)) if name is not None else None
        circumstances = self._run.circumstances(self._generation)
        return self._format.factory(self._run.id, circumstances, columns, data, dead)

    def commit(self, record: ProgressRecord, tokens: Sequence[Token]) -> int:
        """Publish an epoch, unless it is, and return of how many files it consists.

        :raises FencedError: another run, or another epoch, is in force.
        :raises LostStageError: what a token stands for is gone.
        :raises InDoubtError: no answer.
        """
        sink, run, known = self._sink.name, self._run.id, self._known
        found: list[Stage] = []

        def judge(table: Table, state: State | None, place: Place) -> Change | None:
            protocol.demand_in_force(sink, state, run, known)
            self._letters.tell(state.pending if state else None, self._stage_folder(table))
            stands, told = self._format.standing(table, state.at if state else None), self._letters.told
            new = protocol.published(
                sink, run, state, stands, record=record, at=place, told=told, known=known
            )
            if new is None:
                return None
            found[:] = self._staged(table, tokens)
            self._format.demand_as_begun(table)
            self._letters.demand_fit(found)
            files = self._format.added(table, [file for stage in found for file in stage.of(Role.DATA)])
            new = protocol.with_dead_letters(new, self._pending(record, found))
            return Change(new, SINGLE_WRITER, record, files)

        self._publish(judge)
        self._committed = frozenset(token.name for token in tokens)
        if (pending := self._pending(record, found)).stages:
            self._present(lambda: self._letters.keep(pending, self._stages))
        self._forget(found)
        return sum(len(stage.files) for stage in found)

    def _publish(self, judge: Judge[Table]) -> None:
        """Change the data table, and remember how far it is then."""
        states: list[State | None] = []
        self._present(lambda: self._format.publish(self._sink.data, noting(judge, states)))
        self._known = protocol.reached(states[-1])

    def _left_behind(self) -> tuple[Pending | None, StageFolder]:
        """Return the dead letters that are pending, and where stages lie. Nobody else can add to it any more.

        :raises FencedError: a newer run is in force: it publishes them, and nobody knows where.
        """
        known, data = self._known, self._format.load(self._sink.data)
        state = self._format.state(data)
        if state is not None:
            protocol.demand_in_force(self._sink.name, state, self._run.id, known)
        return state.pending if state is not None else None, self._stage_folder(data)

    def _pending(self, record: ProgressRecord, stages: Iterable[Stage]) -> Pending:
        named = tuple(stage.name for stage in stages if stage.of(Role.DEAD_LETTER))
        return Pending(record, named, self._sink.dead_letter or "")

    def rollback(self, tokens: Sequence[Token]) -> None:
        """Remove what tokens stand for, unless it is committed. Must not raise: what stays is swept."""
        for token in tokens:
            with suppress(Exception):
                stage = self._stages.read(self._run.id, token.name) if self._stages else None
                if self._stages is not None and stage is not None and not self._is_committed(stage):
                    self._stages.remove(stage, with_files=True)

    def sweep(self) -> None:
        """Remove what older runs staged. What cannot be removed now stays for the next start.

        :raises FencedError: a newer run is in force; nothing was removed.
        """
        try:
            removed = self._readable(self._swept)
        except FencedError:
            raise
        except SinkError as error:
            self._say(f"what older runs have staged stays: {error.primary}")
            return
        if removed:
            self._say(f"removed {removed} data files that older runs have staged and never published")

    def _swept(self) -> int:
        """Return how many files are swept. List first, load then: this run may stand still anywhere.

        Why nothing is removed that a table has, or will have:

        - A run takes the data table once, before its first stage. So of what was listed, each run had taken
          it before the load that follows.
        - Where this run is in force at that load, they all took it before this run did: none commits again.
          What they have committed, that load shows; what is pending of it is kept.
        - Whoever takes over behind the load stages behind the listing.
        """
        known, data = self._known, self._sink.data
        folder = self._stages or self._stage_folder(self._present(lambda: self._format.load(data)))
        left = list(folder.leftovers(but=self._run.id))
        tables = self._tables() if left else {}
        if Role.DATA not in tables:
            return 0
        state = self._format.state(tables[Role.DATA])
        protocol.demand_in_force(self._sink.name, state, self._run.id, known)
        pending = state.pending if state else None
        dead = self._format.state(tables[Role.DEAD_LETTER]) if Role.DEAD_LETTER in tables else None
        kept = pending.stages if pending and not has_letters(dead, pending) else ()
        left = [stage for stage in left if stage.name not in kept]
        return sweep(folder, left, lambda paths: self._format.referenced(tables.values(), paths))

    def _taking(self, table: Table, state: State | None, place: Place) -> Change | None:
        del table, place
        found = protocol.taken(state, self._run.id)
        return Change(found) if found else None

    def _is_committed(self, stage: Stage) -> bool:
        """Whether a stage is behind the point of no return. Asked before it is removed for good.

        Then the data table names it as pending, or a table has files of it. The data table is loaded first:
        what it does not name as pending any more is in the other table by then.
        """
        tables = self._tables()
        if stage.name in self._committed or len(tables) < len(self._sink.names):
            return True
        state = self._format.state(tables[Role.DATA])
        is_pending = state is not None and state.pending is not None and stage.name in state.pending.stages
        return is_pending or bool(
            self._format.referenced(tables.values(), {file.path for file in stage.files})
        )

    def _forget(self, stages: Iterable[Stage]) -> None:
        for stage in stages:
            with suppress(SinkError, OSError):  # the next start sweeps them
                if self._stages is not None:
                    rows = () if self._format.keeps_staged else stage.of(Role.DATA)
                    self._stages.remove(replace(stage, files=rows), with_files=True)

    def _tables(self) -> dict[Role, Table]:
        found: dict[Role, Table] = {}
        for role, name in self._sink.names.items():
            with suppress(MissingError):
                found[role] = self._format.load(name)
        return found

    def _staged(self, table: Table, tokens: Sequence[Token]) -> list[Stage]:
        stages = self._stage_folder(table)
        found = {token.name: stages.read(self._run.id, token.name) for token in tokens}
        if lost := [token.writer for token in tokens if found[token.name] is None]:
            raise LostStageError(
                f"what writer {lost[0]} staged is gone",
                f"{len(lost)} of {len(tokens)} stages, or files that they name, are not there.",
            )
        return [stage for stage in found.values() if stage is not None]

    def _stage_folder(self, table: Table) -> StageFolder:
        if self._stages is None:
            self._stages = self._format.stages(table)
        return self._stages

    def _present(self, act: Callable[[], Result]) -> Result:
        """Do something with a table that must be there.

        :raises RefusedError: it is not.
        """
        try:
            return self._readable(act)
        except MissingError as error:
            raise RefusedError(
                f'a table of sink "{self._sink.name}" is gone, or hidden', str(error), "Start the sink again."
            ) from error

    def _readable(self, act: Callable[[], Result]) -> Result:
        """Do something with a table that need not be there.

        :raises RefusedError: it is hidden from this login, or its progress cannot be read.
        """
        try:
            return act()
        except HiddenError as error:
            raise RefusedError(
                f'a table of sink "{self._sink.name}" is gone, or hidden', str(error), "Start the sink again."
            ) from error
        except ProgressFormatError as error:
            raise RefusedError(
                f'progress of sink "{self._sink.name}" cannot be read', str(error), "Start the sink again."
            ) from error
