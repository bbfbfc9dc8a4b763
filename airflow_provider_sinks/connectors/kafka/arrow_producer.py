"""A transactional producer of our own on librdkafka's C API: rows go from Arrow's buffers into its queue.

No Python object is made per row. confluent-kafka keeps the handle of its producer to itself, so this one has
a handle of its own; it raises confluent-kafka's own errors, and is otherwise used as its producer is.

Callbacks run in the thread that polls, flushes or ends a transaction, so no thread of librdkafka ever runs
Python. A message that was refused for a full queue has everything behind it in the call refused too, so the
tail is given again without changing the order.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException

from airflow_provider_sinks.connectors.kafka import librdkafka
from airflow_provider_sinks.connectors.kafka.carried import NOTHING, Carried
from airflow_provider_sinks.connectors.kafka.client_handle import (
    error_callback,
    ms,
    new_handle,
    new_topic,
    text,
)
from airflow_provider_sinks.connectors.kafka.header_list import ZERO, HeaderList
from airflow_provider_sinks.connectors.kafka.librdkafka import Bytes, Header, Message, Part, PartContent
from airflow_provider_sinks.connectors.kafka.message_array import message_array
from airflow_provider_sinks.connectors.kafka.part_array import PartArray, part_array
from airflow_provider_sinks.connectors.kafka.row_producer import Headers, OnError, OnUndelivered, Refused

_EACH_ITS_PARTITION = librdkafka.COPY | librdkafka.EACH_PARTITION


class ArrowProducer:
    """See :class:`.row_producer.RowProducer`.

    :param config: librdkafka's names and values.
    :raises KafkaException: librdkafka does not take the configuration.
    """

    def __init__(self, config: Mapping[str, Any], on_error: OnError, on_undelivered: OnUndelivered) -> None:
        self._c = librdkafka.library()
        callbacks = error_callback(on_error), _delivery_callback(on_undelivered)
        self._handle = new_handle(librdkafka.PRODUCER, config, *callbacks)
        self._topics: dict[str, int] = {}
        ended = weakref.finalize(self, _end, self._handle, self._topics, callbacks)
        ended.atexit = False  # a process that ends takes librdkafka's threads along

    def produce_rows(
        self,
        topic: str,
        keys: pa.Array,
        values: pa.Array,
        when_full: Callable[[], None],
        carried: Carried = NOTHING,
    ) -> Refused | None:
        """Hand over all rows in order, waiting while the queue is full."""
        if carried.needs_calls:
            return self._produce_each(part_array(self._topic(topic), keys, values, carried), when_full)
        messages = message_array(keys, values, carried.partitions)
        flags = librdkafka.COPY if carried.partitions is None else _EACH_ITS_PARTITION
        return self._produce_batch(self._topic(topic), messages, flags, when_full)

    def _produce_batch(
        self, topic: int, messages: np.ndarray, flags: int, when_full: Callable[[], None]
    ) -> Refused | None:
        """Hand all messages over by one call."""
        call, first = self._c.rd_kafka_produce_batch, 0
        while first < len(messages):
            rest = messages[first:]
            if call(topic, librdkafka.ANY_PARTITION, flags, rest.ctypes.data, len(rest)) == len(rest):
                break
            refused = int(np.flatnonzero(rest["err"])[0])
            code = int(rest["err"][refused])
            first += refused
            if code != KafkaError._QUEUE_FULL:  # noqa: SLF001  public in C
                return Refused(first, KafkaError(code))
            when_full()
        return None

    def _produce_each(self, messages: PartArray, when_full: Callable[[], None]) -> Refused | None:
        """Hand each message over by a call of its own."""
        call, handle, lists = self._c.rd_kafka_produceva, self._handle, messages.lists
        for row, (address, count) in enumerate(messages.calls):
            while error := call(handle, address, count):
                found = self._taken_out(error)
                if found.code() != KafkaError._QUEUE_FULL:  # noqa: SLF001  public in C
                    return Refused(row, found)
                when_full()
            if lists and row in lists:
                lists[row].is_taken()
        return None

    def produce(
        self,
        topic: str,
        *,
        value: bytes | None = None,
        key: bytes | None = None,
        partition: int = librdkafka.ANY_PARTITION,
        headers: Headers | None = None,
    ) -> None:
        """Hand one record over."""
        parts = [
            Part(librdkafka.TOPIC_PART, PartContent(text=topic.encode())),
            Part(librdkafka.PARTITION_PART, PartContent(number=partition)),
            Part(librdkafka.FLAGS_PART, PartContent(number=librdkafka.COPY)),
        ]
        for kind, content in ((librdkafka.KEY_PART, key), (librdkafka.VALUE_PART, value)):
            if content is not None:
                parts.append(Part(kind, PartContent(content=Bytes(content, len(content)))))
        given = [(name, told.encode() if isinstance(told, str) else told) for name, told in headers or []]
        listed = HeaderList(given) if any(ZERO in name for name, _ in given) else None
        if listed is not None:
            parts.append(Part(librdkafka.HEADERS_PART, PartContent(headers=listed.address)))
        else:
            parts += [_header(name, content) for name, content in given]
        try:
            self._demand(self._c.rd_kafka_produceva(self._handle, (Part * len(parts))(*parts), len(parts)))
        except KafkaException as error:
            if error.args[0].code() == KafkaError._QUEUE_FULL:  # noqa: SLF001  public in C
                raise BufferError(error.args[0].str()) from error
            raise
        if listed is not None:
            listed.is_taken()

    def __len__(self) -> int:
        return int(self._c.rd_kafka_outq_len(self._handle))

    def poll(self, timeout: float) -> int:
        """Call the callbacks that are due, waiting for the first."""
        return int(self._c.rd_kafka_poll(self._handle, ms(timeout)))

    def flush(self, timeout: float) -> int:
        """Wait until nothing waits any more; return how much still does."""
        self._c.rd_kafka_flush(self._handle, ms(timeout))
        return len(self)

    def purge(self) -> None:
        """Throw away what was not sent, and what was not answered."""
        self._c.rd_kafka_purge(self._handle, librdkafka.PURGE_ALL)

    def list_topics(self, *, timeout: float) -> None:
        """Ask a broker for the list of all topics: what it takes for that comes up."""
        found = ctypes.c_void_p()
        code = self._c.rd_kafka_metadata(self._handle, 1, None, ctypes.byref(found), ms(timeout))
        if code:
            raise KafkaException(KafkaError(code))
        self._c.rd_kafka_metadata_destroy(found)

    def init_transactions(self, timeout: float) -> None:
        """Fence other holders of the transactional id."""
        self._demand(self._c.rd_kafka_init_transactions(self._handle, ms(timeout)))

    def begin_transaction(self) -> None:
        """Begin a transaction."""
        self._demand(self._c.rd_kafka_begin_transaction(self._handle))

    def commit_transaction(self, timeout: float) -> None:
        """Send what waits, and commit."""
        self._demand(self._c.rd_kafka_commit_transaction(self._handle, ms(timeout)))

    def abort_transaction(self, timeout: float) -> None:
        """Throw away what waits, and abort."""
        self._demand(self._c.rd_kafka_abort_transaction(self._handle, ms(timeout)))

    def _topic(self, name: str) -> int:
        if name not in self._topics:
            self._topics[name] = new_topic(self._handle, name)
        return self._topics[name]

    def _demand(self, error: int | None) -> None:
        """Raise what a function has returned, unless that is nothing."""
        if error:
            raise KafkaException(self._taken_out(error))

    def _taken_out(self, error: int) -> KafkaError:
        """Return what a function has returned, and free it."""
        c = self._c
        found = KafkaError(
            c.rd_kafka_error_code(error),
            text(c.rd_kafka_error_string(error)),
            fatal=bool(c.rd_kafka_error_is_fatal(error)),
            retriable=bool(c.rd_kafka_error_is_retriable(error)),
            txn_requires_abort=bool(c.rd_kafka_error_txn_requires_abort(error)),
        )
        c.rd_kafka_error_destroy(error)
        return found


def _header(name: str, content: bytes | None) -> Part:
    header = Header(name.encode(), content, len(content or b""))
    return Part(librdkafka.HEADER_PART, PartContent(header=header))


def _end(handle: int, topics: Mapping[str, int], _callbacks: object) -> None:
    """Free the handle, with what it had not sent; called when nobody can use it any more.

    :param _callbacks: kept until then, because librdkafka may call them.
    """
    c = librdkafka.library()
    c.rd_kafka_purge(handle, librdkafka.PURGE_ALL)
    for topic in topics.values():
        c.rd_kafka_topic_destroy(topic)
    c.rd_kafka_destroy(handle)


def _delivery_callback(on_undelivered: OnUndelivered) -> Any:
    def take(_: int, message: Any, __: int | None) -> None:
        found: Message = message.contents
        if found.err:
            topic = librdkafka.library().rd_kafka_topic_name(found.topic)
            on_undelivered(KafkaError(found.err), text(topic), found.len)

    return librdkafka.DeliveryCallback(take)
