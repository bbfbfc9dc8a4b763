"""A writer of the memory connector: keeps an epoch's rows to itself until they are committed or staged."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

import pyarrow as pa

from airflow_provider_sinks.connectors import rows as columns
from airflow_provider_sinks.connectors.base import CommitsOn
from airflow_provider_sinks.connectors.epoch_writer import Token, WriteResult
from airflow_provider_sinks.connectors.memory.store import MemoryStore, Outputs, Row, Slot, Stage
from airflow_provider_sinks.core.progress.record import ProgressRecord, WriterId

_INTERNAL = frozenset({*columns.COORDINATES, *columns.RAW})


@dataclass(frozen=True)
class MemoryWriterFactory:
    """Makes the writers of one run.

    :param generation: the announced one; records of older ones say nothing.
    """

    store: MemoryStore
    sink: str
    run: str
    generation: int
    outputs: Outputs
    commits_on: CommitsOn

    def prepare(self, writer: WriterId) -> MemoryEpochWriter:
        """Return a writer; there is nothing to connect to."""
        return MemoryEpochWriter(self, writer)


class MemoryEpochWriter:
    """See :class:`.epoch_writer.EpochWriter` for who calls what."""

    def __init__(self, factory: MemoryWriterFactory, writer: WriterId) -> None:
        self.holder_id = ""
        self.last: ProgressRecord | None = None
        self._factory = factory
        self._writer = writer
        self._held = Slot(factory.run)
        self._rows: list[Row] = []
        self._dead: list[Row] = []
        self._record: ProgressRecord | None = None
        self._token = ""

    def open(self) -> None:
        """Take the id for this object, which fences every other, then see how far it is."""
        make = self._factory
        self._held = make.store.take_writer(make.sink, make.run, self._writer)
        self.holder_id = self._held.holder
        record = self._held.record
        self.last = record if record and record.generation == make.generation else None

    def begin_epoch(self, epoch: int) -> None:
        """Begin with nothing."""
        del epoch
        self._forget()

    def write_batch(self, rows: pa.RecordBatch) -> WriteResult:
        """Take rows, and set those aside that have an error."""
        before = len(self._rows), len(self._dead)
        for row in rows.to_pylist():
            if row[columns.ERROR] is None:
                self._rows.append({name: value for name, value in row.items() if name not in _INTERNAL})
            else:
                self._dead.append(row)
        return WriteResult(len(self._rows) - before[0], len(self._dead) - before[1], rows.nbytes)

    def flush(self) -> None:
        """Do nothing: rows arrive at once."""

    def pre_commit(self, record: ProgressRecord) -> Token:
        """Keep the record for the commit; where the driver commits, stage the rows."""
        make = self._factory
        self._record = record
        if make.commits_on is CommitsOn.DRIVER:
            self._token = uuid.uuid4().hex
            make.store.stage(self._token, Stage(make.run, self._rows, self._dead))
        return Token(self._writer, self._token, len(self._rows))

    def commit_epoch(self) -> None:
        """Make rows and record visible."""
        make = self._factory
        assert self._record is not None  # noqa: S101  pre_commit comes first
        written = {make.outputs.data: self._rows}
        if make.outputs.dead_letter:
            written[make.outputs.dead_letter] = self._dead
        self._held = make.store.commit(make.sink, self._writer, self._held, self._record, written)
        self.holder_id = self._held.holder
        self.last = self._record
        self._forget()

    def rollback_epoch(self) -> None:
        """Forget the rows; what was staged is nobody's without its token."""
        self._forget()
        if self._token:
            self._factory.store.drop([self._token])

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def _forget(self) -> None:
        self._rows, self._dead, self._record = [], [], None
