"""One Postgres writer: rows, dead letters and the progress row in one transaction per writer and epoch.

Rows go straight into the target where they can, and through a temporary table where they cannot
(:mod:`.stage`). Last comes the compare-and-set of the writer's own progress row, then ``COMMIT``; why that
is exactly once stands in :mod:`.progress_table`. A ``COMMIT`` whose answer does not come has neither happened
nor failed: the writer is dropped, the next one takes the row, which waits for the commit if it is under way,
and reads what holds.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from airflow_provider_sinks.connectors import rows as columns
from airflow_provider_sinks.connectors.epoch_writer import InDoubtError, RejectedRowError, Token, WriteResult
from airflow_provider_sinks.connectors.letter_rows import LetterRows
from airflow_provider_sinks.connectors.postgres import progress_table
from airflow_provider_sinks.connectors.postgres.copying import CopyConnection, StatementError
from airflow_provider_sinks.connectors.postgres.factory import PostgresWriterFactory
from airflow_provider_sinks.connectors.postgres.known_tables import (
    KnownTable,
    changed_for_a_moment,
    known_tables,
)
from airflow_provider_sinks.connectors.postgres.letter_copy import copy_letters
from airflow_provider_sinks.connectors.postgres.progress_table import Turn
from airflow_provider_sinks.connectors.postgres.reached import Reached, fenced_by_twin, held_back, overtaken
from airflow_provider_sinks.connectors.postgres.stage import BadRow, Stage
from airflow_provider_sinks.core.errors import SinkError, UnavailableError
from airflow_provider_sinks.core.progress.record import ProgressRecord, WriterId


class PostgresEpochWriter:
    """One connection, for one writer. See :class:`.epoch_writer.EpochWriter` for who calls what.

    :param factory: what the sink's writers have in common.
    :param writer: the writer's id.
    """

    def __init__(self, factory: PostgresWriterFactory, writer: WriterId) -> None:
        self.holder_id = ""
        self.last: ProgressRecord | None = None
        self._factory = factory
        self._plan = factory.plan
        self._writer = writer
        self._turn = Turn(factory.run, "")
        self._is_open = False
        self._set_aside_late = 0
        self._letters = LetterRows(factory.plan.dead_columns, factory.plan.circumstances)
        self._made: CopyConnection | SinkError | None = None
        self._connecting = threading.Thread(target=self._connect, daemon=True)
        self._connecting.start()

    def open(self) -> None:
        """Take the writer's row, which fences every other holder of it, and read it."""
        factory, holder = self._factory, progress_table.new_holder()
        self._connecting.join()
        if isinstance(self._made, UnavailableError):  # such as ended by a twin that opened while it connected
            self._connect()
        with self._explained():
            self._live.ask(progress_table.end_open(factory.session(self._writer).name))
            found = self._live.ask(
                progress_table.take_writer(factory.place, factory.run, self._writer, holder)
            )
        if not found:
            raise self._overtaken(self._standing())
        generation, epoch, record = found[0]
        self._turn = Turn(factory.run, holder, generation, epoch)
        self.holder_id = holder
        is_current = record is not None and generation == factory.generation
        self.last = ProgressRecord.decode(record.encode()) if is_current else None

    def begin_epoch(self, epoch: int) -> None:
        """Arm: the transaction begins with the first row, for an idle one is ended by the server."""
        self._set_aside_late = 0
        self._letters = LetterRows(self._plan.dead_columns, replace(self._plan.circumstances, epoch=epoch))

    def write_batch(self, rows: pa.RecordBatch) -> WriteResult:
        """Copy a batch into the target or into the stage, and set aside what cannot be taken."""
        with self._explained():
            self._begin()
            errors = rows.column(columns.ERROR)
            if errors.null_count == len(errors):
                dead = self._write_good(rows)
            else:
                self._write_dead(rows.filter(errors.is_valid()), is_of_target=False)
                good = rows.filter(errors.is_null())
                dead = len(errors) - good.num_rows + (self._write_good(good) if good.num_rows else 0)
        return WriteResult(rows.num_rows - dead, dead, rows.nbytes)

    def flush(self) -> None:
        """Move what was staged into the target."""
        if self._is_open and self._plan.is_staged:
            with self._explained():
                self._set_aside_late += self._moved()

    def pre_commit(self, record: ProgressRecord) -> Token:
        """Change the progress row, if it is still this writer's. Rows set aside late are told in it too."""
        late, holder = self._set_aside_late, progress_table.new_holder()
        record = record.with_set_aside(late)
        tables = list(known_tables(record.identities, self._plan.shapes))
        statement = progress_table.advance(
            self._factory.place, self._writer, self._turn, record, holder=holder, tables=tables
        )
        with self._explained():
            self._begin()
            changed = self._live.run(statement)
        if changed != 1:
            raise self._refused(tables)
        self._turn = Turn(self._factory.run, holder, record.generation, record.epoch)
        self.last, self.holder_id = record, holder
        return Token(self._writer, "", record.rows)

    def commit_epoch(self) -> None:
        """Commit. All constraints were checked before, so whatever goes wrong now leaves a doubt."""
        try:
            self._live.run("COMMIT")
        except StatementError as error:
            raise InDoubtError(
                f'a commit of sink "{self._factory.place.sink}", writer {self._writer}, was not answered',
                error.message,
                "The progress row tells: nothing is written twice.",
            ) from error
        self._is_open = False
        self._set_aside_late = 0

    def rollback_epoch(self) -> None:
        """Give up what was not committed; where the server does not answer, it does so itself."""
        if self._is_open and isinstance(self._made, CopyConnection):
            with contextlib.suppress(StatementError):
                self._made.run("ROLLBACK")
        self._is_open = False

    def close(self) -> None:
        """Drop the connection."""
        self._connecting.join()
        if isinstance(self._made, CopyConnection):
            self._made.close()
            self._made = None

    def _connect(self) -> None:
        try:
            self._made = CopyConnection(self._factory.session(self._writer))
        except SinkError as error:
            self._made = error

    @property
    def _live(self) -> CopyConnection:
        self._connecting.join()
        if isinstance(self._made, SinkError):
            raise self._made
        assert self._made is not None  # noqa: S101  the runtime drops a closed writer
        return self._made

    def _begin(self) -> None:
        if self._is_open:
            return
        self._live.run("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
        self._is_open = True
        self._live.run("SET CONSTRAINTS ALL IMMEDIATE")
        self._stage = Stage(self._live, self._plan)
        if self._plan.is_staged:
            self._stage.begin()

    def _write_good(self, rows: pa.RecordBatch) -> int:
        """Take rows, and return how many were set aside."""
        if self._plan.is_staged:
            return self._staged(rows)
        try:
            with self._live.savepoint():
                self._live.copy(self._plan.table, rows.select(list(self._plan.columns)))
        except StatementError as error:
            if not error.is_of_a_row:
                raise
        else:
            return 0
        self._stage.begin()
        dead = self._staged(rows) + self._moved(rows)
        self._stage.empty()
        return dead

    def _staged(self, rows: pa.RecordBatch) -> int:
        bad = self._stage.take(rows)
        if not bad:
            return 0
        index, why = bad[0]
        if self._plan.dead_letter is None:
            raise self._rejection(why, index)
        reasons = dict(bad)
        dead = rows.take(pa.array(list(reasons), pa.int64()))
        position = dead.schema.get_field_index(columns.ERROR)
        judged = dead.set_column(position, columns.ERROR, pa.array(list(reasons.values())))
        self._write_dead(judged, is_of_target=True)
        return len(bad)

    def _moved(self, rows: pa.RecordBatch | None = None) -> int:
        """Move what is staged, and return how many rows were set aside.

        :param rows: the batch that is staged, where it is the only one: then its rows have its numbers.
        """
        bad = self._stage.move()
        if not bad:
            return 0
        if self._plan.dead_letter is None:
            raise self._rejection(bad[0].why, None if rows is None else bad[0].number, bad[0])
        self._stage.set_aside(self._letters)
        return len(bad)

    def _write_dead(self, rows: pa.RecordBatch, *, is_of_target: bool) -> None:
        """Copy source records into the table of dead letters.

        :param is_of_target: the table refused them; else they came with their error.
        """
        copy_letters(self._live, self._plan, self._letters.of(rows, is_of_target=is_of_target))

    def _rejection(self, why: str, row: int | None = None, bad: BadRow | None = None) -> RejectedRowError:
        where = ""
        if row is None and bad is not None and bad.partition is not None:
            where = f"Record {self._plan.source}/{bad.partition} at offset {bad.offset}: "
        return RejectedRowError(
            f'table "{self._plan.table}" does not take a row of sink "{self._factory.place.sink}"',
            f"{where}Postgres says: {why}.",
            "Add `dead_letter: {table: ...}` to the sink to set such rows aside, or mend the query.",
            row,
        )

    def _refused(self, tables: Sequence[KnownTable]) -> SinkError:
        """Say why the row was not changed: it is somebody else's by now, or a table is another one."""
        self.rollback_epoch()
        found = self._standing()
        if found is not None and found != self._turn:
            return self._overtaken(found)
        if (changed := self._changed_table(tables)) is not None:
            return changed
        if found is None:
            return self._overtaken(None)
        return self._held_back() or changed_for_a_moment(self._factory.place.sink)

    def _changed_table(self, tables: Iterable[KnownTable]) -> SinkError | None:
        with self._explained():
            for table in tables:
                oid, shape = self._live.ask(table.look())[0]
                if (error := table.misfit(oid, shape, self._factory.place.sink)) is not None:
                    return error
        return None

    def _overtaken(self, found: Turn | None) -> SinkError:
        factory, sink = self._factory, self._factory.place.sink
        if found is not None and found.run == factory.run:
            return self._held_back() or fenced_by_twin(sink, factory.run)
        held = self._in_force() if found is not None else None
        return overtaken(sink, factory.run, factory.known, held)

    def _held_back(self) -> SinkError | None:
        """Return the error for a trigger that keeps the row from being changed, where there is one."""
        place = self._factory.place
        with self._explained():
            found = self._live.ask(progress_table.late_trigger(place))
        return held_back(place.table, place.sink, found[0][0]) if found else None

    def _in_force(self) -> tuple[str, Reached] | None:
        """Return which run holds the sink, and how far its rows are."""
        with self._explained():
            found = self._live.ask(progress_table.in_force(self._factory.place).as_string(None))
        return (found[0][0], Reached(*found[0][1:])) if found else None

    def _standing(self) -> Turn | None:
        """Return what the row says now; nothing where it is gone."""
        with self._explained():
            found = self._live.ask(progress_table.standing(self._factory.place, self._writer))
        return Turn(*found[0]) if found else None

    @contextlib.contextmanager
    def _explained(self) -> Any:
        try:
            yield
        except StatementError as error:
            raise self._live.failure(error) from error
