"""A writer: keeps an epoch's rows until they are committed together with the progress record."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

import pyarrow as pa

from airflow_provider_sinks.connectors import rows
from airflow_provider_sinks.connectors.epoch_writer import Token, WriteResult
from airflow_provider_sinks.core.progress.record import ProgressRecord, WriterId
from sinks_connector_mytarget import database
from sinks_connector_mytarget.database import Database, quoted


@dataclass(frozen=True)
class MyTargetWriterFactory:
    """Makes the writers of one run. It travels to executors, so its ``repr`` must hide secrets.

    :param generation: the announced one; records of older ones say nothing.
    :param dead: the table of what is set aside.
    """

    database: Database
    sink: str
    run: str
    generation: int
    table: str
    dead: str | None

    def prepare(self, writer: WriterId) -> MyTargetEpochWriter:
        """Return a writer; here a client would begin to connect. It must fence nobody."""
        return MyTargetEpochWriter(self, writer)


class MyTargetEpochWriter:
    """See :class:`.epoch_writer.EpochWriter` for who calls what."""

    def __init__(self, factory: MyTargetWriterFactory, writer: WriterId) -> None:
        self.holder_id = ""
        self.last: ProgressRecord | None = None
        self._factory = factory
        self._writer = writer
        self._record: ProgressRecord | None = None
        self._rows: list[tuple[str]] = []
        self._dead: list[tuple[int, int, str, bytes | None]] = []

    def open(self) -> None:
        """Take the writer's id for this object, which fences every other, then see how far it is."""
        make, holder = self._factory, uuid.uuid4().hex
        with make.database.changing() as connection:
            database.demand_run(connection, make.sink, make.run)
            found = database.take_writer(connection, make.sink, self._writer, holder)
        record = ProgressRecord.decode(found.encode()) if found else None
        self.holder_id = holder
        self.last = record if record and record.generation == make.generation else None

    def begin_epoch(self, epoch: int) -> None:
        """Begin with nothing."""
        del epoch
        self._forget()

    def write_batch(self, batch: pa.RecordBatch) -> WriteResult:
        """Keep rows, and set those aside that have an error."""
        before = len(self._rows), len(self._dead)
        for row in batch.to_pylist():
            if row[rows.ERROR] is None:
                self._rows.append((row["row"],))
            else:
                self._dead.append(
                    (row[rows.PARTITION], row[rows.OFFSET], row[rows.ERROR], row[rows.RAW_VALUE])
                )
        return WriteResult(len(self._rows) - before[0], len(self._dead) - before[1], batch.nbytes)

    def flush(self) -> None:
        """Do nothing: the rows are here. A client that sends in the background waits for it."""

    def pre_commit(self, record: ProgressRecord) -> Token:
        """Keep the record for the commit."""
        self._record = record
        return Token(self._writer, "", record.rows)

    def commit_epoch(self) -> None:
        """Make rows and record visible in one transaction, if this run and this writer may still write.

        Both are asked inside of the transaction: there is no moment between the answer and the commit.
        """
        make, record, holder = self._factory, self._record, uuid.uuid4().hex
        assert record is not None  # noqa: S101  pre_commit comes first
        with make.database.changing() as connection:
            database.demand_run(connection, make.sink, make.run)
            database.write_record(
                connection, make.sink, self._writer, (self.holder_id, holder), record.encode()
            )
            connection.executemany(f"INSERT INTO {quoted(make.table)} VALUES (?)", self._rows)  # noqa: S608  quoted
            if make.dead is not None:
                connection.executemany(f"INSERT INTO {quoted(make.dead)} VALUES (?, ?, ?, ?)", self._dead)  # noqa: S608
        self.holder_id, self.last = holder, record
        self._forget()

    def rollback_epoch(self) -> None:
        """Forget the rows; nothing of them has left this process."""
        self._forget()

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def _forget(self) -> None:
        self._rows, self._dead, self._record = [], [], None
