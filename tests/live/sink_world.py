"""One sink on a real broker, run by hand: what the job does to topics and progress, without Spark.

It observes, decides and acts as a start does, and writes rows with their progress record in one transaction,
so that a test can break something in between and look at what the next start makes of it.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cached_property
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from airflow_provider_sinks.connectors.kafka.factory import KafkaWriterFactory
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.kafka.run import KafkaRun, KafkaTopics
from airflow_provider_sinks.connectors.kafka.spec import kafka_sink
from airflow_provider_sinks.connectors.kafka.transactional_ids import IdsToFence, ids_to_fence
from airflow_provider_sinks.connectors.kafka.transactions import (
    fence,
    producer_config,
    transactional_id,
    warm_up,
)
from airflow_provider_sinks.connectors.observer import SinkObserver
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.decision.decide import decide
from airflow_provider_sinks.core.decision.facts import Observation, Role
from airflow_provider_sinks.core.decision.start_request import start_request
from airflow_provider_sinks.core.decision.verdict import Verdict
from airflow_provider_sinks.core.progress.history import EARLIEST, History
from airflow_provider_sinks.core.progress.record import (
    DRIVER,
    SINGLE_WRITER,
    ProgressKey,
    ProgressRecord,
    WriterId,
    partition_writer,
)
from airflow_provider_sinks.core.progress.witness import Witness
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.local.broker import KafkaBroker
from tests import administrator

SOURCE_PARTITIONS = 2


@dataclass
class SinkWorld:
    """A sink with its topics.

    :param broker: where everything is, unless ``source_broker`` says otherwise.
    :param name: the sink's name; its topics are named after it.
    :param options: changes to the spec.
    """

    broker: KafkaBroker
    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    owner: str = "us"
    source_broker: KafkaBroker | None = None
    user: str | None = None
    run: str = ""
    announced: ProgressRecord | None = None
    producers: dict[WriterId, Producer] = field(default_factory=dict)

    @property
    def spec(self) -> SinkSpec:
        fields = {"name": self.name, "source": f"src/{self.source}", "target": f"dst/{self.data}"}
        return SinkSpec.parse({**fields, **self.options})

    @property
    def source(self) -> str:
        return f"{self.name}_in"

    @property
    def data(self) -> str:
        return f"{self.name}_out"

    @property
    def dead_letter(self) -> str:
        return f"{self.name}_dlq"

    @property
    def progress(self) -> str:
        return kafka_sink(self.spec).progress_topic

    def factory(self, **changes: object) -> KafkaWriterFactory:
        """Return what the writers of the announced run are made by.

        :param changes: to the fields of the run.
        """
        return KafkaWriterFactory(self.kafka_run(**changes), "none")

    def kafka_run(self, **changes: object) -> KafkaRun:
        """Return the announced run.

        :param changes: to its fields.
        """
        assert self.announced is not None
        made = KafkaRun(
            sink=self.name,
            run=self.run,
            generation=self.announced.generation,
            prefix=kafka_sink(self.spec).transactional_id_prefix,
            topics=KafkaTopics(self.data, self.progress, None, self.source),
            transaction_timeout=timedelta(seconds=30),
            options=self.kafka_options(),
        )
        return replace(made, **changes)  # type: ignore[arg-type]

    @cached_property
    def admin(self) -> AdminClient:
        return AdminClient(self.broker.client_config())

    def kafka_options(self) -> KafkaOptions:
        return KafkaOptions.from_connection_extra(self.broker.client_config(self.user), "dst")

    def connections(self) -> ResolvedConnections:
        source = (self.source_broker or self.broker).client_config(
            self.user if not self.source_broker else None
        )
        return ResolvedConnections(
            {"src": KafkaOptions.from_connection_extra(source, "src"), "dst": self.kafka_options()}
        )

    # What an administrator does.

    def create(self, topic: str, partitions: int = SOURCE_PARTITIONS, **config: str) -> None:
        admin = self.admin
        if self.source_broker and topic == self.source:
            admin = AdminClient(self.source_broker.client_config())
        administrator.create_topic(admin, topic, partitions, **config)

    def delete(self, topic: str) -> None:
        administrator.delete_topic(self.admin, topic)

    def topics(self) -> set[str]:
        return {name for name in administrator.names(self.admin) if self.name in name}

    def topic_id(self, topic: str) -> str:
        return self.identify()[topic]

    def identify(self) -> dict[str, str]:
        with SinkObserver(self.spec, self.connections()) as observer:
            return {facts.name: facts.id for facts in observer.identify().values()}

    # What a start does.

    def observe(self) -> Observation:
        with SinkObserver(self.spec, self.connections()) as observer:
            return observer.observe()

    def decide(self, accept: str | None = None, witness: Witness | None = None, **changes: Any) -> Verdict:
        return decide(
            self.observe(), replace(start_request(self.spec, self.owner, witness), **changes), accept
        )

    def start(self, accept: str | None = None, witness: Witness | None = None, **changes: Any) -> Verdict:
        """Go through a start: look, fence, decide, ensure, announce."""
        asked = replace(start_request(self.spec, self.owner, witness), **changes)
        with SinkObserver(self.spec, self.connections()) as observer:
            looked = observer.observe()
            if not decide(looked, asked, accept).goes_on:
                return decide(looked, asked, accept)
            fence(self.kafka_options(), self.ids(looked.known).all)
            verdict = decide(observer.observe(), asked, accept)
            if verdict.goes_on:
                for action in verdict.actions:
                    observer.connector.ensure(action)
                self.announce(verdict, observer.observe())
        return verdict

    def announce(self, verdict: Verdict, seen: Observation) -> None:
        history = seen.known
        resumes = history.generation == verdict.generation
        positions = verdict.positions if verdict.positions is not None else dict(seen.source.low)
        positions = {p: seen.source.low[p] if at == EARLIEST else at for p, at in positions.items()}
        self.run = uuid.uuid4().hex
        self.announced = ProgressRecord(
            generation=verdict.generation, owner=self.owner, run=self.run, epoch=verdict.epoch,
            from_=positions, to=positions, identities=seen.identities(),
            checkpoint=f"/checkpoints/{verdict.generation}-{self.run}", spec=self.spec.to_json(),
            writers=tuple(sorted({*history.writers_ever, *self.writers()})),
            ids=tuple(sorted(self.ids(history).all)),
            totals=history.totals() if resumes else {},
            rows_before=verdict.rows_before, dead_before=verdict.dead_before,
            leader_epochs=seen.source.leader_epochs_at(positions),
        )  # fmt: skip
        self.commit(DRIVER, self.announced)

    # What writers do.

    def writers(self) -> tuple[WriterId, ...]:
        return DRIVER, SINGLE_WRITER, *map(partition_writer, range(SOURCE_PARTITIONS))

    def transactional_id(self, writer: WriterId) -> str:
        return transactional_id(kafka_sink(self.spec).transactional_id_prefix, self.name, writer)

    def ids(self, history: History) -> IdsToFence:
        return ids_to_fence(kafka_sink(self.spec).transactional_id_prefix, self.name, self.writers(), history)

    def producer(self, writer: WriterId) -> Producer:
        config = producer_config(
            self.kafka_options(), self.transactional_id(writer), self.spec.transaction_timeout
        )
        producer = Producer(config)
        warm_up(producer)
        producer.init_transactions(30)
        return producer

    def write(
        self, epoch: int, rows: int = 10, dead: int = 0, writer: WriterId = SINGLE_WRITER, **changes: Any
    ) -> ProgressRecord:
        """Write an epoch: each moves every source partition on by ten offsets, which are filled up."""
        self.fill(10 * epoch)
        reached = self.observe().source.leader_epochs_at(dict.fromkeys(range(SOURCE_PARTITIONS), 10 * epoch))
        return self.write_beyond(epoch, rows, dead, writer, **{"leader_epochs": reached, **changes})

    def fill(self, end: int) -> None:
        """Append records to each source partition until it ends there."""
        producer = Producer((self.source_broker or self.broker).client_config())
        for partition, high in self.observe().source.high.items():
            for number in range(high, end):
                producer.produce(self.source, value=str(number), partition=partition)
        assert producer.flush(30) == 0

    def write_beyond(
        self, epoch: int, rows: int = 10, dead: int = 0, writer: WriterId = SINGLE_WRITER, **changes: Any
    ) -> ProgressRecord:
        """Write an epoch, whatever the source has."""
        assert self.announced is not None
        history = self.observe().known
        rows_before, dead_before = history.totals().get(writer, (0, 0))
        record = replace(
            self.announced, epoch=epoch, batch=epoch - 1, rows=rows, spec="", writers=(), ids=(), totals={},
            rows_total=rows_before + rows, dead_total=dead_before + dead,
            from_=dict.fromkeys(range(SOURCE_PARTITIONS), 10 * (epoch - 1)),
            to=dict.fromkeys(range(SOURCE_PARTITIONS), 10 * epoch), **{"leader_epochs": {}, **changes},
        )  # fmt: skip
        self.commit(writer, record, rows, dead)
        return record

    def commit(self, writer: WriterId, record: ProgressRecord, rows: int = 0, dead: int = 0) -> None:
        """Commit rows, dead letters and their record in one transaction."""
        producer = self.producer(writer)
        producer.begin_transaction()
        for row in range(rows):
            producer.produce(self.data, key=str(row), value=f"{record.epoch}/{row}")
        for row in range(dead):
            producer.produce(self.dead_letter, value=f"{record.epoch}/{row}")
        key = ProgressKey(self.name, writer).encode()
        producer.produce(self.progress, key=key, value=record.encode(), partition=0)
        producer.commit_transaction(30)

    def put(self, key: bytes, value: bytes | None) -> None:
        """Put anything into the progress topic, as a stranger would."""
        producer = Producer(self.broker.client_config())
        producer.produce(self.progress, key=key, value=value, partition=0)
        assert producer.flush(30) == 0

    def witness(self) -> Witness:
        """Return what Airflow would remember now."""
        history = self.observe().known
        assert history.identities is not None
        return Witness(
            generation=history.generation, epoch=history.epoch, rows=history.rows_total,
            offsets=history.known_positions(), identities=history.identities, owner=self.owner, launch=1,
            at="then",
        )  # fmt: skip

    # What a reader sees.

    def read(self, topic: str) -> list[tuple[bytes | None, bytes | None]]:
        """Return keys and values of everything that is committed, read by a client of its own."""
        config = {**self.broker.client_config(), "group.id": uuid.uuid4().hex, "enable.partition.eof": True}
        consumer = Consumer({**config, "isolation.level": "read_committed", "auto.offset.reset": "earliest"})
        partitions = self.admin.list_topics(timeout=60).topics[topic].partitions
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        found, open_partitions = [], len(partitions)
        while open_partitions:
            message = consumer.poll(10)
            assert message is not None, "no end of the partition within 10 s"
            error = message.error()
            if error is None:
                found.append((message.key(), message.value()))
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                open_partitions -= 1
        consumer.close()
        return found

    def created(self, verdict: Verdict) -> set[Role]:
        return {action.role for action in verdict.actions}
