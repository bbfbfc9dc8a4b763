"""One Kafka writer: rows, dead letters and the progress record in one Kafka transaction per writer and epoch.

``produce_batch`` sets ``_error`` on a message that it did not take, and raises nothing. When its queue is
full it refuses the rest of the call, so the tail can be given again without changing the order. What else
shapes a transaction stands in :mod:`.transaction`.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Producer

from airflow_provider_sinks.connectors.epoch_writer import Token, WriteResult
from airflow_provider_sinks.connectors.kafka.dead_letters import DeadLetterRecord, dead_letter
from airflow_provider_sinks.connectors.kafka.in_force import demand_unrivalled
from airflow_provider_sinks.connectors.kafka.row_limits import RowLimits
from airflow_provider_sinks.connectors.kafka.run import KafkaRun
from airflow_provider_sinks.connectors.kafka.transaction import Transaction
from airflow_provider_sinks.core.dead_letters.letter import ErrorClass
from airflow_provider_sinks.core.errors import UnavailableError
from airflow_provider_sinks.core.progress.record import ProgressRecord, WriterId

_QUEUED_BYTES_MAX = 128 * 1024 * 1024
_SHORT_QUEUE_BYTES = 1024 * 1024
_QUEUE_POLL_SECONDS = 0.01
_LOOK_AGAIN_SECONDS = 2.0
_LATE_LOOK_SECONDS = 5.0


class KafkaEpochWriter:
    """One transactional producer, for one writer. See :class:`.epoch_writer.EpochWriter` for who calls what.

    :param run: the run that it belongs to.
    :param compression: the codec of the data topic's batches.
    :param writer: the writer's id.
    """

    def __init__(self, run: KafkaRun, compression: str, writer: WriterId) -> None:
        self.holder_id = ""
        self.last: ProgressRecord | None = None
        self._run = run
        self._writer = writer
        self._limits = RowLimits(run.options, run.sink, run.topics, compression)
        config = {
            "compression.type": compression,
            "batch.size": self._limits.batch_bytes,
            "on_delivery": self._limits.note_undelivered,
        }
        self._transaction = Transaction(run, writer, self._limits, config)
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
        self._looked_at = time.monotonic()

    def write_batch(self, rows: pa.RecordBatch) -> WriteResult:
        """Hand a batch to librdkafka, which sends it in the background."""
        self._transaction.begin()
        errors, too_large = rows.column("__sinks_error"), self._limits.too_large(rows)
        if errors.null_count == len(errors) and not too_large:
            return self._write_good(rows)
        why = {row: error.as_py() for row, error in enumerate(errors) if error.is_valid} | too_large
        good = rows.filter(errors.is_null())
        if too_large:
            good = rows.take(pa.array([row for row in range(len(rows)) if row not in why], pa.int64()))
        written = self._write_good(good) if good.num_rows else WriteResult(0, 0, 0)
        return written + self._write_dead(rows, dict(sorted(why.items())))

    def flush(self) -> None:
        """Wait until nearly all rows have arrived; the commit flushes the rest, and says why where it cannot.

        From the moment the record is in the progress topic until the commit, nobody can read behind it; a
        writer that opens meanwhile would wait for the whole queue of this one.
        """
        deadline = time.monotonic() + self._transaction.timeout_seconds
        while len(self._live) * self._bytes_per_row > _SHORT_QUEUE_BYTES and time.monotonic() < deadline:
            self._live.poll(_QUEUE_POLL_SECONDS)

    def pre_commit(self, record: ProgressRecord) -> Token:
        """Put the record last into the transaction."""
        self._transaction.begin()
        self._look_again()
        self._transaction.put(record)
        self.last = record
        self.holder_id = uuid.uuid4().hex
        return Token(self._writer, "", record.rows)

    def commit_epoch(self) -> None:
        """Commit; the broker answers once rows and record are visible together."""
        self._transaction.commit()

    def rollback_epoch(self) -> None:
        """Abort what is open, if the broker answers soon; if not, the next holder's fence aborts it."""
        self._transaction.roll_back()

    def close(self) -> None:
        """Drop the producer; what it had not sent is thrown away."""
        self._transaction.close()

    @property
    def _live(self) -> Producer:
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

    def _write_good(self, rows: pa.RecordBatch) -> WriteResult:
        keys, values = rows.column("__sinks_key"), rows.column("__sinks_value")
        size_bytes = keys.nbytes + values.nbytes
        if keys.null_count == len(keys):
            messages: list[dict[str, Any]] = [{"value": value} for value in values.to_pylist()]
        else:
            pairs = zip(keys.to_pylist(), values.to_pylist(), strict=True)
            messages = [{"key": key, "value": value} for key, value in pairs]
        self._bytes_per_row = max(1.0, size_bytes / rows.num_rows)
        self._produce_all(messages)
        return WriteResult(rows.num_rows, 0, size_bytes)

    def _produce_all(self, messages: list[dict[str, Any]]) -> None:
        """Hand over all messages in order, waiting while the queue is full."""
        self._wait_for_room()
        first = 0
        while first < len(messages):
            batch = messages[first:] if first else messages
            taken = self._live.produce_batch(self._run.topics.data, batch)
            if taken < len(batch):
                self._demand_queue_full(batch, first)
                self._live.poll(_QUEUE_POLL_SECONDS)
            first += taken
        self._live.poll(0)

    def _demand_queue_full(self, batch: Sequence[dict[str, Any]], first: int) -> None:
        """Raise unless the queue was full: everything behind the first refused message was refused too."""
        refused = next(i for i, message in enumerate(batch) if "_error" in message)
        error: KafkaError = batch[refused]["_error"]
        for message in batch[refused:]:
            message.pop("_error", None)
        if error.code() == KafkaError._QUEUE_FULL:  # noqa: SLF001  public in C
            return
        if error.code() in (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError._INVALID_ARG):  # noqa: SLF001
            raise self._limits.rejection(f"The client says: {error.str()}", first + refused)
        raise self._transaction.translated(KafkaException(error), "produce_batch")

    def _wait_for_room(self) -> None:
        """Keep the memory that waits for the broker bounded; librdkafka's own limit counts less exactly."""
        deadline = time.monotonic() + self._transaction.timeout_seconds
        while len(self._live) * self._bytes_per_row > _QUEUED_BYTES_MAX:
            self._live.poll(_QUEUE_POLL_SECONDS)
            if time.monotonic() > deadline:
                raise UnavailableError(
                    f'the broker of sink "{self._run.sink}" takes no rows',
                    f"{len(self._live):,} rows have waited for {self._transaction.timeout_seconds:.0f} s.",
                    "Check the brokers and the network between them and the executors.",
                )

    def _write_dead(self, rows: pa.RecordBatch, errors: Mapping[int, str]) -> WriteResult:
        """Set rows aside.

        :param errors: why, by index.
        """
        topic = self._run.topics.dead_letter
        assert topic is not None  # noqa: S101  the runtime stops before it gives dead letters without a topic
        size_bytes = 0
        has_error = rows.column("__sinks_error").is_valid()
        for row, error in errors.items():
            kind = ErrorClass.PARSE if has_error[row].as_py() else ErrorClass.TOO_LARGE
            letter = dead_letter(rows, row, (error, kind), self._circumstances, self._limits.of(topic))
            self._produce_dead(topic, letter)
            size_bytes += len(letter.value or b"")
        return WriteResult(0, len(errors), size_bytes)

    def _produce_dead(self, topic: str, letter: DeadLetterRecord) -> None:
        while True:
            try:
                self._live.produce(topic, key=letter.key, value=letter.value, headers=list(letter.headers))
            except BufferError:
                self._live.poll(_QUEUE_POLL_SECONDS)
            except KafkaException as error:
                raise self._transaction.translated(error, "produce") from error
            else:
                return
