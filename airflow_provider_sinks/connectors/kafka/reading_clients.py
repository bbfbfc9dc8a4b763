"""The clients that a process reads a source with. It keeps those that have read well, for the next ranges.

A client that reads on fetches what follows its range while the rows of the range are committed. What it
holds then is only for who goes on at that very place, and only while the partition has the same leader:
behind a new one, other records may have the offsets of some that were fetched and did not survive.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError

from airflow_provider_sinks.connectors.kafka.client_failures import Complaints
from airflow_provider_sinks.connectors.kafka.connection import client_config
from airflow_provider_sinks.connectors.kafka.fetched import Fetched, RecordConsumer
from airflow_provider_sinks.connectors.kafka.record_path import consumer_kind

if TYPE_CHECKING:
    from airflow_provider_sinks.connectors.kafka.range_reader import RangeReader

READ_ON_MAX = 16
IDLE_MAX = 8
_SETTINGS: dict[str, Any] = {
    "isolation.level": "read_committed",
    "auto.offset.reset": "error",
    "enable.partition.eof": True,
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "allow.auto.create.topics": False,
    "check.crcs": True,
    "fetch.queue.backoff.ms": 1,  # a full queue is looked at again soon: by default that takes a second
    "queued.max.messages.kbytes": 8_192,
    "topic.metadata.propagation.max.ms": 5_000,  # a topic that is not there is told behind it
}
"""As Spark's reader is set."""
_AHEAD = {True: 100_000, False: 5_000}
"""How many records are kept ready: of what is behind a range, few where they are fetched in vain."""


@dataclass(frozen=True)
class Place:
    """Where a client reads next.

    :param leader_epoch: of the partition when that was decided; ``None`` where it is not known.
    """

    partition: int
    offset: int
    leader_epoch: int | None


@dataclass
class ReadingClient:
    """A client, and where it stands.

    :param place: where the next range may begin without a new start; ``None``: nowhere.
    :param rest: what was taken out of it already and lies at or behind that place.
    """

    consumer: RecordConsumer
    complaints: Complaints
    place: Place | None = None
    rest: Fetched | None = field(default=None, repr=False)

    def reads(self, partition: int) -> bool:
        """Whether it stands in a partition."""
        return self.place is not None and self.place.partition == partition

    def go_to(self, place: Place) -> None:
        """Begin to fetch at a place, unless that is under way.

        :raises KafkaException: it cannot be begun.
        """
        if place.leader_epoch is None or self.place != place:
            self.leave()
            self.consumer.start(place.partition, place.offset)
        self.place = None

    def fetch(self, timeout_seconds: float) -> Fetched:
        """Return what comes next; see :class:`.fetched.RecordConsumer`."""
        rest, self.rest = self.rest, None
        return self.consumer.fetch(timeout_seconds) if rest is None else rest

    def said(self, fetched: Fetched) -> Iterator[KafkaError]:
        """Give what librdkafka says in the place of records, or of the whole topic beside them."""
        yield from fetched.errors
        if self.complaints.newest is not None:
            yield self.complaints.newest

    def leave(self) -> None:
        """Fetch no more, and forget what was fetched."""
        self.consumer.stop()
        self.place = self.rest = None

    def close(self) -> None:
        """End the client. Idempotent."""
        self.consumer.close()


_kept: list[tuple[RangeReader, ReadingClient]] = []
_keeping = threading.Lock()


def taken(reader: RangeReader, place: Place) -> ReadingClient:
    """Return the kept client that reads a partition, or one that reads none, or a new one."""
    with _keeping:
        own = [(number, client) for number, (kept, client) in enumerate(_kept) if kept == reader]
        standing = [number for number, client in own if client.reads(place.partition)]
        idle = [number for number, client in own if client.place is None]
        client = _kept.pop((standing + idle)[0])[1] if standing or idle else None
    if client is not None:
        client.complaints.forget()
        return client
    complaints = Complaints()
    ahead = {"queued.min.messages": _AHEAD[reader.reads_on]}
    config = {**client_config(reader.options), **_SETTINGS, **ahead}
    return ReadingClient(consumer_kind()(config, reader.topic, complaints.take), complaints)


def keep(reader: RangeReader, client: ReadingClient) -> None:
    """Keep a client. Where many read on already, it fetches no more; of those that are idle few are kept."""
    with _keeping:
        if sum(kept.place is not None for _, kept in _kept) >= READ_ON_MAX:
            client.leave()
        _kept.append((reader, client))
        idle = [number for number, (_, kept) in enumerate(_kept) if kept.place is None]
        spare = _kept.pop(idle[0])[1] if len(idle) > IDLE_MAX else None
    if spare is not None:
        spare.close()
