"""Where fault tests happen: a broker, a Postgres, and what a trial needs of both."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from psycopg import sql

from airflow_provider_sinks.connectors.iceberg.options import IcebergOptions
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.postgres.options import PostgresOptions
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.spec.sink import Writers
from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.postgres import Postgres
from tests import administrator
from tests.faults import feed, quota, topics
from tests.faults.driver import Process, SinkUnderTest
from tests.faults.feed import Feed


def pause(milliseconds: str) -> str:
    """Return a SQL expression that waits without keeping a processor busy, for a job of Spark's own sink.

    Most of an epoch's time then passes between two batches of its input, inside an open transaction. Rows
    must be wide as well, or a socket holds a whole epoch before its worker has read the first row.

    :param milliseconds: for one row, as a SQL expression.
    """
    return f"reflect('java.lang.Thread', 'sleep', CAST({milliseconds} AS BIGINT))"


_SMALL_BATCHES = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20",
    "spark.sql.execution.pandas.udf.buffer.size": "4",  # bytes: each batch reaches its worker at once
}

_COPIED_BYTES_PER_SECOND = 150_000


@dataclass
class World:
    """What the trials of one test run share.

    :param seed: every moment and every choice follows from it and from the trial's name.
    :param rounds: how often each trial kills.
    """

    broker: KafkaBroker
    postgres: Postgres
    folder: Path
    seed: int
    rounds: int
    sinks: list[SinkUnderTest] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)

    @property
    def client(self) -> dict[str, str]:
        """The configuration of a client that may do everything."""
        return {"bootstrap.servers": self.broker.admin_bootstrap}

    @property
    def lake(self) -> IcebergOptions:
        """An Iceberg catalog on the database, with a warehouse of this world."""
        extra = {"warehouse": (self.folder / "warehouse").as_uri()}
        return IcebergOptions.from_connection("lake", **self.postgres.connection_fields, extra=extra)

    def random(self, trial: str) -> random.Random:
        """Return the source of randomness of one trial."""
        return random.Random(f"{self.seed}/{trial}")  # noqa: S311  repeatable, not secret

    @contextmanager
    def with_own_postgres(self, name: str) -> Iterator[World]:
        """Give a world whose Postgres nobody else has, so that it may be killed."""
        with Postgres.start(self.folder / f"postgres {name}") as server:
            yield replace(self, postgres=server)

    def topic(self, name: str, partitions: int = 1) -> str:
        """Make a topic and return its name."""
        full = f"pytest_faults_{name}_{uuid.uuid4().hex[:8]}"
        self.create_topic(full, partitions)
        return full

    def create_topic(self, name: str, partitions: int) -> None:
        """Make a topic."""
        administrator.create_topic(topics.admin_client(tuple(self.client.items())), name, partitions)

    def delete_topic(self, name: str) -> None:
        """Delete a topic."""
        administrator.delete_topic(topics.admin_client(tuple(self.client.items())), name)

    def feed(self, name: str, partitions: int) -> Feed:
        """Make a source topic and what fills it."""
        return Feed(self.client, self.topic(f"{name}-source", partitions), partitions)

    def sink(self, name: str, source: Feed, query: str, **options: object) -> SinkUnderTest:
        """Return a sink that reads ``source``.

        :param query: over the view ``source``, and over ``users`` where it is joined with.
        :param options: of the spec; ``source`` and ``target`` are options of its source and its target.
            A target with a ``mode`` is a Postgres table, one with options of ``iceberg`` or ``delta`` a table
            of these, another one a topic.
        """
        unique = f"{name}-{uuid.uuid4().hex[:8]}"
        kafka = {
            "connection": "kafka",
            "topic": source.topic,
            "schema": feed.SCHEMA,
            "max_offsets_per_epoch": 900,
        }
        lookups = {"users": {"postgres": {"connection": "pg", "table": f"public.{Users.table(unique)}"}}}
        given = {**options}
        spec = {
            "name": unique,
            "source": {"kafka": {**kafka, **_taken(given, "source")}},
            "query": query,
            "target": self._target(unique, _taken(given, "target")),
            "trigger": {"every": "50ms"},
            **({"lookups": lookups} if "users" in query else {}),
            **given,
        }
        sink = SinkUnderTest(spec, self._connections(), self.folder / unique, conf=_SMALL_BATCHES)
        self.sinks.append(sink)
        return sink

    def copy(self, name: str, source: Feed, writers: Writers) -> SinkUnderTest:
        """Return a sink that copies records as they are, and is given them slowly."""
        unique = f"{name}-{uuid.uuid4().hex[:8]}"
        quota.limit_reading(self.broker.admin_bootstrap, unique, _COPIED_BYTES_PER_SECOND)
        slow = KafkaOptions.from_connection_extra({**self.client, "client.id": unique}, "slow")
        read = {
            "connection": "slow",
            "topic": source.topic,
            "format": "bytes",
            "max_offsets_per_epoch": 3_000,
        }
        topic = f"pytest_faults_{unique}"
        partitions = 1 if writers is Writers.SINGLE else source.partitions
        written = {"connection": "kafka", "topic": topic, "partitions": partitions}
        spec = {
            "name": unique,
            "source": {"kafka": read},
            "target": {"kafka": written},
            "trigger": {"every": "50ms"},
            "writers": writers,
        }
        connections = ResolvedConnections({**self._connections().options, "slow": slow})
        sink = SinkUnderTest(spec, connections, self.folder / unique)
        self.sinks.append(sink)
        return sink

    def close(self) -> None:
        """End everything that trials left running."""
        for process in [*self.processes, *(driver for sink in self.sinks for driver in sink.launches)]:
            process.end()

    def _connections(self) -> ResolvedConnections:
        postgres = PostgresOptions.from_connection("pg", **self.postgres.connection_fields, extra={})
        kafka = KafkaOptions.from_connection_extra(self.client, "kafka")
        return ResolvedConnections({"kafka": kafka, "pg": postgres, "lake": self.lake})

    def _target(self, sink: str, options: Mapping[str, object]) -> Mapping[str, object]:
        match options:
            case {"iceberg": dict(given)}:
                table = {"catalog": "lake", "table": f"faults.{sink}", "create": True}
                return {"iceberg": {**table, **given}}
            case {"delta": dict(given)}:
                return {"delta": {"path": str(self.folder / sink / "table"), "create": True, **given}}
            case {"mode": _}:
                return {"postgres": {"connection": "pg", "table": f"public.{sink}", **options}}
        return {"kafka": {"connection": "kafka", "topic": f"pytest_faults_{sink}", "key": ["key"], **options}}


def _taken(options: dict[str, object], name: str) -> Mapping[str, object]:
    found = options.pop(name, {})
    assert isinstance(found, Mapping)
    return found


@dataclass
class Users:
    """A lookup table that changes: each version has other users and another number.

    :param sink: the name of the sink whose lookup it is.
    """

    postgres: Postgres
    sink: str
    keys: list[str]

    @staticmethod
    def table(sink: str) -> str:
        """Return the name of the table of a sink."""
        return f"users_{sink.replace('-', '_')}"

    def change(self, version: int) -> None:
        """Put all users but some at this version; who is left out changes too."""
        table = sql.Identifier("public", self.table(self.sink))
        users = [(key, version) for number, key in enumerate(self.keys) if (number + version) % 5]
        with self.postgres.connect() as connection, connection.cursor() as cursor:
            cursor.execute(
                sql.SQL("CREATE TABLE IF NOT EXISTS {} (key text PRIMARY KEY, version int)").format(table)
            )
            cursor.execute(sql.SQL("TRUNCATE {}").format(table))
            cursor.executemany(sql.SQL("INSERT INTO {} VALUES (%s, %s)").format(table), users)
