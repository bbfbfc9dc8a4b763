"""The records that all arms copy, and counting what arrived."""

from __future__ import annotations

import random
from collections.abc import Iterator

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

PARTITIONS = 4
_SEED = 20261121
_DISTINCT = 10_000


def create(bootstrap: str, topic: str) -> None:
    """Make a topic."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, PARTITIONS)])[topic].result(timeout=30)


def delete(bootstrap: str, topic: str) -> None:
    """Delete a topic, so that the next run has the disk for itself."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([topic])[topic].result(timeout=30)


def fill(bootstrap: str, topic: str, records: int, value_bytes: int) -> Iterator[int]:
    """Write seeded records with keys, evenly over the partitions; yield how many are written so far."""
    chance = random.Random(_SEED)  # noqa: S311  the same records in every run, not a secret
    values = [chance.randbytes(value_bytes) for _ in range(_DISTINCT)]
    producer = Producer(
        {"bootstrap.servers": bootstrap, "linger.ms": 50, "queue.buffering.max.messages": 500_000}
    )
    chunk = 20_000
    for first in range(0, records, chunk):
        for partition in range(PARTITIONS):
            numbers = range(first + partition, min(first + chunk, records), PARTITIONS)
            batch = [{"key": b"key-%d" % (n % 50_000), "value": values[n % _DISTINCT]} for n in numbers]
            producer.produce_batch(topic, batch, partition)
        while len(producer) > 200_000:
            producer.poll(0.1)
        yield min(first + chunk, records)
    producer.flush()


def count(bootstrap: str, topic: str) -> int:
    """Return how many records a ``read_committed`` consumer finds."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "count",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    found = ended = 0
    while ended < PARTITIONS:
        for message in consumer.consume(10_000, 5):
            if message.error():
                ended += 1
            else:
                found += 1
    consumer.close()
    return found
