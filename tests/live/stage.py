"""Where the sinks of a test live: a broker with topics of its own, a database, and the shared driver."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from airflow_provider_sinks.clients.schema_registry.options import RegistryOptions
from airflow_provider_sinks.connectors.iceberg.options import IcebergOptions
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.kafka.spec import kafka_sink
from airflow_provider_sinks.connectors.postgres.options import PostgresOptions
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.errors import ExitCode
from airflow_provider_sinks.core.launch.status import SinkStatus
from airflow_provider_sinks.core.progress.record import ProgressRecord
from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.streaming import driver_share
from tests import administrator
from tests.faults import topics
from tests.faults.driver import APPLICATION, Driver, SinkUnderTest, submit
from tests.faults.topics import Record
from tests.live.shared_driver import SharedDriver

WHO_WRITES = [
    pytest.param(driver_share.ROWS_MAX, id="the driver writes"),
    pytest.param(0, id="executors write"),
]
"""For tests of what must be the same either way: ``parametrize("stage", WHO_WRITES, indirect=True)``."""

KeyValue = tuple[str | bytes | None, str | bytes | None]


@dataclass
class Sink(SinkUnderTest):
    """A sink whose launches run in the shared driver, or with ``start`` in one of their own."""

    host: SharedDriver | None = None
    driver_rows: int | None = None

    @property
    def out(self) -> str:
        """The data topic."""
        return kafka_sink(self.parsed).target.kafka.topic

    @property
    def source(self) -> str:
        """The source topic."""
        return self.parsed.source.kafka.topic

    @property
    def progress(self) -> str:
        """The progress topic."""
        return kafka_sink(self.parsed).progress_topic

    @staticmethod
    def code(refused: SinkStatus, way: str) -> str:
        """Return the accept code that a refusal offers for a way on."""
        assert refused.error is not None
        return next(word for word in refused.error.hint.split('"') if word.startswith(f"{way}-"))

    def submit(self, *arguments: str) -> Driver:
        """Launch the sink in a driver of its own, with more arguments for spark-submit."""
        files = self.prepare()
        application = [str(APPLICATION), "--launch", str(files.directory)]
        process = submit(
            "driver", files.directory, "--master", self.master, *arguments, *application, conf=self.conf
        )
        self.launches.append(Driver(process, files))
        return self.launches[-1]

    def launch(self, accept: str | None = None) -> Driver:
        """Launch the sink once more in the shared driver."""
        assert self.host is not None
        launched = self.host.run(self.prepare(accept), self.driver_rows)
        self.launches.append(launched)
        return launched

    def run(self, accept: str | None = None) -> SinkStatus:
        """Launch the sink, expect it to end well, and return its last status."""
        launched = self.launch(accept)
        code, status = launched.wait(), launched.status
        assert status is not None
        assert code == ExitCode.OK, str(status.error)
        return status

    def fail(self, code: ExitCode, accept: str | None = None) -> SinkStatus:
        """Launch the sink, expect it to end with this code, and return its last status."""
        launched = self.launch(accept)
        ended, status = launched.wait(), launched.status
        assert status is not None
        assert ended == code, f"exit code {ended}: {status.error}"
        return status


@dataclass
class Stage:
    """What the sinks of one test stand on.

    :param broker: the real broker.
    :param postgres: the real database.
    :param folder: for launches and checkpoints.
    :param user: the user of a broker that demands one; sinks connect as this user.
    :param driver_rows: how small an epoch must be to be written by the driver itself.
    """

    broker: KafkaBroker
    postgres: Postgres
    host: SharedDriver
    folder: Path
    user: str | None = None
    driver_rows: int | None = None
    sinks: list[Sink] = field(default_factory=list)
    registry: RegistryOptions | None = None

    @property
    def client(self) -> dict[str, str]:
        """The configuration of a client that may do everything."""
        return {name: str(value) for name, value in self.broker.client_config().items()}

    @property
    def admin(self) -> AdminClient:
        """A client that may do everything."""
        return topics.admin_client(tuple(self.client.items()))

    def topic(self, suffix: str, partitions: int = 1, **config: str) -> str:
        """Make a topic."""
        name = f"pytest_sink-job_{suffix}_{uuid.uuid4().hex[:8]}"
        self.create_topic(name, partitions, **config)
        return name

    def create_topic(self, name: str, partitions: int = 1, **config: str) -> None:
        """Make a topic of this name."""
        administrator.create_topic(self.admin, name, partitions, **config)

    def delete_topic(self, name: str) -> None:
        """Delete a topic, and return when nobody sees it any more."""
        administrator.delete_topic(self.admin, name)

    def grow_topic(self, name: str, partitions: int) -> None:
        """Add partitions to a topic until it has so many."""
        administrator.grow_topic(self.admin, name, partitions)

    def remove_records(self, topic: str, first: Mapping[int, int]) -> None:
        """Remove the records before these offsets (by partition), as retention does."""
        administrator.remove_records(self.admin, topic, first)

    def configure_topic(self, name: str, option: str, value: str) -> None:
        """Change one option of a topic."""
        administrator.configure_topic(self.admin, name, {option: value})

    def end_offsets(self, sink: Sink) -> dict[str, dict[int, int]]:
        """Return the ends of those topics of a sink that are there."""
        there = self.topics() & {sink.source, sink.out, sink.progress}
        return {name: topics.end_offsets(self.client, name) for name in there}

    def topics(self) -> set[str]:
        """Return the names of all topics but the broker's own."""
        return administrator.names(self.admin)

    def source(self, suffix: str, records: Mapping[int, Sequence[KeyValue]]) -> str:
        """Make a topic with these records in each of its partitions."""
        name = self.topic(f"{suffix}-source", len(records))
        self.produce(name, ((partition, *record) for partition, held in records.items() for record in held))
        return name

    def produce(
        self,
        topic: str,
        records: Iterable[tuple[int, str | bytes | None, str | bytes | None]],
        **options: str | int,
    ) -> None:
        """Append records, given as partition, key and value; any number, for a full queue is waited for.

        :param options: of the producer.
        """
        producer = Producer({**self.client, "linger.ms": "5", **options})
        for partition, key, value in records:
            while True:
                try:
                    producer.produce(topic, key=key, value=value, partition=partition)
                    break
                except BufferError:
                    producer.poll(0.05)
        assert producer.flush(60) == 0

    def read(self, topic: str) -> list[Record]:
        """Return what a reader of committed records gets."""
        return topics.read(self.client, topic)

    def progress(self, sink: Sink) -> list[tuple[str, ProgressRecord]]:
        """Return every progress record of a sink with its writer, oldest first."""
        return topics.read_progress(self.client, kafka_sink(sink.parsed).progress_topic)

    def sink(self, suffix: str, source: str, **spec: object) -> Sink:
        """Return a sink that reads ``source``; it takes what is there and ends.

        :param spec: options of the spec; ``source`` and ``target`` are those of Kafka's.
        """
        name = f"{suffix}-{uuid.uuid4().hex[:8]}"
        return self.named_sink(name, source, **spec)

    def named_sink(self, name: str, source: str, **spec: object) -> Sink:
        """Return a sink of this name."""
        given = {"connection": "kafka", **_mapping(spec.pop("from_", {}))}
        target = {"connection": "kafka", "topic": f"pytest_sink-job_{name}", **_mapping(spec.pop("to", {}))}
        whole = {
            "name": name,
            "source": {"kafka": {"topic": source, **given}},
            "target": {"kafka": target},
            **spec,
        }
        sink = Sink(
            whole, self.connections(), self.folder / name, host=self.host, driver_rows=self.driver_rows
        )
        self.sinks.append(sink)
        return sink

    def connections(self) -> ResolvedConnections:
        """Return what the sinks' connections stand for: ``kafka``, ``pg``, ``lake``, and a ``registry``."""
        postgres = PostgresOptions.from_connection("pg", **self.postgres.connection_fields, extra={})
        kafka = KafkaOptions.from_connection_extra(self.broker.client_config(self.user), "kafka")
        registry = {"registry": self.registry} if self.registry is not None else {}
        return ResolvedConnections({"kafka": kafka, "pg": postgres, "lake": self.lake, **registry})

    @property
    def lake(self) -> IcebergOptions:
        """An Iceberg catalog on the database, its warehouse beside the database's own folder."""
        extra = {"warehouse": f"file://{self.postgres.log.parent / 'warehouse'}"}
        return IcebergOptions.from_connection("lake", **self.postgres.connection_fields, extra=extra)

    def close(self) -> None:
        """End what the test left running."""
        for sink in self.sinks:
            for launched in sink.launches:
                launched.end()


def _mapping(given: object) -> Mapping[str, object]:
    assert isinstance(given, Mapping)
    return given
