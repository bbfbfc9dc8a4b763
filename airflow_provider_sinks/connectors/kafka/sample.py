"""Some records of a topic and what they weigh: they are read, and nothing is left behind."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaException, TopicPartition

from airflow_provider_sinks.connectors.kafka.client_failures import text_of
from airflow_provider_sinks.connectors.kafka.connection import client_config
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.core.errors import UnavailableError

_PARTITIONS_MAX = 16
_RECORDS_MAX = 500
_OF_EACH = 50
_SECONDS = 2.0
_POLL_SECONDS = 0.05


def record_bytes(options: KafkaOptions, topic: str, ranges: Mapping[int, range]) -> float | None:
    """Return the mean weight of some records, keys and values, in bytes; ``None`` where none can be read.

    Compression is undone: this is what a record takes in memory.

    :param ranges: by partition, the offsets to choose from; their last ones are read.
    :raises UnavailableError: the client could not ask.
    """
    sizes = [len(key) + len(value) for key, value in newest_records(options, topic, ranges)]
    return sum(sizes) / len(sizes) if sizes else None


def newest_records(
    options: KafkaOptions, topic: str, ranges: Mapping[int, range]
) -> list[tuple[bytes, bytes]]:
    """Return keys and values of some of the last records; those of open and aborted transactions too.

    What may not be read, or does not come within two seconds, is not among them.

    :param ranges: by partition, the offsets to choose from.
    :raises UnavailableError: the client could not ask.
    """
    held = [(partition, offsets) for partition, offsets in sorted(ranges.items()) if offsets]
    chosen = held[:: max(1, len(held) // _PARTITIONS_MAX)][:_PARTITIONS_MAX]
    if not chosen:
        return []
    places = [TopicPartition(topic, p, max(at.start, at.stop - _OF_EACH)) for p, at in chosen]
    consumer = Consumer({**client_config(options), **_SETTINGS, "group.id": f"sinks-sample-{uuid.uuid4()}"})
    try:
        consumer.assign(places)
        return _read(consumer, len(places))
    except KafkaException as error:
        raise UnavailableError(f'records of topic "{topic}" could not be read', text_of(error)) from error
    finally:
        consumer.close()


def _read(consumer: Consumer, partitions: int) -> list[tuple[bytes, bytes]]:
    """Return records until each partition gave one, or the time is over."""
    found: list[tuple[bytes, bytes]] = []
    seen: set[int | None] = set()
    deadline = time.monotonic() + _SECONDS
    while len(seen) < partitions and len(found) < _RECORDS_MAX and time.monotonic() < deadline:
        for message in consumer.consume(_RECORDS_MAX, timeout=_POLL_SECONDS):
            seen.add(message.partition())
            if message.error() is None:
                found.append((message.key() or b"", message.value() or b""))
    return found


_SETTINGS = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,  # a partition whose last records are marks of transactions says so, too
    "isolation.level": "read_uncommitted",
    "auto.offset.reset": "latest",
    "allow.auto.create.topics": False,
    "fetch.wait.max.ms": 10,
    "fetch.message.max.bytes": 256 * 1024,
    "queued.max.messages.kbytes": 4 * 1024,
}
