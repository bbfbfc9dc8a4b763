"""What a writer asks of a producer: confluent-kafka's own methods, and rows as Arrow's columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from confluent_kafka import KafkaError

from airflow_provider_sinks.connectors.kafka.carried import NOTHING, Carried

if TYPE_CHECKING:
    import pyarrow as pa

Headers = list[tuple[str, str | bytes | None]]
"""Of a record, in the type that confluent-kafka takes."""
OnError = Callable[[KafkaError], None]
"""Told of what librdkafka complains about in the background."""
OnUndelivered = Callable[[KafkaError, str, int], None]
"""Told of a record that was not delivered: why, its topic, and the bytes of its value."""


@dataclass(frozen=True)
class Refused:
    """A row that librdkafka did not take, for what it is.

    :param row: its index; ``None`` for one that is set aside.
    """

    row: int | None
    error: KafkaError


class RowProducer(Protocol):
    """A transactional producer. Its methods raise :class:`confluent_kafka.KafkaException`.

    Callbacks are called by the thread that is inside of ``poll``, ``flush`` or a transaction's method, and by
    no other. What is dropped without being closed is freed, with what it had not sent.
    """

    def produce_rows(
        self,
        topic: str,
        keys: pa.Array,
        values: pa.Array,
        when_full: Callable[[], None],
        carried: Carried = NOTHING,
    ) -> Refused | None:
        """Take all rows over, in order.

        :param keys: of bytes; a null is a record without a key.
        :param values: of bytes; a null is a record without a value.
        :param when_full: called while the queue is full, until it is not; polls, or raises to give up.
        :param carried: headers, times and partitions; without the last librdkafka chooses them by the keys.
        :returns: the first row that can never be taken; rows behind it may have been taken.
        """

    def produce(
        self,
        topic: str,
        *,
        value: bytes | None = None,
        key: bytes | None = None,
        partition: int = -1,
        headers: Headers | None = None,
    ) -> None:
        """Take one record over.

        :raises BufferError: the queue is full.
        """

    def __len__(self) -> int:
        """Return how many records and events wait."""

    def poll(self, timeout: float) -> int:
        """Call the callbacks that are due, waiting for the first."""

    def flush(self, timeout: float) -> int:
        """Wait until nothing waits any more; return how much still does."""

    def purge(self) -> None:
        """Throw away what was not sent, and what was not answered; only of use to who drops the producer.

        The broker may miss what was on its way, and refuse what this producer sends behind it.
        """

    def list_topics(self, *, timeout: float) -> object:
        """Ask a broker for the list of all topics: what it takes for that comes up."""

    def init_transactions(self, timeout: float) -> None:
        """Fence other holders of the transactional id."""

    def begin_transaction(self) -> None:
        """Begin a transaction."""

    def commit_transaction(self, timeout: float) -> None:
        """Send what waits, and commit."""

    def abort_transaction(self, timeout: float) -> None:
        """Throw away what waits, and abort."""


ProducerKind = Callable[[Mapping[str, Any], OnError, OnUndelivered], RowProducer]
"""Makes a producer of librdkafka's names and values, and who is told of what."""
