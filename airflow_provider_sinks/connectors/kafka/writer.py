"""One Kafka writer: rows, dead letters and the progress record in one Kafka transaction per writer and epoch.

Nothing is done per row here: Arrow's columns go to the producer as they are (:mod:`.send_queue`). What
shapes a transaction stands in :mod:`.transaction`.
"""

from __future__ import annotations

import contextlib
import time
import uuid

import numpy as np
import pyarrow as pa

from airflow_provider_sinks.connectors.epoch_writer import RejectedRowError, Token, WriteResult
from airflow_provider_sinks.connectors.kafka.columns import KEY, VALUE, is_null
from airflow_provider_sinks.connectors.kafka.in_force import demand_unrivalled
from airflow_provider_sinks.connectors.kafka.kept_rows import KeptRows, Ways
from airflow_provider_sinks.connectors.kafka.keyless_question import takes_keyless
from airflow_provider_sinks.connectors.kafka.row_limits import RowLimits
from airflow_provider_sinks.connectors.kafka.row_path import producer_kind
from airflow_provider_sinks.connectors.kafka.row_times import RowTimes
from airflow_provider_sinks.connectors.kafka.run import KafkaRun
from airflow_provider_sinks.connectors.kafka.send_queue import SendQueue, SetAside
from airflow_provider_sinks.connectors.kafka.transaction import Transaction
from airflow_provider_sinks.connectors.newest_rows import NewestRows
from airflow_provider_sinks.connectors.rows import ERROR, long_array
from airflow_provider_sinks.core.dead_letters.letter import ErrorClass
from airflow_provider_sinks.core.errors import UnavailableError
from airflow_provider_sinks.core.progress.record import ProgressRecord, WriterId

_LOOK_AGAIN_SECONDS = 2.0
_LATE_LOOK_SECONDS = 5.0


class KafkaEpochWriter:
    """One transactional producer, for one writer. See :class:`.epoch_writer.EpochWriter` for who calls what.

    :param run: the run that it belongs to.
    :param compression: the codec of the data topic's batches.
    :param writer: the writer's id.
    :param compacts: rows wait for the last of an epoch, and only the newest of each key is written.
    """

    def __init__(self, run: KafkaRun, compression: str, writer: WriterId, *, compacts: bool = False) -> None:
        self.holder_id = ""
        self.last: ProgressRecord | None = None
        self._run = run
        self._writer = writer
        self._times = RowTimes(run.options, run.sink, run.topics)
        self._limits = RowLimits(run.options, run.sink, run.topics, compression, self._times)
        config = {
            "compression.type": compression,
            "batch.size": self._limits.batch_bytes,
        }
        self._transaction = Transaction(run, writer, self._limits, config, producer_kind())
        self._queue = SendQueue(run, self._transaction, self._limits)
        self._newest = NewestRows([KEY]) if compacts else None
        self._kept = KeptRows(
            self._transaction,
            self._limits,
            self._times,
            Ways(self._write, self._good, self._queue.put_rows, self._write_newest, self._forget_newest),
            has_dead_letters=run.topics.dead_letter is not None,
        )
        self._circumstances = run.circumstances(0)
        self._looked_at = time.monotonic()

    def open(self) -> None:
        """Fence other holders of the id, read the progress, and make sure that this run is in force."""
        self._transaction.take()
        self.last = demand_unrivalled(self._run).current.get(self._writer)
        self.holder_id = uuid.uuid4().hex

    def begin_epoch(self, epoch: int) -> None:
        """Arm: the transaction begins with the first row, for an idle one would time out."""
        self._circumstances = self._run.circumstances(epoch)
        self._transaction.arm()
        self._queue.begin_epoch()
        self._kept.forget()
        self._forget_newest()
        self._looked_at = time.monotonic()

    def write_batch(self, rows: pa.RecordBatch) -> WriteResult:
        """Hand a batch to librdkafka, which sends it in the background."""
        if self._limits.keys.must_be_asked:
            self._limits.keys.learn(takes_keyless=takes_keyless(self._transaction, self._limits))
        self._transaction.begin()
        return self._kept.write(rows)

    def flush(self) -> None:
        """Wait until nearly all rows have arrived; the commit flushes the rest, and says why where it cannot.

        From the moment the record is in the progress topic until the commit, nobody can read behind it; a
        writer that opens meanwhile would wait for the whole queue of this one.
        """
        self._queue.drain()  # the commit says why, where a broker refused a row

    def pre_commit(self, record: ProgressRecord) -> Token:
        """Put the record last into the transaction, without rows that were refused late."""
        self._transaction.begin()
        self._look_again()
        record = record.with_set_aside(self._kept.refused_late())
        if self._newest is not None:
            self.flush()  # what had waited for the last row is on its way only now
        self._transaction.put(record)
        self.last = record
        self.holder_id = uuid.uuid4().hex
        return Token(self._writer, "", record.rows)

    def commit_epoch(self) -> None:
        """Commit; the broker answers once rows and record are visible together."""
        self._transaction.commit()
        self._kept.forget()

    def rollback_epoch(self) -> None:
        """Abort what is open, if the broker answers soon; if not, the next holder's fence aborts it."""
        self._transaction.roll_back()
        self._forget_newest()

    def close(self) -> None:
        """Drop the producer; what it had not sent is thrown away."""
        self._transaction.close()
        self._forget_newest()

    def _look_again(self) -> None:
        """See that this run is still in force before a commit, if the last look is long ago.

        A task that was frozen looks before it commits, not after. What proves that it cannot commit is the
        fence; this is the second line. So progress that cannot be read at once stops nobody: another writer
        may have its record in an open transaction.
        """
        if time.monotonic() - self._looked_at > _LOOK_AGAIN_SECONDS:
            with contextlib.suppress(UnavailableError):
                demand_unrivalled(self._run, _LATE_LOOK_SECONDS)
            self._looked_at = time.monotonic()

    def _write(self, rows: pa.RecordBatch) -> WriteResult:
        why = self._set_aside(rows)
        if not why:
            return self._write_good(rows)
        written = self._write_others(rows, sorted(why))
        return written + self._queue.put_dead(rows, dict(sorted(why.items())), self._circumstances)

    def _good(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows that nothing is wrong with, as far as it is known."""
        return _without(rows, sorted(self._set_aside(rows)))[1]

    def _set_aside(self, rows: pa.RecordBatch) -> dict[int, SetAside]:
        """Return which rows cannot be written, by index, and why.

        :raises RejectedRowError: the topic does not take one, and it has nowhere else to go.
        """
        errors = rows.column(ERROR)
        refused = self._times.refused(rows) | self._limits.keys.refused(rows)
        found = {row: (why, ErrorClass.REFUSED) for row, why in refused.items()}
        found |= {row: (why, ErrorClass.TOO_LARGE) for row, why in self._limits.too_large(rows).items()}
        if errors.null_count < len(errors):
            wrong = np.flatnonzero(~is_null(errors)).tolist()
            told = {row: errors[row].as_py() for row in wrong}
            found |= {row: (error, ErrorClass.of_row(error)) for row, error in told.items()}
        return found

    def _write_others(self, rows: pa.RecordBatch, set_aside: list[int]) -> WriteResult:
        """Write the rows that are not set aside."""
        kept, others = _without(rows, set_aside)
        if not len(kept):
            return WriteResult(0, 0, 0)
        try:
            return self._write_good(others)
        except RejectedRowError as rejected:
            if rejected.row is not None:
                rejected.row = int(kept[rejected.row])
            raise

    def _write_good(self, rows: pa.RecordBatch) -> WriteResult:
        """Hand over all rows in order, or keep them until the newest of each key are known."""
        if self._newest is None:
            return self._queue.put_rows(rows)
        self._newest.take(rows)
        return WriteResult(rows.num_rows, 0, rows.column(KEY).nbytes + rows.column(VALUE).nbytes)

    def _write_newest(self) -> None:
        """Hand over the newest row of each key.

        :raises RejectedRowError: the client does not take one; it is of any batch.
        """
        if self._newest is None or self._newest.is_empty:
            return
        try:
            for rows in self._newest.newest():
                if rows.num_rows:
                    self._queue.put_rows(rows)
        except RejectedRowError as rejected:
            rejected.row = None
            raise
        self._forget_newest()

    def _forget_newest(self) -> None:
        if self._newest is not None:
            self._newest.close()
            self._newest = NewestRows([KEY])


def _without(rows: pa.RecordBatch, left_out: list[int]) -> tuple[np.ndarray, pa.RecordBatch]:
    """Return the other rows, and their indices."""
    kept = np.delete(np.arange(len(rows), dtype=np.int64), left_out)
    return kept, rows.take(long_array(kept))
