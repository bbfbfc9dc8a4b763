"""Who holds the ids of a sink: an old prefix, another progress topic, another connection, another owner."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pytest
from confluent_kafka import KafkaException, Producer

from airflow_provider_sinks.connectors.kafka.broker_memory import BrokerMemory, TransactionalIdFacts
from airflow_provider_sinks.connectors.kafka.coordinators import broker_memory
from airflow_provider_sinks.connectors.kafka.driver_records import DriverRecords
from airflow_provider_sinks.connectors.kafka.transactions import fence
from airflow_provider_sinks.core.decision.verdict import VerdictKind
from airflow_provider_sinks.core.errors import FencedError
from airflow_provider_sinks.core.progress.record import DRIVER, partition_writer
from airflow_provider_sinks.local.broker import KafkaBroker
from tests.live.sink_world import SinkWorld
from tests.live.stage import Stage

WRITER = partition_writer(0)


@pytest.fixture
def world(broker: KafkaBroker) -> SinkWorld:
    """A sink that was started, and wrote one epoch."""
    made = SinkWorld(broker, f"ids_{uuid.uuid4().hex[:8]}")
    made.create(made.source)
    made.start()
    made.write(1, writer=WRITER)
    return made


def zombie(world: SinkWorld) -> Producer:
    """Return a writer that was frozen between its rows and its commit."""
    producer = world.producer(WRITER)
    producer.begin_transaction()
    producer.produce(world.data, value=b"doubled")
    assert producer.flush(30) == 0
    return producer


def test_a_zombie_under_the_old_prefix_cannot_commit(world: SinkWorld) -> None:
    woken = zombie(world)
    world.options = {"transactional_id_prefix": "other"}

    assert world.start().kind is VerdictKind.RESUME

    with pytest.raises(KafkaException):
        woken.commit_transaction(30)
    assert b"doubled" not in [value for _, value in world.read(world.data)]


def test_the_record_names_every_id_that_was_ever_used_whole(world: SinkWorld) -> None:
    for prefix in ("second", "third"):
        world.options = {"transactional_id_prefix": prefix}
        world.start()

    driver = world.observe().known.driver

    assert driver is not None
    assert {f"{prefix}.{world.name}.{WRITER}" for prefix in ("sinks", "second", "third")} <= set(driver.ids)


def test_ids_of_a_release_that_did_not_record_them_are_fenced_too(world: SinkWorld) -> None:
    assert world.announced is not None
    world.commit(DRIVER, replace(world.announced, ids=(), epoch=1))
    woken = zombie(world)
    world.options = {"transactional_id_prefix": "other"}

    world.start()

    with pytest.raises(KafkaException):
        woken.commit_transaction(30)


def test_the_job_fences_the_ids_of_the_recorded_prefix(stage: Stage) -> None:
    source = stage.source("prefix", {0: [("k", "v0")]})
    sink = stage.sink("prefix", source, from_={"format": "text"}, transactional_id_prefix="before")
    sink.run()
    woken = Producer({**stage.client, "transactional.id": f"before.{sink.parsed.name}.p0"})
    woken.init_transactions(30)
    woken.begin_transaction()
    woken.produce(sink.out, value=b"doubled")
    woken.flush(30)
    stage.produce(source, [(0, "k", "v1")])
    sink.spec = {**sink.spec, "transactional_id_prefix": "after"}

    sink.run()

    with pytest.raises(KafkaException):
        woken.commit_transaction(30)
    assert [record.value for record in stage.read(sink.out)] == [b"v0", b"v1"]
    newest = dict(stage.progress(sink))[DRIVER]
    assert {f"{prefix}.{sink.parsed.name}.p0" for prefix in ("before", "after")} <= set(newest.ids)


def test_a_writer_stops_when_another_start_of_the_name_has_taken_the_drivers_id(world: SinkWorld) -> None:
    """With its progress in another topic, so that the records of this one say nothing of it."""
    driver = DriverRecords(world.kafka_run())
    run = world.factory(holder=driver.holder)
    before = run.prepare(WRITER)
    before.open()
    other = SinkWorld(world.broker, world.name, {"progress": f"ids_other_{uuid.uuid4().hex[:8]}"})
    DriverRecords(replace(other, announced=world.announced, run="another").kafka_run()).close()

    with pytest.raises(FencedError, match="holds its transactional ids"):
        run.prepare(WRITER).open()

    before.close()
    driver.close()


def test_a_writer_that_was_frozen_looks_before_it_commits(
    world: SinkWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here under another prefix, which nothing has fenced: only the look can stop it."""
    monkeypatch.setattr("airflow_provider_sinks.connectors.kafka.writer._LOOK_AGAIN_SECONDS", 0.0)
    record = world.observe().known.current[WRITER]
    frozen = world.factory(prefix="unfenced").prepare(WRITER)
    frozen.open()
    frozen.begin_epoch(1)
    world.start()

    with pytest.raises(FencedError, match="took over"):
        frozen.pre_commit(record)

    frozen.close()


def test_the_same_cluster_by_another_connection_is_the_same_sink(world: SinkWorld) -> None:
    woken = zombie(world)
    world.options = {"source": f"dst/{world.source}", "target": f"src/{world.data}"}

    assert world.start().kind is VerdictKind.RESUME

    with pytest.raises(KafkaException):
        woken.commit_transaction(30)


def test_what_a_coordinator_says_after_each_act(world: SinkWorld) -> None:
    """The facts that :mod:`airflow_provider_sinks.connectors.kafka.broker_memory` is built on."""
    name = f"pytest.{uuid.uuid4().hex}.p0"
    options = world.kafka_options()

    def told() -> TransactionalIdFacts | None:
        return broker_memory(options, {WRITER: name}).ids.get(WRITER)

    assert told() is None
    fence(options, [name])
    once = told()
    assert once is not None
    assert (once.state, once.epoch) == ("Empty", 0)
    producer = Producer({**world.broker.client_config(), "transactional.id": name})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(world.data, b"x")
    producer.commit_transaction(30)
    committed = told()
    assert committed is not None
    assert committed.has_committed
    assert committed.epoch == 1
    fence(options, [name])
    since = told()
    assert since is not None
    assert (since.state, since.epoch) == ("Empty", 2)


def test_a_broker_that_cannot_be_asked_gives_a_reason(world: SinkWorld) -> None:
    nowhere = replace(world.kafka_options(), options={"bootstrap.servers": "127.0.0.1:1"})

    assert broker_memory(nowhere, {WRITER: "x"}) == BrokerMemory(reason="the connection was refused")
