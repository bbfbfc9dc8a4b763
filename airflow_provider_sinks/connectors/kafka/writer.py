"""One Kafka writer: rows, dead letters and the progress record in one Kafka transaction per writer and epoch.

Four facts shape this file. Each was measured or read in librdkafka's source:

- ``init_transactions`` on a fresh producer takes about 5 ms once it is connected, and 500 ms when it is not:
  librdkafka waits a fixed step before it asks again. So a producer connects in the background while Spark
  computes the first rows (:meth:`KafkaWriterFactory.prepare`), and nobody waits for the step.
- ``produce_batch`` sets ``_error`` on a message that it did not take, and raises nothing. When its queue is
  full it refuses the rest of the call, so the tail can be given again without changing the order.
- A commit that times out has neither happened nor failed. The producer is dropped, a new one fences it, and
  the progress record tells (:class:`InDoubtError`).
- A message that could not be delivered makes the commit fail, so no delivery report is needed to be sure.
  Only those that failed are reported, for their reason: a broker that finds one too large always will.
"""

from __future__ import annotations

import contextlib
import enum
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Producer

from airflow_provider_sinks.connectors.base import InDoubtError, Token, WriteResult
from airflow_provider_sinks.connectors.kafka.dead_letters import DeadLetterRecord, dead_letter
from airflow_provider_sinks.connectors.kafka.in_force import demand_unrivalled
from airflow_provider_sinks.connectors.kafka.row_limits import RowLimits
from airflow_provider_sinks.connectors.kafka.transactions import (
    denial,
    producer_config,
    transactional_id,
    warm_up,
)
from airflow_provider_sinks.core.errors import FencedError, UnavailableError
from airflow_provider_sinks.core.progress.record import ProgressKey, ProgressRecord

if TYPE_CHECKING:
    from airflow_provider_sinks.connectors.kafka.factory import KafkaWriterFactory

_QUEUED_BYTES_MAX = 128 * 1024 * 1024
_SHORT_QUEUE_BYTES = 1024 * 1024
_QUEUE_POLL_SECONDS = 0.01
_FLUSH_SECONDS = 0.2
_LOOK_AGAIN_SECONDS = 2.0
_LATE_LOOK_SECONDS = 5.0
_SUCCESSOR_LOOK_SECONDS = 0.3
_SUCCESSOR_WAIT_SECONDS = 5.0
_PERHAPS_FENCED = frozenset(
    {
        KafkaError._FENCED,  # noqa: SLF001  librdkafka's own codes are public in C, underscored in Python
        KafkaError._FATAL,  # noqa: SLF001
        KafkaError._STATE,  # noqa: SLF001
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
    }
)


class _Open(enum.Enum):
    """What of a transaction is open."""

    NOTHING = enum.auto()
    ROWS = enum.auto()
    COMMIT = enum.auto()
    ABORT = enum.auto()


class KafkaEpochWriter:
    """One transactional producer, for one writer. See :class:`.base.EpochWriter` for who calls what.

    :param factory: what the sink's writers have in common.
    :param writer: the writer's id.
    """

    def __init__(self, factory: KafkaWriterFactory, writer: str) -> None:
        self.holder_id = ""
        self.last: ProgressRecord | None = None
        self.is_lost = False
        self._factory = factory
        self._writer = writer
        self._timeout_seconds = factory.transaction_timeout.total_seconds()
        self._id = transactional_id(factory.prefix, factory.sink, writer)
        self._limits = RowLimits(factory.options, factory.sink, factory.topics, factory.compression)
        self._producer: Producer | None = Producer(self._config())
        self._bytes_per_row = 1.0
        self._open = _Open.NOTHING
        self._looked_at = time.monotonic()
        self._connecting = threading.Thread(target=_connect, args=(self._producer,), daemon=True)
        self._connecting.start()

    def _config(self) -> dict[str, Any]:
        factory = self._factory
        return {
            **producer_config(factory.options, self._id, factory.transaction_timeout),
            "compression.type": factory.compression,
            "batch.size": self._limits.batch_bytes,
            "on_delivery": self._limits.note_undelivered,
        }

    def open(self) -> None:
        """Fence other holders of the id, read the progress, and make sure that this run is in force."""
        self.take()
        self.last = demand_unrivalled(self._factory).current.get(self._writer)
        self.holder_id = uuid.uuid4().hex

    def take(self) -> None:
        """Fence other holders of the id; what they have open is aborted."""
        self._connecting.join()
        self._call("init_transactions", self._timeout_seconds)

    def belong_to(self, factory: KafkaWriterFactory) -> None:
        """Take another run or generation for one's own."""
        self._factory = factory

    def begin_epoch(self) -> None:
        """Arm: the transaction begins with the first row, for an idle one would time out."""
        self._open = _Open.NOTHING
        self._looked_at = time.monotonic()

    def write_batch(self, rows: pa.RecordBatch) -> WriteResult:
        """Hand a batch to librdkafka, which sends it in the background."""
        self._begin()
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
        deadline = time.monotonic() + self._timeout_seconds
        while len(self._live) * self._bytes_per_row > _SHORT_QUEUE_BYTES and time.monotonic() < deadline:
            self._live.poll(_QUEUE_POLL_SECONDS)

    def pre_commit(self, record: ProgressRecord) -> Token:
        """Put the record last into the transaction."""
        self._begin()
        self._look_again()
        key = ProgressKey(self._factory.sink, self._writer).encode()
        try:
            self._live.produce(self._factory.topics.progress, key=key, value=record.encode(), partition=0)
        except (KafkaException, BufferError) as error:
            raise self._translate(error, "produce") from error
        self.last = record
        self.holder_id = uuid.uuid4().hex
        return Token(self._writer, "", record.rows)

    def commit_epoch(self) -> None:
        """Flush and commit; the broker answers once rows and record are visible together.

        It is flushed here first: behind a message that was refused, librdkafka's own flush waits for others
        that it will never send.
        """
        self._open = _Open.COMMIT
        deadline = time.monotonic() + self._timeout_seconds
        while (
            self._live.flush(_FLUSH_SECONDS)
            and self._limits.undelivered is None
            and time.monotonic() < deadline
        ):
            continue
        self._limits.demand_delivered()
        self._call("commit_transaction", self._timeout_seconds)
        self._open = _Open.NOTHING

    def settle(self) -> bool:
        """Bring what silent brokers left open to its end by the same producer; return if it is committed.

        May be called again while there is no answer: librdkafka goes on where it was.

        :raises InDoubtError: no answer to the commit yet.
        :raises UnavailableError: none to the abort, or the producer is lost.
        """
        if self._open is _Open.COMMIT and self._commit_again():
            return True
        if self._open is not _Open.NOTHING:
            self._open = _Open.ABORT
            self._call("abort_transaction", self._timeout_seconds)
            self._open = _Open.NOTHING
            self._limits.undelivered = None
        return False

    def rollback_epoch(self) -> None:
        """Abort what is open, if the broker answers soon; if not, the next holder's fence aborts it."""
        if self._open is not _Open.NOTHING and self._producer is not None:
            self._open = _Open.NOTHING
            try:
                self._producer.purge()
                self._producer.abort_transaction(_SUCCESSOR_WAIT_SECONDS)
            except KafkaException:
                self._producer = None

    def close(self) -> None:
        """Drop the producer; what it had not sent is thrown away."""
        self._connecting.join()
        if self._producer is not None:
            self._producer.purge()
            self._producer = None

    def _look_again(self) -> None:
        """See that this run is still in force before a commit, if the last look is long ago.

        A task that was frozen looks before it commits, not after. What proves that it cannot commit is the
        fence; this is the second line. So progress that cannot be read at once stops nobody: another writer
        may have its record in an open transaction.
        """
        if time.monotonic() - self._looked_at > _LOOK_AGAIN_SECONDS:
            with contextlib.suppress(UnavailableError):
                demand_unrivalled(self._factory, _LATE_LOOK_SECONDS)
            self._looked_at = time.monotonic()

    @property
    def _live(self) -> Producer:
        assert self._producer is not None  # noqa: S101  the runtime drops a closed writer
        return self._producer

    def _begin(self) -> None:
        if self._open is _Open.NOTHING:
            self._call("begin_transaction")
            self._open = _Open.ROWS

    def _commit_again(self) -> bool:
        try:
            self._live.commit_transaction(self._timeout_seconds)
        except KafkaException as error:
            if error.args[0].txn_requires_abort():
                return False
            raise self._translate(error, "commit_transaction") from error
        self._open = _Open.NOTHING
        return True

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
            taken = self._live.produce_batch(self._factory.topics.data, batch)
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
        raise self._translate(KafkaException(error), "produce_batch")

    def _wait_for_room(self) -> None:
        """Keep the memory that waits for the broker bounded; librdkafka's own limit counts less exactly."""
        deadline = time.monotonic() + self._timeout_seconds
        while len(self._live) * self._bytes_per_row > _QUEUED_BYTES_MAX:
            self._live.poll(_QUEUE_POLL_SECONDS)
            if time.monotonic() > deadline:
                raise UnavailableError(
                    f'the broker of sink "{self._factory.sink}" takes no rows',
                    f"{len(self._live):,} rows have waited for {self._timeout_seconds:.0f} s.",
                    "Check the brokers and the network between them and the executors.",
                )

    def _write_dead(self, rows: pa.RecordBatch, errors: Mapping[int, str]) -> WriteResult:
        """Set rows aside.

        :param errors: why, by index.
        """
        topic = self._factory.topics.dead_letter
        assert topic is not None  # noqa: S101  the runtime stops before it gives dead letters without a topic
        size_bytes = 0
        for row, error in errors.items():
            letter = dead_letter(rows, row, error, self._factory.topics.source, self._limits.of(topic))
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
                raise self._translate(error, "produce") from error
            else:
                return

    def _call(self, method: str, *arguments: float) -> None:
        """Call a transactional method and translate what it raises."""
        try:
            getattr(self._live, method)(*arguments)
        except KafkaException as error:
            denied = denial(self._factory.options, error, self._id) if method == "init_transactions" else None
            raise denied or self._translate(error, method) from error

    def _translate(self, error: BaseException, method: str) -> Exception:
        self._limits.demand_delivered()
        cause = error.args[0] if error.args else None
        name = f'writer {self._writer} of sink "{self._factory.sink}"'
        if not isinstance(cause, KafkaError):
            return UnavailableError(f"{name} could not {method.replace('_', ' ')}", str(error))
        if cause.code() in _PERHAPS_FENCED or cause.fatal():
            return self._fenced_or_repeated(name, cause)
        if method == "commit_transaction":
            return InDoubtError(f"{name} does not know whether its commit happened", cause.str())
        return UnavailableError(
            f"{name} could not {method.replace('_', ' ')}",
            cause.str(),
            "The task is repeated; nothing of it is visible.",
        )

    def _fenced_or_repeated(self, name: str, cause: KafkaError) -> Exception:
        """Find out who fenced: a newer start ends the driver, a twin of this task only this attempt.

        A newer start fences first and announces itself seconds later, so this waits a little for its record.
        Should that come too late, the repeated task reads its progress and the driver record again, and what
        it may commit by then is found by the newer start's own writers when they open.
        """
        deadline = time.monotonic() + _SUCCESSOR_WAIT_SECONDS
        while time.monotonic() < deadline:
            try:
                demand_unrivalled(self._factory)
            except FencedError as fenced:
                return fenced
            time.sleep(_SUCCESSOR_LOOK_SECONDS)
        self.is_lost = True
        return UnavailableError(f"{name} was fenced by another attempt", cause.str(), "The task is repeated.")


def _connect(producer: Producer) -> None:
    """Bring the connections up. Says nothing of failures: opening will, with the broker's reason."""
    with contextlib.suppress(KafkaException):
        warm_up(producer)
