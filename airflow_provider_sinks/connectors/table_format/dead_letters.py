"""The table of dead letters, as one run of a sink changes it: behind the rows, and each epoch's letters once.

Nothing changes two tables together. So the change of the rows names the stages of the letters
(:class:`.state.Pending`), and here these become part of their own table, together with the epoch's record:
the record says that it is done. Nothing may forget what is pending before (:func:`.protocol.published`).

A table without any state of ours was made a moment ago, in the place of one that is gone. What was pending
may have been published in that one: there, and nowhere else, letters that are not to be found stop nobody.

A sink may have another table since letters were set aside. Then whoever did that may still be about to
publish them in the one before: so that one is taken first, and what it says is read behind that fence.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Generic

from airflow_provider_sinks.connectors.base import Say
from airflow_provider_sinks.connectors.table_format import protocol
from airflow_provider_sinks.connectors.table_format.errors import ElsewhereError, HiddenError, MissingError
from airflow_provider_sinks.connectors.table_format.format import Change, Table, TableFormat, noting
from airflow_provider_sinks.connectors.table_format.sink_tables import SinkTables
from airflow_provider_sinks.connectors.table_format.stage import Stage, StagedFile, StageFolder
from airflow_provider_sinks.connectors.table_format.state import Pending, Place, State
from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.errors import JobFailedError, RefusedError
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
        """Put this run in force, whoever was, and publish what is pending by the same change.

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
        name, sink, known = self._sink.dead_letter, self._sink.name, self.known
        told = pending.record if pending else self.told
        if pending is not None and self._is_told_elsewhere(pending, stages, takes=takes):
            pending = None
        if name is None:
            self._demand_nothing_left(pending, stages)
        else:

            def judge(table: Table, state: State | None, place: Place) -> Change | None:
                if not takes and state is not None:
                    protocol.demand_in_force(sink, state, self._run, known)
                return self._judge(table, state, place, pending, stages)

            states: list[State | None] = []
            self._format.publish(name, noting(judge, states))
            self.known = protocol.reached(states[-1])
        self.told = told

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
            if _has(state, pending):
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
                raise self._nobody_can_tell(pending, error) from error
        return bool(states) and _has(states[-1], pending)

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
        if pending is None or stages is None or _has(state, pending):
            return Change(new) if new else None
        files = self._files(table, pending, stages, is_new=state is None)
        told = (new or state or State(run)).having(SINGLE_WRITER, pending.record, place)
        return Change(told, SINGLE_WRITER, pending.record, files)

    def _files(self, table: Table, pending: Pending, folder: StageFolder, *, is_new: bool) -> Sequence[Any]:
        """Return the letters that are pending.

        :param is_new: the table has no state of ours.
        :raises RefusedError: they are gone.
        """
        found = _stages(pending, folder)
        if None in found and not is_new:
            raise RefusedError(
                f"dead letters of {self._epoch(pending)} are gone",
                "Their rows are committed; what was staged of them was removed before it was published.",
                "Bring the files back, or name another table in dead_letter: it begins without them.",
            )
        if None in found:
            self._say(f"dead letters of epoch {pending.record.epoch} are gone: their table was made anew")
        try:
            return self._format.added(table, _letters(stage for stage in found if stage))
        except ElsewhereError as error:
            raise self._elsewhere(pending, error) from error
        except (KeyError, ValueError) as error:
            raise RefusedError(
                f"dead letters of {self._epoch(pending)} were staged for a table of another partitioning",
                f'Table "{self._sink.dead_letter}" has no such partitioning: it is another one.',
                "Drop it and let the sink make it, or name another table in dead_letter that is not there.",
            ) from error

    def _epoch(self, pending: Pending) -> str:
        return f'epoch {pending.record.epoch} of sink "{self._sink.name}"'

    def _demand_nothing_left(self, pending: Pending | None, folder: StageFolder | None) -> None:
        if pending is None or folder is None or not any(_stages(pending, folder)):
            return
        raise self._no_table(pending)

    def _elsewhere(self, pending: Pending, error: ElsewhereError) -> RefusedError:
        if pending.table != self._sink.dead_letter:
            return self._no_table(pending)
        return RefusedError(
            f"dead letters of {self._epoch(pending)} were staged for a table of other columns",
            f'Table "{pending.table}" was altered since, or is another one. {error}',
            "Name another table in dead_letter that is not there: the sink makes it.",
        )

    def _nobody_can_tell(self, pending: Pending, error: HiddenError) -> RefusedError:
        return RefusedError(
            f'dead letters of {self._epoch(pending)} may be in table "{pending.table}", which is hidden',
            f"Whoever set them aside may have published them there, or may still do so. {error}",
            "Let the login see and change that table, and start the sink again.",
        )

    def _no_table(self, pending: Pending) -> RefusedError:
        return RefusedError(
            f"dead letters of {self._epoch(pending)} have no table any more",
            "Their rows are committed, and the spec named a table for them when they were staged.",
            f"Write {pending.table or 'the table that it was'} as dead_letter and start the sink once.",
        )


def _has(state: State | None, pending: Pending) -> bool:
    """Whether the letters are in a table with this progress."""
    return state is not None and state.epoch == pending.record


def _letters(stages: Iterable[Stage]) -> list[StagedFile]:
    return [file for stage in stages for file in stage.of(Role.DEAD_LETTER)]


def _stages(pending: Pending, folder: StageFolder) -> list[Stage | None]:
    return [folder.read(pending.record.run, name, Role.DEAD_LETTER) for name in pending.stages]
