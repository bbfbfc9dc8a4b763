"""What stands in a topic, read by plain consumers that know nothing of sinks.

Markers of transactions and aborted rows take offsets too, so a reader is done only when its *position* has
passed the end that the broker named.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Self

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ListOffsetsResultInfo, OffsetSpec

from airflow_provider_sinks.core.progress.record import ProgressKey, ProgressRecord

COMMITTED = "read_committed"
UNCOMMITTED = "read_uncommitted"
SILENT = {"log_level": "0"}
"""For clients that outlive the broker: what they would say then helps nobody."""
_ELECTION_SECONDS = 120.0
_ELECTING = (
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._TIMED_OUT,
    KafkaError._TRANSPORT,
)
_MAKING = threading.Lock()
_READ_SECONDS = 90.0
_BATCH = 10_000


class OpenTransactionError(AssertionError):
    """A reader of committed rows cannot get to the end: somebody left a transaction open."""


@dataclass(frozen=True)
class Record:
    """One record of a topic, where it stands and what it says."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, str | bytes | None], ...] = ()
    at_ms: int = field(default=0, compare=False)


def admin_client(client: tuple[tuple[str, str], ...]) -> AdminClient:
    """Return the one client that may do everything; of two, one would be dropped while it is at work."""
    with _MAKING:
        return _admin_client(client)


@cache
def _admin_client(client: tuple[tuple[str, str], ...]) -> AdminClient:
    return AdminClient({**dict(client), **SILENT})


def end_offsets(client: Mapping[str, str], topic: str, isolation: str = UNCOMMITTED) -> dict[int, int]:
    """Return the end of each partition; with ``COMMITTED`` it is where an open transaction begins."""
    deadline = time.monotonic() + _ELECTION_SECONDS
    while True:
        try:
            return _end_offsets(admin_client(tuple(client.items())), topic, isolation)
        except KafkaException as error:  # a new topic has no leader for a moment; a busy broker is silent
            if error.args[0].code() not in _ELECTING or time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def _end_offsets(admin: AdminClient, topic: str, isolation: str) -> dict[int, int]:
    level = IsolationLevel.READ_COMMITTED if isolation == COMMITTED else IsolationLevel.READ_UNCOMMITTED
    partitions = admin.list_topics(topic, timeout=60).topics[topic].partitions
    wanted = {TopicPartition(topic, number): OffsetSpec.latest() for number in partitions}
    asked = admin.list_offsets(wanted, isolation_level=level, request_timeout=60)
    found: dict[TopicPartition, ListOffsetsResultInfo] = {at: future.result() for at, future in asked.items()}
    return {at.partition: info.offset for at, info in found.items()}


def has_open_transaction(client: Mapping[str, str], topic: str) -> bool:
    """Whether rows are there that are neither committed nor aborted yet.

    The end is asked for first: a reader's end that is still below it then proves an open transaction.
    """
    ends = end_offsets(client, topic)
    return any(end < ends[partition] for partition, end in end_offsets(client, topic, COMMITTED).items())


def read(client: Mapping[str, str], topic: str, isolation: str = COMMITTED) -> list[Record]:
    """Return all records of a topic, each partition in its order.

    :raises OpenTransactionError: when the end is not reached, because a transaction is still open.
    """
    return _read_until(end_offsets(client, topic), client, topic, isolation)


def unfinished_rows(client: Mapping[str, str], topic: str) -> int:
    """Return how many records are there that no reader of committed rows gets, or not yet."""
    visible = _read_until(end_offsets(client, topic, COMMITTED), client, topic, COMMITTED)
    return len(read(client, topic, UNCOMMITTED)) - len(visible)


def _read_until(
    ends: Mapping[int, int], client: Mapping[str, str], topic: str, isolation: str
) -> list[Record]:
    deadline = time.monotonic() + _READ_SECONDS
    records: list[Record] = []
    with _Reader(client, topic, isolation, list(ends)) as reader:
        while any(reader.positions.get(partition, 0) < end for partition, end in ends.items()):
            records += reader.poll()
            if time.monotonic() > deadline:
                raise OpenTransactionError(f"{topic}: only {reader.positions} of {ends} can be read")
    return sorted((r for r in records if r.offset < ends[r.partition]), key=lambda r: (r.partition, r.offset))


def read_progress(client: Mapping[str, str], topic: str) -> list[tuple[str, ProgressRecord]]:
    """Return every record that a progress topic still holds, with its writer, oldest first."""
    found = []
    for record in read(client, topic):
        key = ProgressKey.decode(record.key)
        assert key is not None, f"not a progress key: {record.key!r}"
        assert record.value is not None
        found.append((key.writer, ProgressRecord.decode(record.value)))
    return found


class Onlooker:
    """A reader of committed rows that looks on while things break, and must not see more than remains."""

    def __init__(self, client: Mapping[str, str], topic: str, partitions: int) -> None:
        self.seen: set[Record] = set()
        self._reader = _Reader(client, topic, COMMITTED, list(range(partitions)))
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._look, name="onlooker", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._thread.join()
        self._reader.close()

    def _look(self) -> None:
        while not self._closing.is_set():
            self.seen.update(self._reader.poll())


class _Reader:
    """A consumer without a group, from the beginning of some partitions."""

    def __init__(self, client: Mapping[str, str], topic: str, isolation: str, partitions: list[int]) -> None:
        self.positions: dict[int, int] = {}
        self._consumer = Consumer(
            {
                **client,
                **SILENT,
                "group.id": "faults",
                "enable.auto.commit": "false",
                "enable.partition.eof": "true",
                "auto.offset.reset": "error",
                "isolation.level": isolation,
                "allow.auto.create.topics": "false",
                "fetch.wait.max.ms": "50",
                "check.crcs": "true",
            }
        )
        self._consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])

    def poll(self) -> list[Record]:
        """Return what comes within a moment."""
        return [record for message in self._consumer.consume(_BATCH, 0.2) for record in self._take(message)]

    def close(self) -> None:
        self._consumer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take(self, message: Message) -> Iterator[Record]:
        partition, offset = message.partition(), message.offset()
        error = message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            raise AssertionError(f"cannot read {message.topic()}: {error.str()}")
        assert partition is not None
        assert offset is not None
        self.positions[partition] = offset if error is not None else offset + 1
        headers = message.headers()
        if error is None:
            yield Record(
                partition,
                offset,
                message.key(),
                message.value(),
                tuple(headers) if isinstance(headers, list) else (),
                message.timestamp()[1],
            )
