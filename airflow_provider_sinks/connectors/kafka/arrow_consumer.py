"""A consumer on librdkafka's C API: records become Arrow's columns, without a Python object per record.

It takes one partition at a time from a queue of its own, without a group. What librdkafka hands over is a
list of addresses of messages, whose keys and values lie in its buffers until a message is destroyed: they are
copied into columns first (:mod:`.scattered`).
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException

from airflow_provider_sinks.connectors.kafka import librdkafka
from airflow_provider_sinks.connectors.kafka.client_handle import (
    error_callback,
    ms,
    new_handle,
    new_topic,
    text,
)
from airflow_provider_sinks.connectors.kafka.fetched import NOT_AT_END, Fetched
from airflow_provider_sinks.connectors.kafka.message_array import MESSAGE
from airflow_provider_sinks.connectors.kafka.row_producer import OnError
from airflow_provider_sinks.connectors.kafka.scattered import gathered, records_at

_BATCH = 8_192


class ArrowConsumer:
    """See :class:`.fetched.RecordConsumer`.

    :param config: librdkafka's names and values.
    :raises KafkaException: librdkafka does not take the configuration.
    """

    def __init__(self, config: Mapping[str, Any], topic: str, on_error: OnError) -> None:
        self._c, self._destroy = librdkafka.library(), librdkafka.message_destroyer()
        callback = error_callback(on_error)
        self._handle = new_handle(librdkafka.CONSUMER, config, callback)
        self._topic = new_topic(self._handle, topic)
        self._addresses = (ctypes.c_void_p * _BATCH)()
        self._partition: int | None = None
        self._queue = 0
        self._ended = weakref.finalize(self, _end, self._handle, self._topic, callback)
        self._ended.atexit = False  # a process that ends takes librdkafka's threads along

    def start(self, partition: int, offset: int) -> None:
        """Begin to fetch a partition into a new queue."""
        self._queue = self._c.rd_kafka_queue_new(self._handle)
        if self._c.rd_kafka_consume_start_queue(self._topic, partition, offset, self._queue):
            code = self._c.rd_kafka_last_error()
            self._drop_queue()
            raise KafkaException(KafkaError(code))
        self._partition = partition

    def fetch(self, timeout_seconds: float) -> Fetched:
        """Wait for one message, then take what lies there: no more than librdkafka keeps ready."""
        count = self._take(1, ms(timeout_seconds))
        if count:
            count += self._take(_BATCH - count, 0, behind=count)
        self._c.rd_kafka_poll(self._handle, 0)
        try:
            return _fetched(np.frombuffer(memoryview(self._addresses), np.uint64, count))
        finally:
            for address in filter(None, self._addresses[:count]):
                self._destroy(address)

    def stop(self) -> None:
        """Stop fetching; what lies in the queue goes with it."""
        if self._partition is not None:
            self._c.rd_kafka_consume_stop(self._topic, self._partition)
            self._partition = None
        self._drop_queue()

    def close(self) -> None:
        """End the client, behind the end of its partition."""
        if self._ended.alive:
            self.stop()
            self._ended()

    def _take(self, most: int, timeout_ms: int, *, behind: int = 0) -> int:
        """Take messages over, and return how many."""
        place = ctypes.byref(self._addresses, behind * ctypes.sizeof(ctypes.c_void_p))
        return max(0, int(self._c.rd_kafka_consume_batch_queue(self._queue, timeout_ms, place, most)))

    def _drop_queue(self) -> None:
        if self._queue:
            self._c.rd_kafka_queue_destroy(self._queue)
            self._queue = 0


def _fetched(addresses: np.ndarray) -> Fetched:
    """Return what the messages at these addresses say."""
    if not len(addresses):
        return Fetched(np.zeros(0, np.int64), *2 * (pa.array([], pa.binary()),))
    messages = records_at(addresses, MESSAGE)
    are_records = messages["err"] == 0
    said = [] if are_records.all() else [_said(message) for message in messages[~are_records]]
    ends = [int(m["offset"]) for m in messages[~are_records] if m["err"] == KafkaError._PARTITION_EOF]  # noqa: SLF001
    records = messages[are_records]
    return Fetched(
        records["offset"].astype(np.int64),
        _column(records["key"], records["key_len"]),
        _column(records["payload"], records["len"]),
        max(ends, default=NOT_AT_END),
        tuple(error for error in said if error.code() != KafkaError._PARTITION_EOF),  # noqa: SLF001
    )


def _column(addresses: np.ndarray, sizes: np.ndarray) -> pa.Array:
    """Return the bytes at these addresses; where there are none at all, nulls."""
    if not addresses.any():
        return pa.nulls(len(addresses), pa.binary())
    return gathered(addresses.astype(np.uint64), sizes.astype(np.int64))


def _said(message: np.ndarray) -> KafkaError:
    """Return the error in the place of a record; its text is its value."""
    found = ctypes.string_at(int(message["payload"]), int(message["len"])) if message["payload"] else None
    return KafkaError(int(message["err"]), text(found))


def _end(handle: int, topic: int, _callback: object) -> None:
    """Free the handle; called when nobody can use it any more.

    :param _callback: kept until then, because librdkafka may call it.
    """
    c = librdkafka.library()
    c.rd_kafka_topic_destroy(topic)
    c.rd_kafka_destroy(handle)
