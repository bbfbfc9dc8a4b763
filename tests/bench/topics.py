"""The records that all arms copy, and counting what arrived."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

PARTITIONS = 4


@dataclass(frozen=True)
class Topics:
    """See :class:`.rounds.Place`."""

    bootstrap: str

    def create(self, target: str) -> None:
        create(self.bootstrap, target, PARTITIONS)

    def count(self, target: str) -> int:
        return count(self.bootstrap, target)

    def delete(self, target: str) -> None:
        delete(self.bootstrap, target)


def create(bootstrap: str, topic: str, partitions: int, config: Mapping[str, str] | None = None) -> None:
    """Make a topic."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    made = admin.create_topics([NewTopic(topic, partitions, config=dict(config or {}))])
    made[topic].result(timeout=30)


def delete(bootstrap: str, topic: str) -> None:
    """Delete a topic, so that the next run has the disk for itself."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    admin.delete_topics([topic])[topic].result(timeout=30)


def fill(
    bootstrap: str, topic: str, value: Callable[[int], bytes], records: int, partitions: int
) -> Iterator[int]:
    """Write records with keys, evenly over the partitions; yield how many are written so far.

    :param value: of the record with a number.
    """
    producer = Producer(
        {"bootstrap.servers": bootstrap, "linger.ms": 50, "queue.buffering.max.messages": 500_000}
    )
    chunk = 20_000
    for first in range(0, records, chunk):
        for partition in range(partitions):
            numbers = range(first + partition, min(first + chunk, records), partitions)
            batch = [{"key": b"key-%d" % (n % 50_000), "value": value(n)} for n in numbers]
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
