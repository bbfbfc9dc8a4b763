"""Where runs take place: a broker, a folder for logs, and the topics of each run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import KafkaException
from psycopg import sql

from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.postgres import Postgres
from tests.bench import topics
from tests.bench.peers.visible import Ends
from tests.bench.peers.workloads import Enrich, Workload

_BY_THE_BROKERS_CLOCK = {"message.timestamp.type": "LogAppendTime"}


@dataclass
class Place:
    """Everything that runs share.

    :param folder: for logs, launches and results; stays when all is over.
    :param users: the server with the lookup table, if any case has one.
    """

    broker: KafkaBroker
    folder: Path
    users: Postgres | None = None
    runs: int = field(default=0)

    @property
    def bootstrap(self) -> str:
        """Where clients connect."""
        return self.broker.bootstrap

    def next_name(self, what: str) -> str:
        """Return a name for the next run's topic and folder that no other run has."""
        self.runs += 1
        plain = "".join(letter if letter.isalnum() else "-" for letter in what.lower())
        return f"run-{self.runs}-{'-'.join(filter(None, plain.split('-')))}"

    @contextmanager
    def source(self, name: str, workload: Workload, rows: int, partitions: int) -> Iterator[str]:
        """Keep a filled source topic while the block runs."""
        with self.target(name, partitions):
            for _ in topics.fill(self.bootstrap, name, workload.value, rows, partitions):
                pass
            yield name

    @contextmanager
    def target(self, name: str, partitions: int) -> Iterator[Ends]:
        """Keep an empty topic while the block runs; the broker writes into records when it appended them."""
        topics.create(self.bootstrap, name, partitions, _BY_THE_BROKERS_CLOCK)
        try:
            ends = Ends(self.bootstrap, name, partitions)
            ends.stable()
            os.sync()  # what the run before left unwritten is not this one's
            yield ends
        finally:
            with suppress(KafkaException):
                topics.delete(self.bootstrap, name)


def fill_users(server: Postgres) -> None:
    """Make the lookup table."""
    with server.connect() as connection:
        connection.execute("CREATE TABLE public.users (userid text PRIMARY KEY, region text NOT NULL)")
        insert = sql.SQL("INSERT INTO public.users VALUES (%s, %s)")
        with connection.cursor() as cursor:
            cursor.executemany(insert, Enrich.users())
        connection.execute("ANALYZE public.users")
