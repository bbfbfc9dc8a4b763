"""One transactional producer and the transaction that it has open: rows or none, and the record last.

Three facts shape this file. Each was measured or read in librdkafka's source:

- ``init_transactions`` on a fresh producer takes about 5 ms once it is connected, and 500 ms when it is not:
  librdkafka waits a fixed step before it asks again. So a producer connects in the background while Spark
  computes the first rows, and nobody waits for the step.
- A commit that times out has neither happened nor failed. A writer's producer is dropped, a new one fences
  it, and the progress record tells (:class:`InDoubtError`).
- A message that could not be delivered makes the commit fail, so no delivery report is needed to be sure.
  Only those that failed are reported, for their reason: a broker that finds one too large always will.
"""

from __future__ import annotations

import contextlib
import enum
import threading
import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from airflow_provider_sinks.clients.wait import look_until
from airflow_provider_sinks.connectors.epoch_writer import InDoubtError
from airflow_provider_sinks.connectors.kafka.client_failures import Complaints
from airflow_provider_sinks.connectors.kafka.deliveries import Deliveries, NoRows, is_consequence
from airflow_provider_sinks.connectors.kafka.in_force import demand_unrivalled
from airflow_provider_sinks.connectors.kafka.object_producer import ObjectProducer
from airflow_provider_sinks.connectors.kafka.row_producer import ProducerKind, RowProducer
from airflow_provider_sinks.connectors.kafka.run import KafkaRun
from airflow_provider_sinks.connectors.kafka.transactions import producer_config, refusal, warm_up
from airflow_provider_sinks.core.errors import FencedError, UnavailableError
from airflow_provider_sinks.core.progress.record import ProgressKey, ProgressRecord, WriterId

_FLUSH_SECONDS = 0.2
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


class Transaction:
    """The producer of one writer. Connects in the background from the moment it is made.

    :param run: the run that it belongs to.
    :param writer: the writer's id.
    :param deliveries: asked about rows that were refused.
    :param config: settings of the producer beside ours.
    :param kind: makes the producer.
    """

    def __init__(
        self,
        run: KafkaRun,
        writer: WriterId,
        deliveries: Deliveries | None = None,
        config: Mapping[str, Any] | None = None,
        kind: ProducerKind = ObjectProducer,
    ) -> None:
        self.run = run
        self.is_lost = False
        self.timeout_seconds = run.transaction_timeout.total_seconds()
        self._writer = writer
        self._id = run.id_of(writer)
        self._deliveries: Deliveries = deliveries or NoRows()
        self._complaints = Complaints()
        ours = producer_config(run.options, self._id, run.transaction_timeout)
        self._producer: RowProducer | None = kind(
            {**ours, **(config or {})}, self._complaints.take, self._deliveries.note_undelivered
        )
        self._open = _Open.NOTHING
        self._connecting = threading.Thread(target=_connect, args=(self._producer,), daemon=True)
        self._connecting.start()

    @property
    def live(self) -> RowProducer:
        """The producer, until it is dropped."""
        assert self._producer is not None  # noqa: S101  the runtime drops a closed writer
        return self._producer

    def take(self) -> None:
        """Fence other holders of the id; what they have open is aborted."""
        self._connecting.join()
        self._call("init_transactions", self.timeout_seconds)

    def belong_to(self, run: KafkaRun) -> None:
        """Take another run or generation for one's own."""
        self.run = run

    def arm(self) -> None:
        """Let the next transaction begin with its first message: an idle one would time out."""
        self._open = _Open.NOTHING

    def begin(self) -> None:
        """Begin a transaction, if none is open."""
        if self._open is _Open.NOTHING:
            self._call("begin_transaction")
            self._open = _Open.ROWS

    def put(self, record: ProgressRecord) -> None:
        """Put the progress record last into the transaction."""
        self.begin()
        key = ProgressKey(self.run.sink, self._writer).encode()
        try:
            self.live.produce(self.run.topics.progress, key=key, value=record.encode(), partition=0)
        except (KafkaException, BufferError) as error:
            raise self.translated(error, "produce") from error

    def commit(self) -> None:
        """Flush and commit; the broker answers once rows and record are visible together.

        It is flushed here first: behind a message that was refused, librdkafka's own flush waits for others
        that it will never send.
        """
        self._open = _Open.COMMIT
        self.flush()
        self._deliveries.demand_delivered()
        self._call("commit_transaction", self.timeout_seconds)
        self._open = _Open.NOTHING

    def flush(self) -> bool:
        """Wait until what was handed over has arrived, or some was refused; return if it was in time."""
        deadline = time.monotonic() + self.timeout_seconds
        try:
            while self.live.flush(_FLUSH_SECONDS) and self._deliveries.first_failure is None:
                if time.monotonic() > deadline:
                    return False
            self._await_cause()
        except KafkaException as error:
            raise self.translated(error, "flush") from error
        return True

    def restart(self) -> None:
        """Give up what is open, and forget what was refused of it; the next row begins anew."""
        self._call("abort_transaction", self.timeout_seconds)
        while self.live.poll(0):
            continue  # what is reported of it now would be taken for the next transaction's
        self._deliveries.forget()
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
            self._call("abort_transaction", self.timeout_seconds)
            self._open = _Open.NOTHING
            self._deliveries.forget()
        return False

    def roll_back(self) -> None:
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

    def translated(self, error: BaseException, method: str) -> Exception:
        """Return our error for what a method of the producer raised.

        Once a message was refused, librdkafka takes no further one in this state, and says no more than that;
        the reason comes by a callback.
        """
        with contextlib.suppress(KafkaException):  # a fatal error is raised by it once more
            self.live.poll(0)
            self._await_cause()
        cause = error.args[0] if error.args else None
        self._deliveries.demand_delivered(cause if isinstance(cause, KafkaError) else None)
        if isinstance(cause, KafkaError) and cause.code() == KafkaError._STATE:  # noqa: SLF001  public in C
            cause = self._deliveries.first_failure or cause
        name = f'writer {self._writer} of sink "{self.run.sink}"'
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

    def _await_cause(self) -> None:
        """Wait a moment for why a message was refused, where only those behind it are reported yet."""
        failure = self._deliveries.first_failure
        if failure is not None and is_consequence(failure):
            self.live.flush(_FLUSH_SECONDS)

    def _commit_again(self) -> bool:
        try:
            self.live.commit_transaction(self.timeout_seconds)
        except KafkaException as error:
            if error.args[0].txn_requires_abort():
                return False
            raise self.translated(error, "commit_transaction") from error
        self._open = _Open.NOTHING
        return True

    def _call(self, method: str, *arguments: float) -> None:
        """Call a transactional method and translate what it raises."""
        try:
            getattr(self.live, method)(*arguments)
        except KafkaException as error:
            is_fence = method == "init_transactions"
            refused = refusal(self.run.options, error, self._id) if is_fence else None
            raise refused or self.translated(error, method) from error

    def _fenced_or_repeated(self, name: str, cause: KafkaError) -> Exception:
        """Find out who fenced: a newer start ends the driver, a twin of this task only this attempt.

        A newer start fences first and announces itself seconds later, so this waits a little for its record.
        Should that come too late, the repeated task reads its progress and the driver record again, and what
        it may commit by then is found by the newer start's own writers when they open.
        """
        newer = look_until(
            self._newer_start, lambda seen: seen is not None, _SUCCESSOR_WAIT_SECONDS, _SUCCESSOR_LOOK_SECONDS
        )
        if newer is not None:
            return newer
        self.is_lost = True
        return UnavailableError(f"{name} was fenced by another attempt", cause.str(), "The task is repeated.")

    def _newer_start(self) -> FencedError | None:
        try:
            demand_unrivalled(self.run)
        except FencedError as fenced:
            return fenced
        return None


def _connect(producer: RowProducer) -> None:
    """Bring the connections up. Says nothing of failures: opening will, with the broker's reason."""
    with contextlib.suppress(KafkaException):
        warm_up(producer)
