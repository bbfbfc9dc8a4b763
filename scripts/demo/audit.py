"""Read a sink's target back with a consumer of our own, and compare it with what should be in it.

Nothing of the sink is used here: a plain ``read_committed`` consumer, the source topic, the table, and a join
by a dictionary. It finds what any other consumer of the target would find.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import psycopg
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.processes import LocalServiceError
from scripts.demo.pageviews import quiet

_QUIET_SECONDS = 30.0
_WAIT_SECONDS = 0.1
_BATCH = 10_000

Row = tuple[str, str, str | None, str, int]
"""Key, userid, region, pageid, viewtime."""


@dataclass(frozen=True)
class Audit:
    """What stands in the target, beside what should.

    :param missing: rows that should be there and are not.
    :param duplicates: rows that are there more often than they should be.
    :param unexpected: rows that should not be there at all, such as one with a wrong region.
    :param out_of_order: rows that come before an older one of the same key.
    :param epochs: how many epochs committed rows.
    :param seconds: from the first row written to the last.
    :param sample: one record of the target, for people to look at.
    """

    rows_in: int
    rows_out: int
    missing: int
    duplicates: int
    unexpected: int
    out_of_order: int
    epochs: int
    seconds: float
    sample: str = ""

    @property
    def rows_per_second(self) -> float:
        """Rows written per second, between the first and the last."""
        return self.rows_out / self.seconds if self.seconds else 0.0

    @property
    def is_exact(self) -> bool:
        """Every row is there once, right, and in its place."""
        faults = self.missing + self.duplicates + self.unexpected + self.out_of_order
        return faults == 0 and self.rows_in == self.rows_out > 0


def regions_by_user(database: psycopg.Connection) -> dict[str, str]:
    """Return the table ``users``."""
    return dict(database.execute("SELECT userid, region FROM users").fetchall())


def audit(
    broker: KafkaBroker, regions: Mapping[str, str], *, source: str, target: str, progress: str
) -> Audit:
    """Compare the pageviews in ``target`` with those in ``source``.

    :param regions: by user; what the sink joined them with, or nothing.
    :param progress: the sink's progress topic; only its epochs are counted.
    """
    wanted = Counter(_joined(read_committed(broker, source), regions))
    messages = read_committed(broker, target)
    rows = [_row(message) for message in messages]
    found = Counter(rows)
    times = [message.timestamp()[1] for message in messages]
    return Audit(
        rows_in=wanted.total(),
        rows_out=found.total(),
        missing=(wanted - found).total(),
        duplicates=sum(count - wanted[row] for row, count in found.items() if count > wanted[row] > 0),
        unexpected=sum(count for row, count in found.items() if row not in wanted),
        out_of_order=_out_of_order(rows),
        epochs=len(set(_epochs(read_committed(broker, progress)))),
        seconds=(max(times) - min(times)) / 1000 if times else 0.0,
        sample=_shown(messages[-1]) if messages else "",
    )


def read_committed(broker: KafkaBroker, topic: str) -> Sequence[Message]:
    """Return what a ``read_committed`` consumer sees in a topic now, each partition in its order.

    :raises LocalServiceError: when the topic is not there, or the broker falls silent.
    """
    consumer = Consumer(
        {
            **quiet(broker),
            "group.id": "audit",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 50,
            "fetch.queue.backoff.ms": 10,
        }
    )
    try:
        return list(_until_the_end(consumer, topic))
    finally:
        consumer.close()


def _until_the_end(consumer: Consumer, topic: str) -> Iterator[Message]:
    partitions = consumer.list_topics(topic, timeout=_QUIET_SECONDS).topics[topic].partitions
    if not partitions:
        raise LocalServiceError(f'topic "{topic}" is not there')
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in partitions])
    unread = set(partitions)
    while unread:
        messages = consumer.consume(_BATCH, _WAIT_SECONDS) or consumer.consume(1, _QUIET_SECONDS)
        if not messages:
            raise LocalServiceError(f'nothing more came from topic "{topic}" for {_QUIET_SECONDS:.0f} s')
        for message in messages:
            error = message.error()
            if error is None:
                yield message
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - it has no other name
                unread.discard(message.partition())
            else:
                raise KafkaException(error)


def views_of(messages: Iterable[Message]) -> Iterator[tuple[str, str, int]]:
    """Yield userid, pageid and viewtime of each pageview."""
    for message in messages:
        view = json.loads(message.value() or b"{}")
        yield view["userid"], view["pageid"], view["viewtime"]


def _joined(messages: Iterable[Message], regions: Mapping[str, str]) -> Iterator[Row]:
    for message in messages:
        view = json.loads(message.value() or b"{}")
        key = (message.key() or b"").decode()
        yield key, view["userid"], regions.get(view["userid"]), view["pageid"], view["viewtime"]


def _row(message: Message) -> Row:
    value = json.loads(message.value() or b"{}")
    key = (message.key() or b"").decode()
    return key, value.get("userid"), value.get("region"), value.get("pageid"), value.get("viewtime")


def _shown(message: Message) -> str:
    return f"{(message.key() or b'').decode()} -> {(message.value() or b'').decode()}"


def _out_of_order(rows: Iterable[Row]) -> int:
    newest: dict[str, int] = {}
    behind = 0
    for key, _, _, _, viewtime in rows:
        behind += viewtime < newest.get(key, 0)
        newest[key] = max(viewtime, newest.get(key, 0))
    return behind


def _epochs(messages: Iterable[Message]) -> Iterator[tuple[int, int]]:
    for message in messages:
        record = json.loads(message.value() or b"{}")
        if record.get("rows"):
            yield record["generation"], record["epoch"]
