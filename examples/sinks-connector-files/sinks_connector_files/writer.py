"""A writer: stages an epoch's rows as Parquet files that no manifest names yet."""

from __future__ import annotations

import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from airflow_provider_sinks.connectors import rows
from airflow_provider_sinks.connectors.epoch_writer import Token, WriteResult
from airflow_provider_sinks.core.progress.record import ProgressRecord, WriterId
from sinks_connector_files import disk, tables

DEAD_LETTER = {
    rows.PARTITION: "source_partition",
    rows.OFFSET: "source_offset",
    rows.ERROR: "error",
    rows.RAW_KEY: "key",
    rows.RAW_VALUE: "value",
    rows.RAW_TIMESTAMP: "source_timestamp_ms",
    rows.RAW_HEADERS: "headers",
}


@dataclass(frozen=True)
class FilesWriterFactory:
    """Makes the writers of one run.

    :param data: the folder of the rows, with the beginning of the names of its files.
    :param dead: the same for what is set aside.
    """

    run: str
    data: tuple[Path, str]
    dead: tuple[Path, str] | None

    def prepare(self, writer: WriterId) -> FilesEpochWriter:
        """Return a writer; there is nothing to connect to."""
        return FilesEpochWriter(self, writer)


class FilesEpochWriter:
    """See :class:`.epoch_writer.EpochWriter` for who calls what.

    It fences nobody, and knows no record: nothing that it does is visible before the driver commits, and the
    driver takes only the tokens that its own tasks have reported.
    """

    def __init__(self, factory: FilesWriterFactory, writer: WriterId) -> None:
        self.holder_id = uuid.uuid4().hex
        self.last: ProgressRecord | None = None
        self._factory = factory
        self._writer = writer
        self._open: dict[Path, pq.ParquetWriter] = {}
        self._rows = 0

    def open(self) -> None:
        """Do nothing: whoever is overtaken finds out when the driver commits."""

    def begin_epoch(self, epoch: int) -> None:
        """Begin with no file."""
        del epoch
        self._open, self._rows = {}, 0

    def write_batch(self, batch: pa.RecordBatch) -> WriteResult:
        """Write rows, and set those aside that have an error."""
        is_good = pc.is_null(batch.column(rows.ERROR))
        internal = [name for name in DEAD_LETTER if name in batch.schema.names]
        good = batch.filter(is_good).drop_columns(internal)
        dead = batch.filter(pc.invert(is_good)).select(internal)
        self._write(self._factory.data, good)
        if self._factory.dead is not None:
            names = [DEAD_LETTER[name] for name in internal]
            self._write(self._factory.dead, pa.RecordBatch.from_arrays(dead.columns, names))
        self._rows += good.num_rows
        return WriteResult(good.num_rows, dead.num_rows, batch.nbytes)

    def flush(self) -> None:
        """Return when the files, with their names, outlive a loss of power."""
        for path, file in self._open.items():
            with disk.answering(path):
                file.close()
                disk.sync(path)
                disk.sync(path.parent)

    def pre_commit(self, record: ProgressRecord) -> Token:
        """Hand the files over: from here on they are the driver's."""
        del record
        names = " ".join(path.name for path in self._open)
        self._open = {}
        return Token(self._writer, names, self._rows)

    def commit_epoch(self) -> None:
        """Is never called: the driver commits."""

    def rollback_epoch(self) -> None:
        """Remove what was not handed over; what was, is removed by the next start's sweep at the latest."""
        for path, file in self._open.items():
            with suppress(OSError):  # such as of a disk that is full
                file.close()
            with suppress(OSError):
                path.unlink(missing_ok=True)
        self._open = {}

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def _write(self, place: tuple[Path, str], part: pa.RecordBatch) -> None:
        if not part.num_rows:
            return
        folder, contents = place
        name = f"{contents}-{self._factory.run}-{self._writer}-"
        path = next((path for path in self._open if path.parent == folder), None)
        with disk.answering(folder):
            if path is None:
                path = folder / f"{name}{uuid.uuid4().hex}{tables.SUFFIX}"
                self._open[path] = pq.ParquetWriter(path, part.schema)
            self._open[path].write_batch(part)
