"""The rows of a task that copies whole records: it reads its range of the source itself, without Spark.

What is read is proved to be complete by its offsets (:data:`.source.ReadRange`); it needs no end of a stream
for that. So a worker whose executor is gone reads on, and may commit its range, as it was asked to. The task
that Spark starts in its place fences it, or finds its range committed; the next start of a driver fences
every writer before it reads what is committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from airflow_provider_sinks.connectors import rows
from airflow_provider_sinks.connectors.rows import RecordColumns
from airflow_provider_sinks.connectors.source import ReadRange
from airflow_provider_sinks.streaming.read_ahead import in_turn
from airflow_provider_sinks.streaming.text_values import errors_of_text
from airflow_provider_sinks.streaming.writer import TaskInput


@dataclass(frozen=True)
class Copying:
    """How records become rows of a writer. Pickled into the tasks.

    :param read: reads a range of the source.
    :param columns: of the writer.
    :param is_text: whether a value must be text.
    """

    read: ReadRange
    columns: RecordColumns
    is_text: bool

    def to_rows(self, records: pa.RecordBatch) -> pa.RecordBatch:
        """Return records as rows of the writer; one that is not what it must be has an error."""
        keys, values = records.column(rows.RAW_KEY), records.column(rows.RAW_VALUE)
        errors = errors_of_text(values) if self.is_text else pa.nulls(len(values), pa.string())
        return pa.RecordBatch.from_arrays(
            [records.column(rows.PARTITION), records.column(rows.OFFSET), errors, keys, values],
            names=[*rows.COORDINATES, self.columns.key, self.columns.value],
        )


@dataclass(frozen=True)
class CopiedRange:
    """See :class:`.writer.TaskInput`; iterated anew for each try. Its fields: :class:`.source.ReadRange`."""

    how: Copying
    partition: int
    begin: int
    end: int
    leader_epoch: int | None
    largest_row_bytes: int = 0
    """Nobody needs to know: a batch has what was fetched, and that is bounded by bytes."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Read the range."""
        return map(self.how.to_rows, self.how.read(self.partition, self.begin, self.end, self.leader_epoch))


@dataclass(frozen=True)
class CopiedRanges:
    """The ranges of the one task of ``single``, one behind the other. See :class:`.writer.TaskInput`.

    :param at_once: how many are read, while they wait for their turn.
    """

    ranges: tuple[CopiedRange, ...]
    at_once: int
    largest_row_bytes: int = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Read the ranges, and give them as Spark would: partition by partition."""
        return in_turn(self.ranges, self.at_once)


def numbered(inputs: tuple[TaskInput, ...], batches: Iterable[pa.RecordBatch]) -> TaskInput:
    """Return what a task reads.

    :param batches: what Spark hands over: one row with one column, the place of the input.
    """
    numbers = [int(number) for batch in batches for number in rows.integers(batch.column(0))]
    return inputs[numbers[0]]
