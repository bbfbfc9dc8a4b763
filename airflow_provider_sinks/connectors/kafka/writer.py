"""One Kafka writer: rows, dead letters and the progress record in one Kafka transaction per writer and epoch.

Nothing is done per row here: Arrow's columns go to the producer as they are (:mod:`.row_producer`). What
shapes a transaction stands in :mod:`.transaction`.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException

from airflow_provider_sinks.connectors.epoch_writer import RejectedRowError, Token, WriteResult
from airflow_provider_sinks.connectors.kafka.carried import Carried
from airflow_provider_sinks.connectors.kafka.columns import KEY, VALUE, is_null
from airflow_provider_sinks.connectors.kafka.dead_letters import DeadLetterRecord, dead_letter
from airflow_provider_sinks.connectors.kafka.in_force import demand_unrivalled
from airflow_provider_sinks.connectors.kafka.kept_rows import KeptRows, Ways
from airflow_provider_sinks.connectors.kafka.row_limits import RowLimits
from airflow_provider_sinks.connectors.kafka.row_partitions import RowPartitions
from airflow_provider_sinks.connectors.kafka.row_path import producer_kind
from airflow_provider_sinks.connectors.kafka.row_producer import Refused, RowProducer
from airflow_provider_sinks.connectors.kafka.row_times import RowTimes
from airflow_provider_sinks.connectors.kafka.run import KafkaRun
from airflow_provider_sinks.connectors.kafka.tombstones import with_tombstones
from airflow_provider_sinks.connectors.kafka.transaction import Transaction
from airflow_provider_sinks.connectors.kafka.transactions import QUEUED_BYTES_MAX
from airflow_provider_sinks.connectors.newest_rows import NewestRows
from airflow_provider_sinks.connectors.rows import ERROR, long_array
from airflow_provider_sinks.core.dead_letters.letter import ErrorClass
from airflow_provider_sinks.core.errors import UnavailableError
from airflow_provider_sinks.core.progress.record import ProgressRecord, WriterId

SetAside = tuple[str, ErrorClass]
"""Why a row is set aside, and the class of that."""
_SHORT_QUEUE_BYTES = 1024 * 1024
_QUEUE_POLL_SECONDS = 0.01
_LOOK_AGAIN_SECONDS = 2.0
_LATE_LOOK_SECONDS = 5.0
_LIST_SECONDS = 10.0


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
        self._partitions = RowPartitions(run.options, run.topics.data, self._list_topics)
        self._transaction = Transaction(run, writer, self._limits, config, producer_kind())
        self._newest = NewestRows([KEY]) if compacts else None
        self._kept = KeptRows(
            self._transaction,
            self._limits,
            self._times,
            Ways(self._write, self._good, self._hand_over, self._write_newest, self._forget_newest),
            has_dead_letters=run.topics.dead_letter is not None,
        )
        self._circumstances = run.circumstances(0)
        self._bytes_per_row = 1.0
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
        self._partitions.forget()
        self._kept.forget()
        self._forget_newest()
        self._looked_at = time.monotonic()

    def write_batch(self, rows: pa.RecordBatch) -> WriteResult:
        """Hand a batch to librdkafka, which sends it in the background."""
        self._transaction.begin()
        return self._kept.write(rows)

    def flush(self) -> None:
        """Wait until nearly all rows have arrived; the commit flushes the rest, and says why where it cannot.

        From the moment the record is in the progress topic until the commit, nobody can read behind it; a
        writer that opens meanwhile would wait for the whole queue of this one.
        """
        deadline = time.monotonic() + self._transaction.timeout_seconds
        while len(self._live) * self._bytes_per_row > _SHORT_QUEUE_BYTES and time.monotonic() < deadline:
            if self._limits.first_failure is not None:
                return  # the commit says why; behind a row that was refused librdkafka sends nothing
            self._live.poll(_QUEUE_POLL_SECONDS)

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

    @property
    def _live(self) -> RowProducer:
        return self._transaction.live

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
        return written + self._write_dead(rows, dict(sorted(why.items())))

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
            return self._hand_over(rows)
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
                    self._hand_over(rows)
        except RejectedRowError as rejected:
            rejected.row = None
            raise
        self._forget_newest()

    def _forget_newest(self) -> None:
        if self._newest is not None:
            self._newest.close()
            self._newest = NewestRows([KEY])

    def _hand_over(self, rows: pa.RecordBatch) -> WriteResult:
        """Hand over the messages of all rows in order, waiting while the queue is full.

        :returns: rows are counted, not messages: a delete may be two.
        """
        messages, own = with_tombstones(rows)
        keys, values = messages.column(KEY), messages.column(VALUE)
        carried = Carried.of(messages, self._partitions.of(messages))
        size_bytes = keys.nbytes + values.nbytes + carried.size_bytes
        self._bytes_per_row = max(1.0, size_bytes / messages.num_rows)
        deadline = time.monotonic() + self._transaction.timeout_seconds
        self._wait_while_full(deadline)
        refused = self._live.produce_rows(
            self._run.topics.data, keys, values, lambda: self._wait_for_room(deadline), carried
        )
        if refused is not None:
            raise self._refusal(replace(refused, row=int(own[refused.row or 0])))
        self._live.poll(0)
        return WriteResult(rows.num_rows, 0, size_bytes)

    def _wait_while_full(self, deadline: float) -> None:
        """Wait until few enough bytes are queued, with the heaviest of what was queued last for all."""
        while len(self._live) * self._bytes_per_row > QUEUED_BYTES_MAX:
            self._wait_for_room(deadline)

    def _wait_for_room(self, deadline: float) -> None:
        """Wait a moment for the broker, so that what waits for it stays bounded.

        :raises UnavailableError: the deadline is over.
        :raises RejectedRowError: the broker has refused a row; librdkafka sends nothing behind it.
        """
        self._live.poll(_QUEUE_POLL_SECONDS)
        self._limits.demand_delivered()
        if time.monotonic() > deadline:
            raise UnavailableError(
                f'the broker of sink "{self._run.sink}" takes no rows',
                f"{len(self._live):,} rows have waited for {self._transaction.timeout_seconds:.0f} s.",
                "Check the brokers and the network between them and the executors.",
            )

    def _list_topics(self) -> None:
        """Have the producer learn which partitions there are."""
        try:
            self._live.list_topics(timeout=_LIST_SECONDS)
        except KafkaException as error:
            raise self._transaction.translated(error, "list_topics") from error

    def _refusal(self, refused: Refused) -> Exception:
        """Return our error for a row that the producer did not take."""
        error = refused.error
        if error.code() in (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError._INVALID_ARG):  # noqa: SLF001
            return self._limits.rejection(f"The client says: {error.str()}", refused.row)
        return self._transaction.translated(KafkaException(error), "produce_batch")

    def _write_dead(self, rows: pa.RecordBatch, errors: Mapping[int, SetAside]) -> WriteResult:
        """Set rows aside.

        :param errors: why, by index.
        """
        topic = self._run.topics.dead_letter
        assert topic is not None  # noqa: S101  the runtime stops before it gives dead letters without a topic
        size_bytes = 0
        deadline = time.monotonic() + self._transaction.timeout_seconds
        for row, why in errors.items():
            letter = dead_letter(rows, row, why, self._circumstances, self._limits.of(topic))
            self._bytes_per_row = max(self._bytes_per_row, letter.size_bytes)
            self._wait_while_full(deadline)
            self._produce_dead(topic, letter)
            size_bytes += letter.size_bytes
        return WriteResult(0, len(errors), size_bytes)

    def _produce_dead(self, topic: str, letter: DeadLetterRecord) -> None:
        while True:
            try:
                self._live.produce(topic, key=letter.key, value=letter.value, headers=list(letter.headers))
            except BufferError:
                self._live.poll(_QUEUE_POLL_SECONDS)
            except KafkaException as error:
                raise self._refusal(Refused(None, error.args[0])) from error
            else:
                return


def _without(rows: pa.RecordBatch, left_out: list[int]) -> tuple[np.ndarray, pa.RecordBatch]:
    """Return the other rows, and their indices."""
    kept = np.delete(np.arange(len(rows), dtype=np.int64), left_out)
    return kept, rows.take(long_array(kept))
