"""What a driver leaves behind that was ended hard, and that no reader waits for it."""

from __future__ import annotations

import time
import uuid
from dataclasses import replace

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from airflow_provider_sinks.connectors.kafka import open_transactions
from airflow_provider_sinks.connectors.kafka.open_transactions import abort_open_transactions
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.kafka.spec import KafkaSink, kafka_sink
from airflow_provider_sinks.core.errors import UnavailableError
from airflow_provider_sinks.core.progress.record import DRIVER, ProgressKey, partition_writer
from airflow_provider_sinks.local.broker import KafkaBroker
from tests.live.sink_world import SOURCE_PARTITIONS, SinkWorld

_SECONDS = 15.0
"""Ten times what a launch gives it: here other things run beside it."""
_WRITERS = tuple(partition_writer(partition) for partition in range(SOURCE_PARTITIONS))


@pytest.fixture
def world(broker: KafkaBroker) -> SinkWorld:
    """A sink that was started, and wrote one epoch."""
    made = SinkWorld(broker, f"fenced_{uuid.uuid4().hex[:8]}")
    made.create(made.source)
    made.start()
    made.write(1)
    return made


def _leave_open(world: SinkWorld, *, with_record: bool) -> Producer:
    """Write half an epoch, as a driver that is killed; with its record, as one that was about to commit."""
    producer = world.producer(_WRITERS[0])
    producer.begin_transaction()
    producer.produce(world.data, value=b"half an epoch")
    if with_record:
        assert world.announced is not None
        key = ProgressKey(world.name, _WRITERS[0]).encode()
        producer.produce(world.progress, key=key, value=world.announced.encode(), partition=0)
    assert producer.flush(30) == 0
    return producer


def _is_readable(world: SinkWorld) -> bool:
    """Whether a reader of committed records gets to the end of the data topic."""
    group = {"group.id": uuid.uuid4().hex, "isolation.level": "read_committed"}
    consumer = Consumer({**world.broker.client_config(), **group})
    ends = {}
    for partition in world.admin.list_topics(timeout=60).topics[world.data].partitions:
        place = TopicPartition(world.data, partition)
        committed = consumer.get_watermark_offsets(place, timeout=60)[1]
        ends[partition] = committed == _end(world, partition)
    consumer.close()
    return all(ends.values())


def _end(world: SinkWorld, partition: int) -> int:
    group = {"group.id": uuid.uuid4().hex, "isolation.level": "read_uncommitted"}
    consumer = Consumer({**world.broker.client_config(), **group})
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(world.data, partition), timeout=60)[1])
    finally:
        consumer.close()


@pytest.mark.parametrize("with_record", [False, True], ids=["in-the-middle", "about-to-commit"])
def test_no_reader_hangs_behind_it(world: SinkWorld, with_record: bool) -> None:
    abandoned = _leave_open(world, with_record=with_record)
    before = _is_readable(world)

    started = time.monotonic()
    ended = abort_open_transactions(world.kafka_options(), sink(world), world.run, _WRITERS, _SECONDS)

    assert ended
    assert time.monotonic() - started < _SECONDS + 1
    assert (before, _is_readable(world)) == (False, True)
    with pytest.raises(KafkaException):
        abandoned.commit_transaction(10)
    assert len(world.read(world.data)) == 10


def sink(world: SinkWorld) -> KafkaSink:
    return kafka_sink(world.spec)


def test_a_newer_run_is_not_disturbed(world: SinkWorld) -> None:
    old = world.run
    world.start()
    successor = _leave_open(world, with_record=False)

    ended = abort_open_transactions(world.kafka_options(), sink(world), old, _WRITERS, _SECONDS)
    successor.commit_transaction(10)

    assert not ended
    assert len(world.read(world.data)) == 11


def test_a_newer_run_that_is_announcing_itself_is_not_disturbed(world: SinkWorld) -> None:
    successor = world.producer(DRIVER)
    _announce(world, successor, world.name, run=uuid.uuid4().hex)

    ended = abort_open_transactions(world.kafka_options(), sink(world), world.run, _WRITERS, _SECONDS)
    successor.commit_transaction(30)

    assert not ended


def test_a_newer_run_whose_announcement_lies_behind_an_open_transaction_is_not_disturbed(
    world: SinkWorld,
) -> None:
    _announce(world, world.producer("another"), "another", run=uuid.uuid4().hex)
    successor = world.producer(DRIVER)
    _announce(world, successor, world.name, run=uuid.uuid4().hex)
    successor.commit_transaction(30)

    ended = abort_open_transactions(world.kafka_options(), sink(world), world.run, _WRITERS, _SECONDS)
    successor.begin_transaction()
    successor.produce(world.data, value=b"its first row")
    successor.commit_transaction(30)

    assert not ended


def _announce(world: SinkWorld, producer: Producer, name: str, *, run: str) -> None:
    """Write the record of a sink's driver, and leave its transaction open."""
    assert world.announced is not None
    key, record = ProgressKey(name, DRIVER), replace(world.announced, run=run)
    producer.begin_transaction()
    producer.produce(world.progress, key=key.encode(), value=record.encode(), partition=0)
    assert producer.flush(30) == 0


def test_brokers_that_answer_too_slowly_to_say_who_is_in_force_fence_no_newer_run(
    world: SinkWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_transactions, "_READ_SHARE", 0.0001)
    old = world.run
    world.start()
    successor = _leave_open(world, with_record=False)

    with pytest.raises(UnavailableError):
        abort_open_transactions(world.kafka_options(), sink(world), old, _WRITERS, _SECONDS)
    successor.commit_transaction(10)

    assert len(world.read(world.data)) == 11


def test_many_writers_fit_into_the_time(world: SinkWorld) -> None:
    many = [partition_writer(partition) for partition in range(64)]

    started = time.monotonic()
    ended = abort_open_transactions(world.kafka_options(), sink(world), world.run, many, _SECONDS)

    assert ended
    assert time.monotonic() - started < 2 * _SECONDS


def test_a_broker_that_is_away_is_said_in_time(world: SinkWorld) -> None:
    nowhere = KafkaOptions.from_connection_extra({"bootstrap.servers": "127.0.0.1:1"}, "dst")

    started = time.monotonic()
    with pytest.raises(UnavailableError):
        abort_open_transactions(nowhere, sink(world), world.run, _WRITERS, 1.5)

    assert time.monotonic() - started < _SECONDS
