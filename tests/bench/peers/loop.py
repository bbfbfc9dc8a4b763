"""Copies partitions to their end: loop.py <bootstrap> <source> <target> <partitions> <rows per commit>"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, Message, Producer, TopicPartition

_AT_ONCE = 10_000
_WAIT_SECONDS = 60


@dataclass
class Loop:
    """One process of it."""

    bootstrap: str
    source: str
    target: str
    partitions: list[int]
    positions: dict[int, int] = field(default_factory=dict)

    def run(self, rows_per_commit: int) -> None:
        """Copy in transactions."""
        consumer, producer = self._consumer(), self._producer()
        producer.init_transactions(_WAIT_SECONDS)
        consumer.assign([TopicPartition(self.source, partition, 0) for partition in self.partitions])
        self.positions = dict.fromkeys(self.partitions, 0)
        ends = {partition: self._end(consumer, partition) for partition in self.partitions}
        while any(self.positions[partition] < end for partition, end in ends.items()):
            producer.begin_transaction()
            copied = 0
            while copied < rows_per_commit and any(self.positions[p] < end for p, end in ends.items()):
                messages = consumer.consume(min(_AT_ONCE, rows_per_commit - copied), 0.1)
                self._produce(producer, messages)
                copied += len(messages)
            self._commit(consumer, producer)
        consumer.close()

    def _end(self, consumer: Consumer, partition: int) -> int:
        return int(consumer.get_watermark_offsets(TopicPartition(self.source, partition), _WAIT_SECONDS)[1])

    def _produce(self, producer: Producer, messages: list[Message]) -> None:
        """Hand rows over by key, as everybody does; a full queue refuses the tail, and marks it."""
        rows: list[dict[str, Any]] = []
        for message in messages:
            if message.error():
                raise SystemExit(str(message.error()))
            rows.append({"key": message.key(), "value": message.value()})
            self.positions[message.partition() or 0] = (message.offset() or 0) + 1
        while rows:
            producer.produce_batch(self.target, rows)
            rows = [row for row in rows if "_error" in row]
            for row in rows:
                del row["_error"]
            producer.poll(0.01 if rows else 0)

    def _commit(self, consumer: Consumer, producer: Producer) -> None:
        offsets = [TopicPartition(self.source, partition, at) for partition, at in self.positions.items()]
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), _WAIT_SECONDS)
        producer.commit_transaction(_WAIT_SECONDS)

    def _consumer(self) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": f"{self.target}-{self.partitions[0]}",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "queued.max.messages.kbytes": 131_072,
                "fetch.queue.backoff.ms": 10,
            }
        )

    def _producer(self) -> Producer:
        return Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "transactional.id": f"{self.target}-{self.partitions[0]}",
                "compression.type": "none",
                "linger.ms": 5,
                "queue.buffering.max.messages": 1_000_000,
                "delivery.report.only.error": True,
            }
        )


if __name__ == "__main__":
    bootstrap, source, target, partitions, rows = sys.argv[1:]
    Loop(bootstrap, source, target, [int(number) for number in partitions.split(",")]).run(int(rows))
