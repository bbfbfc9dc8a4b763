"""What one writer has on its way to the broker: rows and dead letters, as many as may wait at once.

Rows go in as Arrow's columns (:mod:`.row_producer`), dead letters one by one. librdkafka sends in the
background; whoever hands over waits here while too much of it is queued.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException

from airflow_provider_sinks.connectors.epoch_writer import WriteResult
from airflow_provider_sinks.connectors.kafka.carried import Carried
from airflow_provider_sinks.connectors.kafka.columns import KEY, VALUE
from airflow_provider_sinks.connectors.kafka.dead_letters import DeadLetterRecord, dead_letter
from airflow_provider_sinks.connectors.kafka.row_limits import RowLimits
from airflow_provider_sinks.connectors.kafka.row_partitions import RowPartitions
from airflow_provider_sinks.connectors.kafka.row_producer import Refused, RowProducer
from airflow_provider_sinks.connectors.kafka.run import KafkaRun
from airflow_provider_sinks.connectors.kafka.tombstones import with_tombstones
from airflow_provider_sinks.connectors.kafka.transaction import Transaction
from airflow_provider_sinks.connectors.kafka.transactions import QUEUED_BYTES_MAX
from airflow_provider_sinks.core.dead_letters.letter import Circumstances, ErrorClass
from airflow_provider_sinks.core.errors import UnavailableError

SetAside: TypeAlias = tuple[str, ErrorClass]
"""Why a row is set aside, and the class of that."""

_SHORT_QUEUE_BYTES = 1024 * 1024
_POLL_SECONDS = 0.01
_LIST_SECONDS = 10.0


class SendQueue:
    """The queue of one writer's producer.

    :param run: the run that it belongs to.
    :param transaction: of the writer; its producer sends.
    :param limits: told what a broker has refused.
    """

    def __init__(self, run: KafkaRun, transaction: Transaction, limits: RowLimits) -> None:
        self._run = run
        self._transaction = transaction
        self._limits = limits
        self._partitions = RowPartitions(run.options, run.topics.data, self._list_topics)
        self._bytes_per_row = 1.0

    def begin_epoch(self) -> None:
        """Forget how many partitions the topic has: some may have been added."""
        self._partitions.forget()

    def put_rows(self, rows: pa.RecordBatch) -> WriteResult:
        """Put the messages of all rows in order, waiting while the queue is full.

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

    def put_dead(
        self, rows: pa.RecordBatch, errors: Mapping[int, SetAside], circumstances: Circumstances
    ) -> WriteResult:
        """Set rows aside.

        :param errors: why, by index.
        :param circumstances: of the epoch.
        """
        topic = self._run.topics.dead_letter
        assert topic is not None  # noqa: S101  the runtime stops before it gives dead letters without a topic
        size_bytes = 0
        deadline = time.monotonic() + self._transaction.timeout_seconds
        for row, why in errors.items():
            letter = dead_letter(rows, row, why, circumstances, self._limits.of(topic))
            self._bytes_per_row = max(self._bytes_per_row, letter.size_bytes)
            self._wait_while_full(deadline)
            self._produce_dead(topic, letter)
            size_bytes += letter.size_bytes
        return WriteResult(0, len(errors), size_bytes)

    def drain(self) -> None:
        """Wait until nearly all has arrived, or a message was refused: behind it librdkafka sends nothing."""
        deadline = time.monotonic() + self._transaction.timeout_seconds
        while len(self._live) * self._bytes_per_row > _SHORT_QUEUE_BYTES and time.monotonic() < deadline:
            if self._limits.first_failure is not None:
                return
            self._live.poll(_POLL_SECONDS)

    @property
    def _live(self) -> RowProducer:
        return self._transaction.live

    def _wait_while_full(self, deadline: float) -> None:
        """Wait until few enough bytes are queued, with the heaviest of what was queued last for all."""
        while len(self._live) * self._bytes_per_row > QUEUED_BYTES_MAX:
            self._wait_for_room(deadline)

    def _wait_for_room(self, deadline: float) -> None:
        """Wait a moment for the broker, so that what waits for it stays bounded.

        :raises UnavailableError: the deadline is over.
        :raises RejectedRowError: the broker has refused a row; librdkafka sends nothing behind it.
        """
        self._live.poll(_POLL_SECONDS)
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

    def _produce_dead(self, topic: str, letter: DeadLetterRecord) -> None:
        while True:
            try:
                self._live.produce(topic, key=letter.key, value=letter.value, headers=list(letter.headers))
            except BufferError:
                self._live.poll(_POLL_SECONDS)
            except KafkaException as error:
                raise self._refusal(Refused(None, error.args[0])) from error
            else:
                return
