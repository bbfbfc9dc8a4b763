"""The rows of an epoch that replace others by their key: the newest row of each key, and the keys themselves.

A table takes each key once in an epoch: neither a file of deleted keys nor a merge can tell which of two rows
of one snapshot is the newer. A topic may be spared the others. So rows wait in a file of this machine until
the last is there.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_sinks.connectors.rows import long_array

_ROW = "__sinks_row"
_IN_MEMORY_BYTES = 64 * 1024 * 1024


class NewestRows:
    """The rows of one epoch, and which of them are the newest of their keys.

    :param key: names of columns.
    """

    def __init__(self, key: Sequence[str]) -> None:
        self._key = list(key)
        self._keys: list[pa.RecordBatch] = []
        self._rows: list[pa.RecordBatch] = []
        self._held_bytes = 0
        self._file: IO[bytes] | None = None
        self._spilled: pa.ipc.RecordBatchStreamWriter | None = None

    def take(self, rows: pa.RecordBatch) -> None:
        """Take rows, the oldest first."""
        self._keys.append(_copied(rows.select(self._key)))
        self._rows.append(rows)
        self._held_bytes += rows.nbytes
        if self._held_bytes >= _IN_MEMORY_BYTES:
            self._spill()

    @property
    def is_empty(self) -> bool:
        """Whether no row was taken."""
        return not self._keys

    def keys(self) -> pa.Table:
        """Return each key once."""
        return self._newest().select(self._key)

    def newest(self) -> Iterator[pa.RecordBatch]:
        """Give the newest row of each key, in their order."""
        last = self._newest().column(_ROW)
        first = 0
        for batch in self._all():
            numbers = long_array(np.arange(first, first + batch.num_rows))
            yield batch.filter(pc.is_in(numbers, value_set=last.combine_chunks()))
            first += batch.num_rows

    def close(self) -> None:
        """Forget the rows."""
        if self._file is not None:
            self._file.close()
        self._file, self._spilled, self._rows, self._keys = None, None, [], []

    def _newest(self) -> pa.Table:
        keys = pa.Table.from_batches(self._keys)
        numbered = keys.append_column(_ROW, long_array(np.arange(keys.num_rows)))
        found = numbered.group_by(self._key).aggregate([(_ROW, "max")])
        return found.rename_columns([name.replace(f"{_ROW}_max", _ROW) for name in found.column_names])

    def _spill(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="sinks-upsert-")  # noqa: SIM115  lives for an epoch
        if self._spilled is None:
            self._spilled = pa.ipc.new_stream(self._file, self._rows[0].schema)
        for batch in self._rows:
            self._spilled.write_batch(batch)
        self._rows, self._held_bytes = [], 0

    def _all(self) -> Iterator[pa.RecordBatch]:
        if self._spilled is not None and self._file is not None:
            self._spilled.close()
            self._file.seek(0)
            yield from pa.ipc.open_stream(self._file)
        yield from self._rows


def _copied(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows in memory of their own: as they came, each column holds the message of all columns."""
    columns = [pa.concat_arrays([column, column.slice(0, 0)]) for column in rows.columns]
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)
