"""Data files of one table, as they are written on an executor: Parquet by Arrow, one file for each partition.

Rows are collected until they are worth a row group. So what is held at a time is one group and the open
files, of which there are at most :data:`OPEN_FILES_MAX`, however many partitions there are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import pyarrow as pa

from airflow_provider_sinks.connectors.table_format.stage import StagedFile
from airflow_provider_sinks.connectors.table_format.typed_columns import as_type
from airflow_provider_sinks.core.errors import RefusedError

ROW_GROUP_BYTES = 32 * 1024 * 1024
"""What is collected in memory before it is written, as Arrow counts it."""
OPEN_FILES_MAX = 64
"""So many files are written at a time; for one more partition the oldest is closed."""

Announce: TypeAlias = Callable[[Iterable[StagedFile]], None]
"""Is told of files before they are there."""


@dataclass(frozen=True)
class Part:
    """Rows of one partition.

    :param key: tells the partition from others.
    :param partition: what the format knows it by; ``None`` in a table without partitions.
    """

    key: Hashable
    partition: Any
    rows: pa.Table


class FileWriter(Protocol):
    """Writes one file."""

    def write(self, rows: pa.Table) -> None:
        """Write a row group."""

    def close(self) -> Any:
        """End the file."""


Writer = TypeVar("Writer", bound=FileWriter)


@dataclass
class _OpenFile(Generic[Writer]):
    """A file that is being written."""

    staged: StagedFile
    writer: Writer
    size_bytes: int = 0


class DataFiles(ABC, Generic[Writer]):
    """The files of one writer for one table in one epoch.

    :param names: the columns of the table that are written, in the order of the batches.
    :param schema: the names and types of these in a file.
    :param limit_bytes: a file that is larger is closed.
    """

    def __init__(self, names: Iterable[str], schema: pa.Schema, announce: Announce, limit_bytes: int) -> None:
        self._names, self._in_file, self._announce = list(names), schema, announce
        self._limit = limit_bytes
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0
        self._open: dict[Hashable, _OpenFile[Writer]] = {}
        self._done: list[StagedFile] = []

    @abstractmethod
    def _parts(self, rows: pa.Table) -> list[Part]:
        """Return rows by their partition."""

    @abstractmethod
    def _new_file(self, partition: Any) -> StagedFile:
        """Return a file that is still to be written."""

    @abstractmethod
    def _writer(self, file: StagedFile) -> Writer:
        """Return what writes it."""

    @abstractmethod
    def _finished(self, file: StagedFile, writer: Writer) -> StagedFile:
        """Close a file, and return it with rows, size and statistics."""

    @abstractmethod
    def _delete(self, path: str) -> None:
        """Remove a file."""

    @property
    def files(self) -> tuple[StagedFile, ...]:
        """All files so far; those that are open are without size and statistics."""
        return (*self._done, *(one.staged for one in self._open.values()))

    def take(self, rows: pa.RecordBatch | pa.Table) -> None:
        """Take rows of exactly the columns of the table that are written, in their order."""
        batches = rows.to_batches() if isinstance(rows, pa.Table) else [rows]
        self._held += batches
        self._held_bytes += rows.nbytes
        if self._held_bytes >= ROW_GROUP_BYTES:
            self._write()

    def close(self) -> tuple[StagedFile, ...]:
        """Write the rest, and return the files, which are whole."""
        self._write()
        for key in list(self._open):
            self._finish(key)
        return self.files

    def abandon(self) -> None:
        """Remove all files. Must not raise: what stays is named by a stage."""
        for one in self._open.values():
            with suppress(Exception):
                one.writer.close()
        for file in self.files:
            with suppress(Exception):
                self._delete(file.path)
        self._open, self._done, self._held = {}, [], []

    def _write(self) -> None:
        if not self._held:
            return
        rows = pa.Table.from_batches(self._held)
        self._held, self._held_bytes = [], 0
        parts = self._parts(rows.rename_columns(self._names))
        _demand_all(rows, parts)
        parts.sort(key=lambda part: part.key not in self._open)  # those before one is closed for another
        new = self._announced(parts)
        for part in parts:
            if part.key in new:
                self._begin(part.key, new[part.key])
            self._open[part.key].writer.write(self._typed(part.rows))
            self._open[part.key].size_bytes += part.rows.nbytes
            if self._open[part.key].size_bytes >= self._limit:
                self._finish(part.key)

    def _announced(self, parts: Iterable[Part]) -> dict[Hashable, StagedFile]:
        """Announce a file for each partition that has none open, and return them."""
        new = {part.key: self._new_file(part.partition) for part in parts if part.key not in self._open}
        if new:
            self._announce(new.values())
        return new

    def _begin(self, key: Hashable, file: StagedFile) -> None:
        while len(self._open) >= OPEN_FILES_MAX:
            self._finish(next(iter(self._open)))
        self._open[key] = _OpenFile(file, self._writer(file))

    def _finish(self, key: Hashable) -> None:
        one = self._open[key]
        self._done.append(self._finished(one.staged, one.writer))
        del self._open[key]

    def _typed(self, rows: pa.Table) -> pa.Table:
        """Return rows with the names and types of the file."""
        columns = [
            as_type(column, field.type) for column, field in zip(rows.columns, self._in_file, strict=True)
        ]
        return pa.Table.from_arrays(columns, schema=self._in_file)


def _demand_all(rows: pa.Table, parts: Iterable[Part]) -> None:
    """See that each row is in one part.

    :raises RefusedError: the rows of a partition were found by ``==``, which some values are not.
    """
    count = sum(part.rows.num_rows for part in parts)
    if count != rows.num_rows:
        raise RefusedError(
            f"{rows.num_rows} rows fell into partitions with {count} rows",
            "A value of the partitioning does not equal itself, or equals another one.",
            "Partition the table by another column.",
        )
