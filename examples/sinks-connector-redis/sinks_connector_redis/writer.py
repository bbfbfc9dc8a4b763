"""A writer: stages an epoch's rows on the server; one script adds them to the stream with the record."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_sinks.connectors import rows
from airflow_provider_sinks.connectors.epoch_writer import Token, WriteResult
from airflow_provider_sinks.core.errors import SinkError
from airflow_provider_sinks.core.progress.record import ProgressRecord, WriterId
from sinks_connector_redis.options import RedisOptions
from sinks_connector_redis.server import make_client
from sinks_connector_redis.store import Staged, Store

COMMANDS_MAX = 1_000
"""So many entries are sent before an answer is awaited."""
_LETTER = {
    rows.ERROR: "error",
    rows.PARTITION: "source_partition",
    rows.OFFSET: "source_offset",
    rows.RAW_TIMESTAMP: "source_timestamp",
    rows.RAW_HEADERS: "headers",
    rows.RAW_KEY: "key",
    rows.RAW_VALUE: "value",
}

Entry = Mapping[bytes, bytes]


@dataclass(frozen=True)
class RedisWriterFactory:
    """Makes the writers of one run.

    :param generation: the announced one; records of older ones say nothing.
    :param streams: by key the id of each stream, the one of the rows first.
    :param letter: the fields that all dead letters of the run have in common.
    """

    options: RedisOptions
    place: str
    sink: str
    run: str
    generation: int
    streams: Mapping[str, str]
    max_length: int | None
    letter: Mapping[str, str]

    def prepare(self, writer: WriterId) -> RedisEpochWriter:
        """Return a writer; it connects when it is opened."""
        return RedisEpochWriter(self, writer)


class RedisEpochWriter:
    """See :class:`.epoch_writer.EpochWriter` for who calls what."""

    def __init__(self, factory: RedisWriterFactory, writer: WriterId) -> None:
        self.holder_id = ""
        self.last: ProgressRecord | None = None
        self._factory = factory
        self._writer = writer
        self._client = make_client(factory.options)
        self._store = Store(self._client, factory.options, factory.place, factory.sink)
        self._record: ProgressRecord | None = None
        self._epoch = 0
        self._staged: list[Staged] = []

    def open(self) -> None:
        """Take the writer's id for this object, which fences every other, and see how far it is: one act."""
        make, holder = self._factory, uuid.uuid4().hex
        found = self._store.take_writer(make.run, self._writer, holder)
        self.holder_id = holder
        self.last = found if found and found.generation == make.generation else None

    def begin_epoch(self, epoch: int) -> None:
        """Begin with stages of names that nobody has used; they are made by their first row."""
        make, self._epoch = self._factory, epoch
        begin = f"{make.place}:stage:{make.sink}:{make.run}:{self._writer}:{uuid.uuid4().hex}"
        self._staged = [
            Staged(stream, stream_id, f"{begin}:{number}", 0)
            for number, (stream, stream_id) in enumerate(make.streams.items())
        ]

    def write_batch(self, batch: pa.RecordBatch) -> WriteResult:
        """Stage rows, and those that have an error for the other stream."""
        is_good = pc.is_null(batch.column(rows.ERROR))
        good, dead = batch.filter(is_good), batch.filter(pc.invert(is_good))
        internal = [name for name in _LETTER if name in batch.schema.names]
        self._stage(0, _entries(good.drop_columns(internal), {}), good.num_rows)
        if dead.num_rows:
            told = {**self._factory.letter, "epoch": str(self._epoch)}
            letters = dead.select(internal).rename_columns([_LETTER[name] for name in internal])
            self._stage(1, _entries(letters, told), dead.num_rows)
        return WriteResult(good.num_rows, dead.num_rows, batch.nbytes)

    def flush(self) -> None:
        """Do nothing: each stage was answered for."""

    def pre_commit(self, record: ProgressRecord) -> Token:
        """Keep the record for the commit."""
        self._record = record
        return Token(self._writer, "", record.rows)

    def commit_epoch(self) -> None:
        """Let the server add what is staged and write the record, if this run and holder are the last."""
        make, record, holder = self._factory, self._record, uuid.uuid4().hex
        assert record is not None  # noqa: S101  pre_commit comes first
        holders = (self.holder_id, holder)
        self._store.commit(make.run, self._writer, holders, record, self._staged, max_length=make.max_length)
        self.holder_id, self.last = holder, record
        self._staged = []

    def rollback_epoch(self) -> None:
        """Remove what is staged. A commit that is still on its way finds it gone, and changes nothing."""
        with suppress(SinkError):
            self._store.drop_stages([staged.stage for staged in self._staged if staged.rows])
        self._staged = []

    def close(self) -> None:
        """Drop the connection."""
        self._client.close()

    def _stage(self, number: int, entries: Iterator[Entry], count: int) -> None:
        """:param number: of the stream, in the order of the factory's."""
        staged = self._staged[number]
        for part in _parts(entries, COMMANDS_MAX):
            self._store.stage(staged.stage, part)
        self._staged[number] = replace(staged, rows=staged.rows + count)


def _parts(entries: Iterator[Entry], most: int) -> Iterator[Sequence[Entry]]:
    part: list[Entry] = []
    for entry in entries:
        part.append(entry)
        if len(part) == most:
            yield part
            part = []
    if part:
        yield part


def _entries(batch: pa.RecordBatch, more: Mapping[str, str]) -> Iterator[Entry]:
    """Give the fields of each row. A null is a field that is missing; a row of nulls has one empty field."""
    names = [name.encode() for name in batch.schema.names]
    fixed = {name.encode(): value.encode() for name, value in more.items()}
    columns = [column.to_pylist() for column in batch.columns]
    for at in range(batch.num_rows):
        values = zip(names, (column[at] for column in columns), strict=True)
        yield {**fixed, **{name: _bytes(value) for name, value in values if value is not None}} or {b"": b""}


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()
