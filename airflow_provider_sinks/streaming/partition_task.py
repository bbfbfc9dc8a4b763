"""A task of ``per_partition``: the rows of one source partition, in the order of their offsets."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa

from airflow_provider_sinks.connectors import rows
from airflow_provider_sinks.core.progress.record import partition_writer
from airflow_provider_sinks.streaming.epoch_plan import EpochPlan, StopDriverError
from airflow_provider_sinks.streaming.task import Task

_NONE = -1


class PartitionTask(Task):
    """A task of ``per_partition``: all rows are of one source partition, in the order of offsets."""

    def __init__(self, plan: EpochPlan) -> None:
        super().__init__(plan)
        self._partition = _NONE
        self._newest_offset = _NONE
        self._position = _NONE
        self._step_started = time.monotonic()

    def take(self, batch: pa.RecordBatch) -> None:
        """Write the rows at or behind the position."""
        offsets = self._checked_offsets(batch)
        if self._writer is None:
            self._position = self._find_position(int(offsets[0]))
        if self._is_open and self._step_is_due() and offsets[0] > self._newest_offset:
            self._commit({**self.plan.record.to, self._partition: self._newest_offset + 1})
            self._step_started = time.monotonic()
        self._newest_offset = int(offsets[-1])
        first_new = int(np.searchsorted(offsets, self._position))
        if first_new < len(offsets):
            self._write(batch.slice(first_new))

    def _checked_offsets(self, batch: pa.RecordBatch) -> np.ndarray:
        """Return the batch's offsets, after checking that the task is what it must be."""
        partitions = rows.integers(batch.column(rows.PARTITION))
        offsets = rows.integers(batch.column(rows.OFFSET))
        if self._partition == _NONE:
            self._partition = int(partitions[0])
        falls = (np.diff(offsets) < 0).any() or offsets[0] < self._newest_offset
        if (partitions != self._partition).any() or falls:
            raise StopDriverError(
                f'a task of sink "{self.plan.sink}" does not read one source partition in order',
                f"It began with {self._source} and then saw other partitions or "
                "falling offsets: something splits or merges the source partitions.",
                "Use `writers: single` for this plan.",
            )
        return offsets

    def _find_position(self, first_offset: int) -> int:
        last = self._open(partition_writer(self._partition))
        begin, end = self._range()
        if not begin <= first_offset < end:
            raise StopDriverError(
                f'a task of sink "{self.plan.sink}" read outside of its range',
                f"Offset {first_offset} of {self._source} is not in [{begin}, {end}).",
                "Start the sink again.",
            )
        position = max(self.plan.known[self._partition], last.to.get(self._partition, 0) if last else 0)
        if position < begin:
            raise StopDriverError(
                f'sink "{self.plan.sink}" would leave a gap in {self._source}',
                f"Committed is everything below offset {position}; this epoch starts at {begin}.",
                "Start the sink again: it resumes from its progress.",
            )
        self.skips = position >= end
        return position

    @property
    def _source(self) -> str:
        return f"{self.plan.source_topic}/{self._partition}"

    def _range(self) -> tuple[int, int]:
        record = self.plan.record
        return record.from_[self._partition], record.to[self._partition]

    def _step_is_due(self) -> bool:
        waited = time.monotonic() - self._step_started
        plan, written = self.plan, self.written
        if plan.driver_commits:
            return False
        is_long = written.rows >= plan.step_rows or written.size_bytes >= plan.step_bytes
        return is_long or waited >= plan.step_seconds

    def _expected_writer(self) -> str | None:
        index = _task_index()
        return self.plan.expected[index] if index < len(self.plan.expected) else None


def _task_index() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    return context.partitionId() if context else 0
