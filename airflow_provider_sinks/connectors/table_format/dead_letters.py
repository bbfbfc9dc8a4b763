"""The table of dead letters, as one run of a sink changes it: behind the rows, and each epoch's letters once.

Nothing changes two tables together. So the change of the rows names the stages of the letters
(:class:`.state.Pending`), and here these become part of their own table, together with the epoch's record:
the record says that it is done. Nothing may forget what is pending before (:func:`.protocol.published`).

A table without any state of ours was made a moment ago, in the place of one that is gone. What was pending
may have been published in that one: there, and nowhere else, letters that are not to be found stop nobody. So
such a table is taken by the very change that publishes, and not before.

A sink may have another table since letters were set aside; then a third one, or the first again. Starts may
end, or stand still, anywhere. Why letters are in one table nevertheless, and there once:

- The data table names the one table in which they may be published. A start takes the data table, and reads
  that; it takes the table that is named, and its own, and looks into both. Only then, by a change of the data
  table which demands that the start is still in force there, it has its own table named. Then it publishes,
  by a change which demands that it is still in force in its own table.
- Of two starts the one that took the data table later reads what the other one has named, if that has come so
  far; else it never will. It takes the named table behind the other one, which took it before it had it
  named, and takes it once. So either the letters are in it by then, or the other one is too late for good.
- A start that wakes late may take a table of letters from a newer one, which ends for a retry. It publishes
  nothing there: it is not in force in the data table.

Files that were staged for one table lie in its folder. Another one gets copies in a folder of its own, under
a new stage, and that stage is what the data table names with it: whoever takes away the first table's folder,
or what nobody names in it, takes nothing from the second. The first files stay where they are. A copy that
nobody came to name is swept as any other stage.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, Generic

from airflow_provider_sinks.connectors.base import Say
from airflow_provider_sinks.connectors.table_format import letter_refusals, protocol
from airflow_provider_sinks.connectors.table_format.errors import ElsewhereError, HiddenError, MissingError
from airflow_provider_sinks.connectors.table_format.format import Change, Judge, Table, TableFormat, noting
from airflow_provider_sinks.connectors.table_format.sink_tables import SinkTables
from airflow_provider_sinks.connectors.table_format.stage import Stage, StagedFile, StageFolder
from airflow_provider_sinks.connectors.table_format.state import Pending, Place, State, has_letters
from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.errors import JobFailedError
from airflow_provider_sinks.core.progress.record import SINGLE_WRITER, ProgressRecord


class DeadLetters(Generic[Table]):
    """The dead letters of one run. Without a table of them, nothing is ever set aside.

    :param say: told what a person should know although nothing stops.
    """

    def __init__(self, sink: SinkTables, tables: TableFormat[Table], run: str, say: Say) -> None:
        self._sink = sink
        self._format = tables
        self._run = run
        self._say = say
        self.known = protocol.NOWHERE
        """How far this run knows their table to be."""
        self.told: ProgressRecord | None = None
        """The epoch of which this run knows that nothing of it is to be published any more."""

    def take(self, pending: Pending | None, stages: StageFolder | None) -> None:
        """Put this run in force, whoever was; then publish what is pending.

        :raises FencedError: a newer run is in force by now.
        :raises MissingError: there is no such table.
        """
        self._change(pending, stages, takes=True)

    def keep(self, pending: Pending | None, stages: StageFolder | None) -> None:
        """Publish what is pending, unless that is done; a table that nobody has is taken.

        :raises FencedError: a newer run is in force.
        :raises MissingError: there is no such table.
        """
        self._change(pending, stages, takes=False)

    def tell(self, pending: Pending | None, stages: StageFolder) -> None:
        """Do :meth:`keep`, unless it is known that it is done."""
        if pending is not None and pending.record != self.told:
            self.keep(pending, stages)

    def _change(self, pending: Pending | None, stages: StageFolder | None, *, takes: bool) -> None:
        told = pending.record if pending else self.told
        if pending is not None and self._is_told_elsewhere(pending, stages, takes=takes):
            pending = None
        if self._sink.dead_letter is None:
            self._demand_nothing_left(pending, stages)
        else:
            self._change_own(self._sink.dead_letter, pending, stages, takes=takes)
        self.told = told

    def _change_own(
        self, name: str, pending: Pending | None, stages: StageFolder | None, *, takes: bool
    ) -> None:
        if takes:
            self._publish(name, self._taking)
        is_left_behind = (
            pending is not None and pending.record.run != self._run and pending.record != self.told
        )
        if pending is not None and stages is not None and is_left_behind:
            pending = self._named(name, pending, stages, takes=takes)
        sink, known = self._sink.name, self.known

        def judge(table: Table, state: State | None, place: Place) -> Change | None:
            if state is not None:
                protocol.demand_in_force(sink, state, self._run, known)
            return self._judge(table, state, place, pending, stages)

        self._publish(name, judge)

    def _publish(self, name: str, judge: Judge[Table]) -> None:
        """Change the table, and remember how far it is then."""
        states: list[State | None] = []
        self._format.publish(name, noting(judge, states))
        self.known = protocol.reached(states[-1])

    def _taking(self, table: Table, state: State | None, place: Place) -> Change | None:
        del table, place
        new = protocol.taken(state, self._run) if state is not None else None
        return Change(new) if new else None

    def _named(self, name: str, pending: Pending, folder: StageFolder, *, takes: bool) -> Pending:
        """Return what an older run left pending as this table takes it, once the data table names that.

        :param takes: that this run is still in force is looked at in any case.
        :raises FencedError: a newer run is.
        """
        now = self._at_home(name, pending, folder)

        def judge(table: Table, state: State | None, place: Place) -> Change | None:
            del table, place
            new = protocol.named(self._sink.name, self._run, state, pending, now)
            return Change(new) if new else None

        if takes or now != pending:
            self._format.publish(self._sink.data, judge)
        return now

    def _at_home(self, name: str, pending: Pending, folder: StageFolder) -> Pending:
        """Return what is pending with copies in the folder of this table, where it lies elsewhere.

        :raises RefusedError: the table takes none of it, or it is gone.
        """
        table = self._format.load(name)
        state = self._format.state(table)
        if has_letters(state, pending) or not self._is_away(table, pending, folder):
            return pending
        letters = _letters(self._found(pending, folder, is_new=state is None))
        with self._refusing(pending):
            copies = self._format.copies(table, folder, letters)
            self._format.added(table, [copy.file for copy in copies])
        stages = (folder.copied(pending.record.run, copies).name,) if copies else ()
        return replace(pending, stages=stages, table=name)

    def _is_away(self, table: Table, pending: Pending, folder: StageFolder) -> bool:
        """Whether letters were staged for another table, or where this one was before it was made anew."""
        if pending.table not in ("", self._sink.dead_letter):
            return True
        there = [stage for stage in _stages(pending, folder) if stage is not None]
        return bool(self._format.strays(table, _letters(there)))

    def demand_fit(self, stages: Iterable[Stage]) -> None:
        """See that the table takes letters as they were staged, while their rows are not committed yet.

        A table that is gone is told where they are published: the next start makes it.

        :raises JobFailedError: it was altered since; a start compares it anew.
        """
        name, staged = self._sink.dead_letter, _letters(stages)
        if name is None or not staged:
            return
        try:
            with suppress(MissingError):
                self._format.added(self._format.load(name), staged)
        except (ElsewhereError, KeyError, ValueError) as error:
            raise JobFailedError(
                f'table "{name}" was altered while sink "{self._sink.name}" ran',
                str(error) if isinstance(error, ElsewhereError) else "Its partitioning is another one.",
                "The next start stages dead letters for the table as it is.",
            ) from error

    def _is_told_elsewhere(self, pending: Pending, folder: StageFolder | None, *, takes: bool) -> bool:
        """Whether letters are in the table that the sink had when they were set aside; else it is fenced.

        :raises RefusedError: nobody can tell, and they are there to be published.
        """
        name, sink, states = pending.table, self._sink.name, list[State | None]()
        if name in ("", self._sink.dead_letter):
            return False

        def judge(table: Table, state: State | None, place: Place) -> Change | None:
            del table, place
            if has_letters(state, pending):
                return None
            if not takes and state is not None:
                protocol.demand_in_force(sink, state, self._run, protocol.NOWHERE)
            new = protocol.taken(state, self._run)
            return Change(new) if new else None

        try:
            with suppress(MissingError):
                self._format.publish(name, noting(judge, states))
        except HiddenError as error:
            if folder is not None and any(_stages(pending, folder)):
                raise letter_refusals.nobody_can_tell(sink, pending, error) from error
        return bool(states) and has_letters(states[-1], pending)

    def _judge(
        self,
        table: Table,
        state: State | None,
        place: Place,
        pending: Pending | None,
        stages: StageFolder | None,
    ) -> Change | None:
        run = self._run
        new = protocol.taken(state, run)
        if pending is None or stages is None or has_letters(state, pending):
            return Change(new) if new else None
        files = self._files(table, pending, stages, is_new=state is None)
        told = (new or state or State(run)).having(SINGLE_WRITER, pending.record, place)
        return Change(told, SINGLE_WRITER, pending.record, files)

    def _files(self, table: Table, pending: Pending, folder: StageFolder, *, is_new: bool) -> Sequence[Any]:
        """Return the letters that are pending.

        :param is_new: the table has no state of ours.
        :raises RefusedError: they are gone, or the table takes none of them.
        """
        letters = _letters(self._found(pending, folder, is_new=is_new))
        with self._refusing(pending):
            return self._format.added(table, letters)

    def _found(self, pending: Pending, folder: StageFolder, *, is_new: bool) -> list[Stage]:
        """Return the stages that are pending.

        :param is_new: the table has no state of ours.
        :raises RefusedError: they are gone.
        """
        found = _stages(pending, folder)
        if None in found and not is_new:
            raise letter_refusals.gone(self._sink.name, pending)
        if None in found:
            self._say(f"dead letters of epoch {pending.record.epoch} are gone: their table was made anew")
        return [stage for stage in found if stage is not None]

    @contextmanager
    def _refusing(self, pending: Pending) -> Iterator[None]:
        """Tell why the table does not take letters.

        :raises RefusedError: it is unlike the one that they were staged for.
        """
        sink, table = self._sink.name, self._sink.dead_letter
        try:
            yield
        except ElsewhereError as error:
            if pending.table != table:
                raise letter_refusals.no_table(sink, pending) from error
            raise letter_refusals.of_other_columns(sink, pending, error) from error
        except (KeyError, ValueError) as error:
            raise letter_refusals.of_another_partitioning(sink, pending, table) from error

    def _demand_nothing_left(self, pending: Pending | None, folder: StageFolder | None) -> None:
        if pending is None or folder is None or not any(_stages(pending, folder)):
            return
        raise letter_refusals.no_table(self._sink.name, pending)


def _letters(stages: Iterable[Stage]) -> list[StagedFile]:
    return [file for stage in stages for file in stage.of(Role.DEAD_LETTER)]


def _stages(pending: Pending, folder: StageFolder) -> list[Stage | None]:
    return [folder.read(pending.record.run, name, Role.DEAD_LETTER) for name in pending.stages]
