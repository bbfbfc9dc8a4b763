"""The Kafka client on real brokers: sees three-valued, creates nothing by looking, says what is wrong."""

from __future__ import annotations

import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from airflow_provider_sinks.connectors.kafka import progress_log
from airflow_provider_sinks.connectors.kafka.broker_memory import BrokerMemory
from airflow_provider_sinks.connectors.kafka.creation import CreateTopic, progress_topic
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.kafka.progress_log import ProgressLog, read_timeout_seconds
from airflow_provider_sinks.connectors.kafka.topics import KafkaClient
from airflow_provider_sinks.connectors.kafka.transactions import (
    fence,
    producer_config,
    transactional_id,
    warm_up,
)
from airflow_provider_sinks.connectors.observer import SinkObserver
from airflow_provider_sinks.core.decision.facts import Existence, Role
from airflow_provider_sinks.core.decision.verdict import VerdictKind
from airflow_provider_sinks.core.errors import (
    AuthenticationError,
    ConfigurationError,
    SinkError,
    UnavailableError,
)
from airflow_provider_sinks.core.progress.history import NO_HISTORY
from airflow_provider_sinks.core.progress.record import DRIVER, ProgressKey, ProgressRecord
from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.listeners import Mechanism, Sasl
from airflow_provider_sinks.local.ports import free_port
from tests import administrator
from tests.facts import record
from tests.live.sink_world import SinkWorld
from tests.support import TopicFactory, until

USER = "sinks-user"
TIMEOUT = timedelta(seconds=60)
_SOON_SECONDS = 120.0
"""What takes a second or two, on a machine that has something else to do too."""
_PATIENT_SECONDS = 300.0


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A broker that demands a user, allows only what ACLs say, and makes topics that a client asks for."""
    sasl = Sasl(Mechanism.PLAIN, {USER: "right"})
    folder = tmp_path_factory.mktemp("guarded") / "kafka"
    with KafkaBroker.start(folder, sasl=sasl, authorizer=True, auto_create=True) as running:
        yield running


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[KafkaBroker]:
    """A broker of the test's own, to be killed or frozen."""
    with KafkaBroker.start(tmp_path / "kafka") as running:
        yield running


def options(broker: KafkaBroker, user: str | None = None, **changes: str) -> KafkaOptions:
    return KafkaOptions.from_connection_extra({**broker.client_config(user), **changes}, "kafka_test")


def listed(broker: KafkaBroker) -> set[str]:
    return set(AdminClient(broker.client_config()).list_topics(timeout=60).topics)


def own(suffix: str = "") -> str:
    return f"pytest_client_{uuid.uuid4().hex[:8]}{suffix}"


def allow(
    broker: KafkaBroker,
    name: str,
    *operations: AclOperation,
    kind: ResourceType = ResourceType.TOPIC,
    pattern: ResourcePatternType = ResourcePatternType.LITERAL,
) -> None:
    admin = AdminClient(broker.client_config())
    for operation in operations:
        grant = AclBinding(kind, name, pattern, f"User:{USER}", "*", operation, AclPermissionType.ALLOW)
        administrator.grant(admin, [grant])


T = TypeVar("T")


def eventually(look: Callable[[], T], holds: Callable[[T], bool]) -> T:
    """Look until something holds: a broker takes a grant over some time after it has answered."""
    deadline = time.monotonic() + 20
    while not holds(found := look()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


# Looking.


def test_a_topic_is_seen_with_its_id_and_offsets(kafka_options: KafkaOptions, topic: TopicFactory) -> None:
    name = topic("data", partitions=2)
    producer = Producer(kafka_options.librdkafka())
    producer.produce(name, b"x", partition=1)
    producer.flush(_SOON_SECONDS)

    with KafkaClient(kafka_options) as client:
        facts = client.observe_topics([name])[name]
        cluster_id = client.cluster_id()

    assert (facts.existence, facts.partitions, facts.replication_factor) == (Existence.PRESENT, 2, 1)
    assert (dict(facts.low), dict(facts.high), facts.records) == ({0: 0, 1: 0}, {0: 0, 1: 1}, 1)
    assert facts.system == cluster_id
    assert len(facts.id) == 22


def test_a_topic_that_was_made_again_has_another_id(kafka_options: KafkaOptions, topic: TopicFactory) -> None:
    name = topic("data")
    with KafkaClient(kafka_options) as client:
        before = client.describe_topics([name])[name]
        admin = AdminClient({**kafka_options.librdkafka()})
        administrator.delete_topic(admin, name)
        gone = client.describe_topics([name])[name]
        administrator.create_topic(admin, name)
        after = client.describe_topics([name])[name]

    assert gone.existence is Existence.MISSING
    assert before.id != after.id


def test_topic_ids_are_spelled_as_kafkas_own_tools_spell_them(
    kafka_options: KafkaOptions, topic: TopicFactory
) -> None:
    names = [topic(str(number)) for number in range(8)]
    with KafkaClient(kafka_options) as client:
        ids = [facts.id for facts in client.describe_topics(names).values()]

    assert not set("".join(ids)) & set("+/=")


def made_by_asking(broker: KafkaBroker) -> str:
    """Have the broker make a topic in the background, as it would have made one that was asked for before."""
    name, producer = own(), Producer(broker.client_config())
    producer.produce(name, b"anybody there?")
    assert producer.flush(_SOON_SECONDS) == 0
    return name


def test_looking_creates_no_topic_even_where_a_broker_makes_what_is_asked_for(guarded: KafkaBroker) -> None:
    sink = SinkWorld(guarded, own())
    before = listed(guarded)

    with SinkObserver(sink.spec, sink.connections()) as observer:
        seen = observer.observe()
        observer.identify()
    made = made_by_asking(guarded)

    assert {facts.existence for facts in seen.resources().values()} == {Existence.MISSING}
    assert listed(guarded) - {made} == before


def test_fencing_and_reading_create_no_topic_of_ours(guarded: KafkaBroker) -> None:
    name = own()
    fence(options(guarded), [transactional_id("sinks", name, "driver")], TIMEOUT)
    with pytest.raises(UnavailableError, match="UNKNOWN_TOPIC_OR_PART"):
        ProgressLog(options(guarded), name).read("orders", 5)
    made_by_asking(guarded)

    assert name not in listed(guarded)


def test_a_producer_does_not_bring_a_deleted_topic_back(guarded: KafkaBroker) -> None:
    name = own()
    producer = Producer(producer_config(options(guarded), name, timedelta(seconds=3)))
    producer.init_transactions(_SOON_SECONDS)
    producer.begin_transaction()
    producer.produce(name, b"row")

    with pytest.raises(KafkaException, match="failed delivery"):
        producer.commit_transaction(_SOON_SECONDS)
    assert name not in listed(guarded)


# What an ACL hides.


def test_a_hidden_topic_is_unknown_whether_it_exists_or_not(guarded: KafkaBroker) -> None:
    there, not_there = own(), own()
    admin = AdminClient(guarded.client_config())
    administrator.create_topic(admin, there)

    with KafkaClient(options(guarded, USER)) as client:
        seen = client.observe_topics([there, not_there])

    assert {facts.existence for facts in seen.values()} == {Existence.UNKNOWN}
    assert {facts.denied for facts in seen.values()} == {"Describe"}
    assert all(f"--bootstrap-server {client.bootstrap} " in facts.grant for facts in seen.values())
    assert "TOPIC_AUTHORIZATION_FAILED" in seen[there].reason


def test_a_topic_that_may_be_described_and_is_not_there_is_missing(guarded: KafkaBroker) -> None:
    name = own()
    allow(guarded, name, AclOperation.DESCRIBE)

    with KafkaClient(options(guarded, USER)) as client:
        facts = eventually(lambda: client.observe_topics([name])[name], lambda facts: not facts.denied)

    assert facts.existence is Existence.MISSING


def test_a_hidden_data_topic_is_waited_for_until_it_is_granted(guarded: KafkaBroker) -> None:
    sink = SinkWorld(guarded, own())
    sink.create(sink.source)
    sink.start()
    sink.write(1)
    operations = (AclOperation.DESCRIBE, AclOperation.READ, AclOperation.DESCRIBE_CONFIGS)
    for name in (sink.source, sink.progress):
        allow(guarded, name, *operations)
    sink.user = USER

    hidden = eventually(sink.decide, lambda verdict: sink.source not in str(verdict))
    allow(guarded, sink.data, AclOperation.DESCRIBE)
    shown = eventually(sink.decide, lambda verdict: verdict.kind is not VerdictKind.WAIT)

    assert hidden.kind is VerdictKind.WAIT
    assert f'data topic "{sink.data}" could not be seen' in hidden.primary
    assert (
        f"--add --allow-principal User:<user of the connection> --operation Describe --topic {sink.data}"
        in (hidden.hint)
    )
    assert shown.kind is VerdictKind.RESUME


def test_a_coordinator_that_may_not_be_asked_is_said_and_one_that_may_answers(guarded: KafkaBroker) -> None:
    """The rights are those that the documentation asks for: a prefix of transactional ids."""
    sink = SinkWorld(guarded, own())
    sink.create(sink.source)
    for name in (sink.source, sink.data, sink.progress):
        allow(guarded, name, AclOperation.DESCRIBE, AclOperation.READ)
    sink.user = USER

    denied = eventually(sink.observe, lambda seen: seen.history == NO_HISTORY)
    ids, kind = f"sinks.{sink.name}.", ResourceType.TRANSACTIONAL_ID
    allow(guarded, ids, AclOperation.DESCRIBE, kind=kind, pattern=ResourcePatternType.PREFIXED)
    allowed = eventually(sink.observe, lambda seen: seen.memory == BrokerMemory())

    assert denied.memory is not None
    assert denied.memory.reason == "the user may not describe the transactional ids of the sink"
    assert allowed.memory == BrokerMemory()


def test_a_hidden_configuration_of_the_progress_topic_is_waited_for(guarded: KafkaBroker) -> None:
    sink = SinkWorld(guarded, own())
    sink.create(sink.source)
    sink.start()
    for name in (sink.source, sink.data, sink.progress):
        allow(guarded, name, AclOperation.DESCRIBE, AclOperation.READ)
    sink.user = USER

    verdict = eventually(sink.decide, lambda verdict: "Operation Describe " not in verdict.hint)

    assert verdict.kind is VerdictKind.WAIT
    assert f'cleanup.policy of progress topic "{sink.progress}" could not be seen' in verdict.primary
    assert f"--operation DescribeConfigs --topic {sink.progress}" in verdict.hint


def test_progress_that_may_not_be_read_is_waited_for(guarded: KafkaBroker) -> None:
    sink = SinkWorld(guarded, own())
    sink.create(sink.source)
    sink.start()
    for name in (sink.source, sink.data, sink.progress):
        allow(guarded, name, AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)
    sink.user = USER

    eventually(sink.decide, lambda verdict: not verdict.hint.startswith("kafka-acls"))
    started = time.monotonic()
    verdict = sink.decide()

    assert verdict.kind is VerdictKind.WAIT
    assert f'progress in "{sink.progress}" could not be read' in verdict.primary
    assert str(verdict).count("TOPIC_AUTHORIZATION_FAILED") == 1
    assert time.monotonic() - started < 10


def test_progress_is_read_without_any_right_on_consumer_groups(guarded: KafkaBroker) -> None:
    sink = SinkWorld(guarded, own())
    sink.create(sink.source)
    sink.start()
    sink.write(1)
    allow(guarded, sink.progress, AclOperation.READ)

    with KafkaClient(options(guarded, USER)) as client:
        eventually(
            lambda: client.describe_topics([sink.progress])[sink.progress], lambda facts: not facts.denied
        )
        assert client.read_progress(sink.progress, sink.name, 20).epoch == 1


def test_a_transactional_id_that_is_denied_is_final_and_named(guarded: KafkaBroker) -> None:
    with pytest.raises(ConfigurationError) as raised:
        fence(options(guarded, USER), ["sinks.orders.driver"], TIMEOUT)

    assert raised.value.primary == (
        'transactional id "sinks.orders.driver" is denied to the user of connection "kafka_test"'
    )
    assert "--transactional-id sinks.orders. --resource-pattern-type prefixed" in raised.value.hint


def test_a_topic_that_may_not_be_created_is_final_with_the_command_for_an_administrator(
    guarded: KafkaBroker,
) -> None:
    wanted = progress_topic(own())

    with KafkaClient(options(guarded, USER)) as client, pytest.raises(ConfigurationError) as raised:
        client.ensure_topic(wanted)

    assert raised.value.primary == f'progress topic "{wanted.name}" was not created'
    assert "TOPIC_AUTHORIZATION_FAILED" in raised.value.detail
    command = f"--create --topic {wanted.name} --partitions 1 --config cleanup.policy=compact"
    assert command in raised.value.hint


# Making topics.


def test_ensuring_a_topic_twice_is_the_same_as_once(kafka_options: KafkaOptions) -> None:
    wanted = CreateTopic(Role.DATA, own(), 3, None, {"retention.ms": "60000"})

    with KafkaClient(kafka_options) as client:
        first, second = client.ensure_topic(wanted), client.ensure_topic(wanted)

    assert (first.id, first.partitions) == (second.id, 3)


def test_a_progress_topic_that_somebody_made_differently_meanwhile_is_not_taken(
    kafka_options: KafkaOptions, topic: TopicFactory
) -> None:
    name = topic("progress", 1, **{"cleanup.policy": "delete"})

    with KafkaClient(kafka_options) as client, pytest.raises(UnavailableError, match="and differently"):
        client.ensure_topic(progress_topic(name))


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        (CreateTopic(Role.DATA, own(), 1, 5), "INVALID_REPLICATION_FACTOR"),
        (CreateTopic(Role.DATA, own(), 1, None, {"no.such.option": "1"}), "INVALID_CONFIG"),
    ],
    ids=["too-many-copies", "option-not-known"],
)
def test_a_topic_that_the_broker_will_not_make_is_final(
    kafka_options: KafkaOptions, wanted: CreateTopic, code: str
) -> None:
    with KafkaClient(kafka_options) as client, pytest.raises(ConfigurationError) as raised:
        client.ensure_topic(wanted)

    assert code in raised.value.detail
    assert "kafka-topics.sh" in raised.value.hint


# Reading progress.


class Log:
    """A progress topic and writers for it."""

    def __init__(self, kafka_options: KafkaOptions, topic: str) -> None:
        self.options = kafka_options
        self.topic = topic
        self.log = ProgressLog(kafka_options, topic)

    def producer(self, writer: str, timeout: timedelta = TIMEOUT) -> Producer:
        producer = Producer(producer_config(self.options, f"{self.topic}.{writer}", timeout))
        warm_up(producer)
        producer.init_transactions(_SOON_SECONDS)
        return producer

    def put(self, producer: Producer, writer: str, content: ProgressRecord, sink: str = "orders") -> None:
        key = ProgressKey(sink, writer).encode()
        producer.produce(self.topic, key=key, value=content.encode(), partition=0)

    def commit(self, writer: str, content: ProgressRecord, sink: str = "orders") -> None:
        producer = self.producer(writer)
        producer.begin_transaction()
        self.put(producer, writer, content, sink)
        producer.commit_transaction(_SOON_SECONDS)


@pytest.fixture
def log(kafka_options: KafkaOptions, topic: TopicFactory) -> Log:
    return Log(kafka_options, topic("progress", 1, **{"cleanup.policy": "compact"}))


def test_an_empty_progress_topic_is_no_history(log: Log) -> None:
    assert log.log.read("orders", 10) == NO_HISTORY


def test_a_committed_record_is_found_behind_aborted_ones(log: Log) -> None:
    log.commit("all", record(epoch=1))
    aborting = log.producer("p0")
    for _ in range(3):
        aborting.begin_transaction()
        log.put(aborting, "p0", record(epoch=9))
        aborting.flush(_SOON_SECONDS)
        aborting.abort_transaction(_SOON_SECONDS)

    history = log.log.read("orders", 10)

    assert (history.epoch, list(history.records)) == (1, ["all"])


def test_reading_goes_on_where_it_stopped(log: Log) -> None:
    log.commit("p0", record(epoch=1))
    first = log.log.read("orders", 10)
    log.commit("p1", record(epoch=2))
    log.commit("all", record(epoch=5), sink="another")

    assert first.epoch == 1
    assert sorted(log.log.read("orders", 10).records) == ["p0", "p1"]
    assert log.log.read("orders", 10) == ProgressLog(log.options, log.topic).read("orders", 10)


def test_our_own_last_commit_is_not_missed_behind_an_open_transaction(log: Log) -> None:
    """The last stable offset lies before it; only waiting for the open transaction shows it.

    A broker answers a commit before its marker is in the partition: the end is that of the record or the
    marker's.
    """
    blocking = log.producer("p0")
    blocking.begin_transaction()
    log.put(blocking, "p0", record(epoch=8))
    blocking.flush(_SOON_SECONDS)
    log.commit("all", record(epoch=7))

    with pytest.raises(UnavailableError, match="could not be read to its end") as raised:
        log.log.read("orders", 5)
    aborting = threading.Timer(1, lambda: blocking.abort_transaction(_SOON_SECONDS))
    aborting.start()
    history = log.log.read("orders", 30)
    aborting.join()

    assert re.search(r"Reached offset 0 of [23] ", raised.value.detail)
    assert "kafka-transactions.sh" in raised.value.hint
    assert (history.epoch, list(history.records)) == (7, ["all"])


def test_a_transaction_that_nobody_ends_is_waited_out(log: Log) -> None:
    timeout = timedelta(seconds=1)
    abandoned = log.producer("p0", timeout)
    abandoned.begin_transaction()
    log.put(abandoned, "p0", record(epoch=8))
    abandoned.flush(_SOON_SECONDS)

    assert log.log.read("orders", read_timeout_seconds(timeout)) == NO_HISTORY


def test_a_topic_that_was_made_again_is_read_anew(log: Log) -> None:
    log.commit("all", record(epoch=7))
    log.log.read("orders", 10)
    admin = AdminClient({**log.options.librdkafka()})
    administrator.delete_topic(admin, log.topic)
    with pytest.raises(UnavailableError, match="could not be read"):
        log.log.read("orders", 10)
    administrator.create_topic(admin, log.topic)
    log.commit("all", record(epoch=1))

    assert log.log.read("orders", 10).epoch == 1


@pytest.mark.parametrize(
    ("totals", "found"), [({}, [DRIVER]), ({"p0": (5, 0)}, ["p0", DRIVER])], ids=["no other", "a quiet one"]
)
def test_a_long_shared_topic_is_read_from_its_end_until_a_driver_record_and_the_writers_it_names(
    totals: dict[str, tuple[int, int]], found: list[str], log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_log, "SUFFIX_MIN", 10)
    log.commit("p0", record(epoch=1, rows_total=5))
    foreign = Producer(log.options.librdkafka())
    for number in range(2000):
        foreign.produce(log.topic, key=f'["s{number}","all"]', value=b"not ours to judge", partition=0)
    foreign.flush(_SOON_SECONDS)
    log.commit(DRIVER, record(epoch=7, totals=totals))

    history = log.log.read("orders", 30)

    assert list(history.records) == found
    assert (history.epoch, history.totals().get("p0", (0, 0))) == (7, totals.get("p0", (0, 0)))


def test_a_long_shared_topic_without_a_driver_record_is_read_to_its_begin(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_log, "SUFFIX_MIN", 10)
    log.commit("p0", record(epoch=1))
    foreign = Producer(log.options.librdkafka())
    for number in range(500):
        foreign.produce(log.topic, key=f'["s{number}","all"]', value=b"x", partition=0)
    foreign.flush(_SOON_SECONDS)

    assert list(log.log.read("orders", 30).records) == ["p0"]


def test_readers_of_one_process_share_what_was_read(log: Log) -> None:
    shared = ProgressLog.shared(log.options, log.topic)

    assert ProgressLog.shared(log.options, log.topic) is shared
    assert ProgressLog.shared(log.options, log.topic + "-2") is not shared


# Fencing.


def test_fencing_ends_an_open_transaction_and_its_writer(log: Log) -> None:
    older = log.producer("all")
    older.begin_transaction()
    log.put(older, "all", record(epoch=8))
    older.flush(_SOON_SECONDS)

    fence(log.options, [f"{log.topic}.all"], TIMEOUT)

    with pytest.raises(KafkaException) as raised:
        older.commit_transaction(_SOON_SECONDS)
    assert raised.value.args[0].fatal()
    assert log.log.read("orders", 10) == NO_HISTORY


def test_fencing_many_ids_takes_milliseconds_each(kafka_options: KafkaOptions) -> None:
    ids = [transactional_id("sinks", own(), f"p{number}") for number in range(32)]
    fence(kafka_options, ids, TIMEOUT)

    started = time.monotonic()
    fence(kafka_options, ids, TIMEOUT)

    assert time.monotonic() - started < _SOON_SECONDS


def test_a_transaction_timeout_beyond_the_brokers_limit_is_final(kafka_options: KafkaOptions) -> None:
    with pytest.raises(ConfigurationError) as raised:
        fence(kafka_options, [own()], timedelta(hours=1))

    assert "longer than the broker allows" in raised.value.primary
    assert "transaction.max.timeout.ms" in raised.value.hint


def test_a_transactional_id_is_joined_by_a_character_that_names_may_not_hold() -> None:
    assert transactional_id("sinks", "orders", "p0") == "sinks.orders.p0"
    with pytest.raises(ValueError, match="cannot be joined"):
        transactional_id("sinks", "orders.p0", "all")


def test_equal_keys_meet_where_javas_producer_puts_them(
    kafka_options: KafkaOptions, topic: TopicFactory
) -> None:
    """Known from Java: murmur2 of these keys, over 4 partitions, ignoring the sign."""
    name = topic("data", partitions=4)
    told = {"delivery.report.only.error": False}
    producer = Producer({**producer_config(kafka_options, name, TIMEOUT), **told})
    producer.init_transactions(_SOON_SECONDS)
    placed: dict[Any, Any] = {}
    producer.begin_transaction()
    for key in (b"21", b"foobar", b"a-little-bit-long-string"):
        producer.produce(name, key=key, on_delivery=lambda _, m: placed.update({m.key(): m.partition()}))
    producer.commit_transaction(_SOON_SECONDS)

    murmur2 = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536}
    assert placed == {key: (value & 0x7FFFFFFF) % 4 for key, value in murmur2.items()}


# Broken connections.


def steps(kafka_options: KafkaOptions, seconds: float) -> dict[str, object]:
    """Return each step that a start takes, as something to call.

    :param seconds: how long it waits for an answer.
    """
    client = KafkaClient(kafka_options, timeout_seconds=seconds)
    return {
        "cluster id": client.cluster_id,
        "describe": lambda: client.describe_topics(["a"]),
        "observe": lambda: client.observe_topics(["a"]),
        "ensure": lambda: client.ensure_topic(progress_topic("a")),
        "read": lambda: client.read_progress("a", "orders", seconds),
        "fence": lambda: fence(kafka_options, ["a"], TIMEOUT),
    }


STEPS = ["cluster id", "describe", "observe", "ensure", "read", "fence"]


def fail(kafka_options: KafkaOptions, step: str, seconds: float = 2) -> SinkError:
    call = steps(kafka_options, seconds)[step]
    assert callable(call)
    with pytest.raises(SinkError) as raised:
        call()
    # Its traceback holds this frame, and with it the client: a circle that is collected at any time, also by
    # the thread of another client that is at work, which ends the process.
    return raised.value.with_traceback(None)


@pytest.mark.parametrize("step", STEPS)
def test_a_broker_that_is_away_is_named_at_each_step(step: str) -> None:
    servers = f"127.0.0.1:{free_port()}"
    away = KafkaOptions.from_connection_extra({"bootstrap.servers": servers}, "kafka_test")

    error = fail(away, step)

    assert isinstance(error, UnavailableError)
    assert servers in error.primary + error.detail
    assert "Connection refused" in error.detail
    assert 'bootstrap.servers and security.protocol of connection "kafka_test"' in error.hint


@pytest.mark.parametrize("step", STEPS)
def test_a_wrong_password_is_final_and_quick_at_each_step(guarded: KafkaBroker, step: str) -> None:
    wrong = options(guarded, USER, **{"sasl.password": "wrong-secret"})

    started = time.monotonic()
    error = fail(wrong, step, _PATIENT_SECONDS)

    assert isinstance(error, AuthenticationError)
    assert error.primary == f"Kafka at {guarded.bootstrap} refused the credentials"
    assert "Invalid username or password" in error.detail
    assert 'user and password of connection "kafka_test"' in error.hint
    assert "wrong-secret" not in str(error)
    assert time.monotonic() - started < _SOON_SECONDS


def test_a_mechanism_that_the_broker_does_not_have_is_final(guarded: KafkaBroker) -> None:
    wrong = options(guarded, USER, **{"sasl.mechanism": "SCRAM-SHA-256"})

    assert isinstance(fail(wrong, "cluster id", _PATIENT_SECONDS), AuthenticationError)


def test_a_listener_that_speaks_another_protocol_is_hinted_at(guarded: KafkaBroker) -> None:
    plain = KafkaOptions.from_connection_extra({"bootstrap.servers": guarded.bootstrap}, "kafka_test")

    error = fail(plain, "cluster id")

    assert isinstance(error, UnavailableError)
    assert "security.protocol" in error.hint


def test_a_frozen_or_dead_broker_ends_each_step_in_time(mortal: KafkaBroker) -> None:
    patient = KafkaClient(options(mortal), timeout_seconds=_PATIENT_SECONDS)
    patient.ensure_topic(progress_topic("progress"))
    known = KafkaClient(options(mortal), timeout_seconds=2)
    log = Log(options(mortal), "progress")
    log.commit("all", record())

    def is_seen() -> bool:
        return known.observe_topics(["progress"])["progress"].existence is Existence.PRESENT

    calls: list[Callable[[], object]] = [
        known.cluster_id,
        lambda: known.observe_topics(["progress"]),
        lambda: known.ensure_topic(progress_topic("another")),
        lambda: known.read_progress("progress", "orders", 2),
    ]

    for break_it, repair in ((mortal.pause, mortal.resume), (mortal.kill, mortal.restart)):
        break_it()
        for call in calls:
            started = time.monotonic()
            with pytest.raises(UnavailableError) as raised:
                call()
            assert mortal.bootstrap in str(raised.value)
            assert time.monotonic() - started < _SOON_SECONDS
        repair()
        until(is_seen, "the topic to be seen again", _PATIENT_SECONDS, (UnavailableError,))
    assert patient.read_progress("progress", "orders", _PATIENT_SECONDS).epoch == 7
