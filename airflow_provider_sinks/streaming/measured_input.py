"""The input of one task: batches by the names of their columns, with how large their rows are.

A row that is larger than the driver allowed for has been left out in the JVM (:mod:`.large_rows`); a mark in
a column of its own stands for it. Such a task cannot write its rows, and nothing of them may be committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from airflow_provider_sinks.connectors import rows

LARGE = "__sinks_large"
"""Whether the contents of a row were left out (boolean); the last column, where it is there."""


class LargeRowError(Exception):
    """A row is larger than what may cross at once; the driver runs the epoch again, and asks for sizes."""


class MeasuredInput:
    """The batches of a task; iterated once.

    :param batches: as Spark hands them over.
    :param names: of their columns, whatever they are called on the way here.
    """

    def __init__(self, batches: Iterable[pa.RecordBatch], names: Sequence[str]) -> None:
        self.largest_row_bytes = 0
        self._batches = batches
        self._names = list(names)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches without the marks.

        :raises LargeRowError: at the first batch with a row that was left out.
        """
        for batch in self._batches:
            found = unmarked(batch.rename_columns(self._names))
            self.largest_row_bytes = max(self.largest_row_bytes, largest_row_bytes(found))
            yield found


def unmarked(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows without their marks.

    :raises LargeRowError: one of them was left out.
    """
    names = batch.schema.names
    if names[-1] != LARGE:
        return batch
    if batch.column(LARGE).true_count:
        raise LargeRowError
    return batch.select(names[:-1])


def largest_row_bytes(batch: pa.RecordBatch) -> int:
    """Return how many bytes the largest row has in plain columns; errors do not count."""
    columns = [c for name, c in zip(batch.schema.names, batch.columns, strict=True) if name != rows.ERROR]
    lengths = [rows.byte_lengths(column) for column in columns if rows.has_bytes(column) and len(column)]
    width = sum(_width_bytes(column.type) for column in columns)
    return width + (int(sum(lengths[1:], lengths[0]).max()) if lengths else 0)


def _width_bytes(kind: pa.DataType) -> int:
    """Return how many bytes each value of a type has; 0 where they differ."""
    is_fixed = pa.types.is_primitive(kind) or pa.types.is_decimal(kind)
    return int(kind.bit_width) // 8 if is_fixed else 0
