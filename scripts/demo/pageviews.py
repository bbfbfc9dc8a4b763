"""Pageviews and the people who made them: the data of the demo, the same at every run.

It is the motivating example of ksqlDB's KLIP-7: a stream of keyed JSON records in Kafka, and a table to join
them with. One user in ten is a guest who is not in the table, and no two pageviews are equal, so that a lost
row, a doubled one and one with the wrong region can each be told.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from threading import Event
from typing import NamedTuple

import psycopg
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.processes import LocalServiceError

ROWS = 200_000
PARTITIONS = 4
USERS = 1_000
REGIONS = tuple(f"Region_{number}" for number in range(1, 10))

_SEED = 7
_PAGES = 500
_GUEST_EVERY = 10
_FIRST_VIEW_MS = 1_767_225_600_000  # 2026-01-01 00:00:00 UTC
_LONGEST_PAUSE_MS = 40
_DELIVERY_SECONDS = 60.0
_POLL_EVERY = 10_000


class Pageview(NamedTuple):
    """Somebody saw a page.

    :param viewtime: milliseconds since 1970; each is later than the one before.
    """

    viewtime: int
    userid: str
    pageid: str

    @property
    def json(self) -> bytes:
        """The record's value."""
        return b'{"viewtime":%d,"userid":"%s","pageid":"%s"}' % (
            self.viewtime,
            self.userid.encode(),
            self.pageid.encode(),
        )


def pageviews(rows: int = ROWS) -> Iterator[Pageview]:
    """Yield the pageviews in the order of their time."""
    chance = random.Random(_SEED)  # noqa: S311 - nothing secret: it must be the same at every run
    viewtime = _FIRST_VIEW_MS
    for _ in range(rows):
        viewtime += chance.randint(1, _LONGEST_PAUSE_MS)
        yield Pageview(viewtime, f"User_{chance.randrange(USERS)}", f"Page_{chance.randrange(_PAGES)}")


def users() -> Iterator[tuple[str, str]]:
    """Yield the id and the region of each user who is not a guest."""
    chance = random.Random(_SEED)  # noqa: S311 - nothing secret: it must be the same at every run
    for number in range(USERS):
        region = chance.choice(REGIONS)
        if number % _GUEST_EVERY:
            yield f"User_{number}", region


def quiet(broker: KafkaBroker) -> dict[str, str | int | float | bool]:
    """Return the options of a client that keeps its own log to itself: what matters comes as an error."""
    return {**broker.client_config(), "log_level": 0}


def create_topic(broker: KafkaBroker, topic: str, partitions: int = PARTITIONS) -> None:
    """Make a topic of the demo."""
    admin = AdminClient(quiet(broker))
    admin.create_topics([NewTopic(topic, partitions)])[topic].result(timeout=30)


def delete_topic(broker: KafkaBroker, topic: str) -> None:
    """Delete a topic, and return when the broker does not list it any more."""
    admin = AdminClient(quiet(broker))
    admin.delete_topics([topic])[topic].result(timeout=30)
    pause = Event()
    while topic in admin.list_topics(timeout=30).topics:
        pause.wait(0.05)


def fill_topic(
    broker: KafkaBroker, topic: str, cancelled: Event, say: Callable[[str], None], rows: int = ROWS
) -> None:
    """Write all pageviews into a topic, keyed by user.

    :param cancelled: when it is set, the rest is left out.
    :param say: takes how far it is.
    :raises LocalServiceError: when the broker did not take all of them.
    """
    errors: list[str] = []

    def delivered(error: KafkaError | None, _: object) -> None:
        if error is not None:
            errors.append(str(error))

    room_for_all = {"queue.buffering.max.messages": rows}
    producer = Producer({**quiet(broker), **room_for_all, "enable.idempotence": True, "linger.ms": 50})
    for number, view in enumerate(pageviews(rows), start=1):
        producer.produce(topic, view.json, view.userid, on_delivery=delivered)
        if number % _POLL_EVERY == 0:
            producer.poll(0)
            say(f"{number:,} of {rows:,}")
            if cancelled.is_set():
                producer.purge()
                return
    left = producer.flush(_DELIVERY_SECONDS)
    if lost := left + len(errors):
        raise LocalServiceError(f"{lost:,} of {rows:,} pageviews were not written", "; ".join(errors[:3]))


def fill_table(connection: psycopg.Connection) -> int:
    """Make the table ``users`` and return how many are in it."""
    connection.execute("CREATE TABLE users (userid text PRIMARY KEY, region text NOT NULL)")
    rows = list(users())
    with connection.cursor() as cursor, cursor.copy("COPY users FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
    return len(rows)
