"""The one task of ``single``: every row of the epoch, in one commit."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from airflow_provider_sinks.core.progress.record import ProgressRecord
from airflow_provider_sinks.streaming.epoch_plan import StopDriverError
from airflow_provider_sinks.streaming.task import Task


class SingleTask(Task):
    """The one task of ``single``: every row of the epoch, in one commit."""

    def take(self, batch: pa.RecordBatch) -> None:
        """Write everything, unless the epoch is committed already."""
        if self._writer is None:
            assert self.plan.single_writer is not None  # noqa: S101  what chose this class
            last = self._open(self.plan.single_writer)
            self.skips = is_committed(self.plan.sink, self.plan.record, last, self.plan.known)
        if not self.skips:
            self._write(batch)

    def _expected_writer(self) -> str | None:
        return self.plan.single_writer


def is_committed(
    sink: str, record: ProgressRecord, last: ProgressRecord | None, known: Mapping[int, int]
) -> bool:
    """Whether an epoch is committed already: by this writer, or without a row, or by other writers.

    :param last: the newest record of the writer, or of the driver that commits for it.
    :param known: by source partition, the position that the driver knows to be committed.
    :raises StopDriverError: a part of it is.
    """
    if last is not None and _range(last) == _range(record):
        return True
    committed = last.to if last else {}
    reached = {p: max(known.get(p, 0), committed.get(p, 0)) for p in record.to}
    if any(at > record.from_.get(p, 0) for p, at in reached.items()):
        if all(at >= record.to[p] for p, at in reached.items()):
            return True
        raise StopDriverError(
            f'epoch {record.epoch} of sink "{sink}" overlaps what is committed',
            f"Committed is everything below {reached}; this epoch is {record.from_} to {record.to}.",
            "Start the sink again: it resumes from its progress.",
        )
    return False


def _range(record: ProgressRecord) -> tuple[object, ...]:
    """Return what two records of the same epoch have in common.

    The offsets alone are not enough: with several stateful operators Spark runs one epoch without new records
    after another, each over the same empty range, and each may have rows.
    """
    return record.checkpoint, record.batch, dict(record.from_), dict(record.to)
