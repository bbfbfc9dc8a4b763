"""An independent ``read_committed`` reader: it counts what arrived, and judges each row by its number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from confluent_kafka import Consumer, Message, TopicPartition

from airflow_provider_sinks.local.processes import LocalServiceError
from tests.bench.peers.figures import Audit
from tests.bench.peers.workloads import KEYS, Workload, key, rows_out

_EVERY = 997
"""Key and value of each so many rows are compared as a whole. A prime: every partition has some of them."""
_SILENT_SECONDS = 30


class Examiner:
    """Judges rows as they come.

    :param workload: what they are; ``None`` if they have no numbers and can only be counted.
    :param rows: how many source rows there were.
    """

    def __init__(self, workload: Workload | None, rows: int) -> None:
        self.appended: Counter[int] = Counter()
        self._workload = workload
        self._rows = rows
        self._seen = bytearray(rows)
        self._last = [-1] * KEYS
        self._home = [-1] * KEYS
        self._found = self._doubled = self._wrong = self._out_of_order = 0

    def see(self, row_key: bytes | None, value: bytes, partition: int) -> None:
        """Judge the next row of a partition."""
        self._found += 1
        if self._workload is None:
            return
        number = self._workload.number(value)
        if not 0 <= number < self._rows or not self._workload.arrives(number):
            self._wrong += 1
            return
        self._doubled += self._seen[number]
        self._seen[number] = 1
        self._in_order(number, partition)
        if number % _EVERY == 0:
            self._wrong += row_key != key(number) or not self._workload.is_right(number, value)

    def _in_order(self, number: int, partition: int) -> None:
        which = number % KEYS
        if number < self._last[which] or self._home[which] not in {-1, partition}:
            self._out_of_order += 1
        self._last[which], self._home[which] = number, partition

    def result(self) -> Audit:
        """Return what was found."""
        if self._workload is None:
            missing, doubled = max(0, self._rows - self._found), max(0, self._found - self._rows)
            return Audit(self._found, missing, doubled)
        missing = rows_out(self._workload, self._rows) - sum(self._seen)
        return Audit(self._found, missing, self._doubled, self._wrong, self._out_of_order)


def read(bootstrap: str, topic: str, partitions: int, examiner: Examiner) -> Audit:
    """Read a topic to its end.

    :return: what the examiner found; when rows were appended is in its ``appended``.
    """
    for message in _committed(bootstrap, topic, partitions):
        examiner.appended[message.timestamp()[1]] += 1
        examiner.see(message.key(), message.value() or b"", message.partition() or 0)
    return examiner.result()


def _committed(bootstrap: str, topic: str, partitions: int) -> Iterator[Message]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "queued.max.messages.kbytes": 131_072,
            "fetch.queue.backoff.ms": 5,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    ended = 0
    try:
        while ended < partitions:
            messages = consumer.consume(10_000, _SILENT_SECONDS)
            if not messages:
                raise LocalServiceError(f"the broker was silent for {_SILENT_SECONDS} s", topic)
            for message in messages:
                if message.error():
                    ended += 1
                else:
                    yield message
    finally:
        consumer.close()
