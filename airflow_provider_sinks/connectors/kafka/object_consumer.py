"""confluent-kafka's own consumer, which makes a Python object per record.

For where :mod:`.librdkafka` does not know the library, or Arrow lacks the cast that :mod:`.scattered` needs.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, TopicPartition

from airflow_provider_sinks.connectors.kafka.fetched import NOT_AT_END, Fetched
from airflow_provider_sinks.connectors.kafka.row_producer import OnError

_BATCH = 1_000


class ObjectConsumer:
    """See :class:`.fetched.RecordConsumer`.

    :param config: librdkafka's names and values.
    """

    def __init__(self, config: Mapping[str, Any], topic: str, on_error: OnError) -> None:
        self._topic = topic
        group = f"sinks-reader-{uuid.uuid4()}"  # demanded, and used for nothing: places are assigned
        self._consumer = Consumer({**config, "group.id": group, "error_cb": on_error})

    def start(self, partition: int, offset: int) -> None:
        """Assign the one partition."""
        self._consumer.assign([TopicPartition(self._topic, partition, offset)])

    def fetch(self, timeout_seconds: float) -> Fetched:
        """Wait for one message, then take what lies there."""
        messages = self._consumer.consume(1, timeout=timeout_seconds)
        messages += self._consumer.consume(_BATCH, timeout=0) if messages else []
        records = [message for message in messages if message.error() is None]
        errors = [error for message in messages if (error := message.error()) is not None]
        ends = [int(message.offset() or 0) for message in messages if _is_end(message.error())]
        return Fetched(
            np.array([record.offset() for record in records], np.int64),
            pa.array([record.key() for record in records], pa.binary()),
            pa.array([record.value() for record in records], pa.binary()),
            max(ends, default=NOT_AT_END),
            tuple(error for error in errors if not _is_end(error)),
        )

    def stop(self) -> None:
        """Give the partition up."""
        self._consumer.unassign()

    def close(self) -> None:
        """End the client."""
        self._consumer.close()


def _is_end(error: KafkaError | None) -> bool:
    return error is not None and error.code() == KafkaError._PARTITION_EOF  # noqa: SLF001  public in C
