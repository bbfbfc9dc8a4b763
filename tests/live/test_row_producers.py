"""Both producers of rows on a real broker: they write the same, and tell alike what goes wrong."""

from __future__ import annotations

import gc
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from airflow_provider_sinks.connectors.kafka.arrow_producer import ArrowProducer
from airflow_provider_sinks.connectors.kafka.carried import Carried
from airflow_provider_sinks.connectors.kafka.client_failures import REFUSED_CREDENTIALS, Complaints
from airflow_provider_sinks.connectors.kafka.columns import HEADER_NAME, HEADER_VALUE
from airflow_provider_sinks.connectors.kafka.object_producer import ObjectProducer
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.kafka.row_producer import ProducerKind, Refused, RowProducer
from airflow_provider_sinks.connectors.kafka.transactions import producer_config, warm_up
from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.listeners import Mechanism, Sasl
from tests import administrator
from tests.faults import topics
from tests.faults.topics import Record, read
from tests.live import segments
from tests.support import TopicFactory, until

_SECONDS = 120.0
_VALUES: list[bytes | None] = [b"first", None, b"", b"\x00 with \x00 zeros", b"last"]
_KEYS: list[bytes | None] = [b"k", b"tombstone", None, b"", b"\x00k"]
_HEADERS: list[list[tuple[str, bytes | None]]] = [
    [("a", b"1"), ("a", b"2"), ("\u00fc", None)],
    [],
    [("empty", b"")],
    [("", b"\x00b")],
    [("z", bytes(1_000)), ("a", b"last")],
]


@dataclass
class Makes:
    """Makes producers of one kind, and keeps what they say."""

    kind: ProducerKind
    options: KafkaOptions
    undelivered: list[tuple[int, str, int]] = field(default_factory=list)
    complaints: Complaints = field(default_factory=Complaints)
    id: str = field(default_factory=lambda: uuid.uuid4().hex)

    def __call__(self, timeout: timedelta = timedelta(seconds=60), **changes: str) -> RowProducer:
        """Return a producer of the same transactional id each time; an underscore stands for a dot."""
        config = producer_config(self.options, self.id, timeout)
        config |= {name.replace("_", "."): value for name, value in changes.items()}
        return self.kind(config, self.complaints.take, self._note)

    def begun(self, timeout: timedelta = timedelta(seconds=60), **changes: str) -> RowProducer:
        """Return one whose transaction has begun."""
        producer = self(timeout, **changes)
        warm_up(producer)
        producer.init_transactions(_SECONDS)
        producer.begin_transaction()
        return producer

    def _note(self, error: KafkaError, topic: str, size_bytes: int) -> None:
        self.undelivered.append((error.code(), topic, size_bytes))


@pytest.fixture(params=[ArrowProducer, ObjectProducer], ids=["arrow", "objects"])
def kind(request: pytest.FixtureRequest) -> ProducerKind:
    found: ProducerKind = request.param
    return found


@pytest.fixture
def make(kind: ProducerKind, kafka_options: KafkaOptions) -> Makes:
    return Makes(kind, kafka_options)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A broker that demands a user."""
    sasl = Sasl(Mechanism.PLAIN, {"user": "right"})
    with KafkaBroker.start(tmp_path_factory.mktemp("guarded") / "kafka", sasl=sasl) as running:
        yield running


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[KafkaBroker]:
    """A broker of the test's own, to be frozen."""
    with KafkaBroker.start(tmp_path / "kafka") as running:
        yield running


def _threads() -> set[str]:
    return {thread.name for thread in Path("/proc/self/task").iterdir()}


def _now_ms() -> int:
    return int(time.time() * 1000)


def _give_up() -> None:
    raise TimeoutError


def _column(values: list[bytes | None]) -> pa.Array:
    return pa.array(values, pa.binary())


def _headers(given: list[list[tuple[str, bytes | None]]]) -> pa.Array:
    kind = pa.list_(pa.struct([(HEADER_NAME, pa.string()), (HEADER_VALUE, pa.binary())]))
    rows = [[{HEADER_NAME: name, HEADER_VALUE: value} for name, value in row] for row in given]
    return pa.array(rows, kind)


def _write(producer: RowProducer, topic: str, values: list[bytes | None]) -> Refused | None:
    return producer.produce_rows(topic, pa.nulls(len(values), pa.binary()), _column(values), _give_up)


def _read(make: Makes, topic: str) -> list[Record]:
    return read(make.options.librdkafka(), topic)


def _cause(raised: pytest.ExceptionInfo[KafkaException]) -> KafkaError:
    found: KafkaError = raised.value.args[0]
    return found


# What is written.


@pytest.mark.parametrize("column", [pa.binary(), pa.large_binary()])
def test_rows_arrive_as_they_were_and_in_order(make: Makes, topic: TopicFactory, column: pa.DataType) -> None:
    name = topic()
    keys, values = pa.array([b"cut", *_KEYS] * 3, column), pa.array([b"cut", *_VALUES] * 3, column)
    producer = make.begun()

    for first in (1, 7, 13):
        part = keys.slice(first, 5), values.slice(first, 5)
        assert producer.produce_rows(name, *part, _give_up) is None
    producer.commit_transaction(_SECONDS)

    assert [(r.key, r.value) for r in _read(make, name)] == list(zip(_KEYS, _VALUES, strict=True)) * 3


def test_equal_keys_meet_where_javas_producer_puts_them(make: Makes, topic: TopicFactory) -> None:
    """Known from Java: murmur2 of these keys, over 4 partitions, ignoring the sign; an empty key is one."""
    name, producer = topic(partitions=4), make.begun()
    murmur2 = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536}
    murmur2 |= {b"": 275646681}

    producer.produce_rows(name, pa.array(list(murmur2)), pa.array([b"x"] * 4), _give_up)
    producer.commit_transaction(_SECONDS)

    found = {r.key: r.partition for r in _read(make, name)}
    assert found == {key: (value & 0x7FFFFFFF) % 4 for key, value in murmur2.items()}


def test_rows_carry_headers_times_and_partitions(make: Makes, topic: TopicFactory) -> None:
    name, producer = topic(partitions=3), make.begun()
    times, partitions = pa.array([7, 1, 2, 3, 4, 5], pa.int64()), np.array([0, 2, 1, 2, 1, 2], np.int32)
    keys, values, headers = _column([b"cut", *_KEYS]), _column([b"cut", *_VALUES]), _headers([[], *_HEADERS])

    refused = producer.produce_rows(
        name,
        keys.slice(1),
        values.slice(1),
        _give_up,
        Carried(headers.slice(1), times.slice(1), partitions[1:]),
    )
    producer.commit_transaction(_SECONDS)

    found = sorted((r.at_ms, r.partition, r.key, r.value, r.headers) for r in _read(make, name))
    assert refused is None
    assert found == list(
        zip([1, 2, 3, 4, 5], [2, 1, 2, 1, 2], _KEYS, _VALUES, map(tuple, _HEADERS), strict=True)
    )


def test_a_zero_byte_in_the_name_of_a_header_is_written(
    kafka_options: KafkaOptions, broker: KafkaBroker, topic: TopicFactory
) -> None:
    """Seen on disk: a reader in C ends the name there."""
    name, producer = topic(), Makes(ArrowProducer, kafka_options).begun(compression_type="none")
    pairs: list[tuple[str, bytes | None]] = [("a\0b", b"\x00v"), ("last", None)]

    producer.produce_rows(
        name, _column([None] * 3), _column([b"v"] * 3), _give_up, Carried(_headers([[], pairs, [("c", b"")]]))
    )
    producer.produce(name, value=b"letter", headers=[*pairs, ("d\0e", "text")])
    producer.commit_transaction(_SECONDS)

    found = [r.headers for r in read(kafka_options.librdkafka(), name)]
    assert found == [
        (),
        (("a", b"\x00v"), ("last", None)),
        (("c", b""),),
        (("a", b"\x00v"), ("last", None), ("d", b"text")),
    ]
    stored = segments.content(broker, name)
    assert (stored.count(b"a\0b"), stored.count(b"d\0e")) == (2, 1)


def test_a_client_that_would_cut_the_name_of_a_header_takes_no_such_row(
    kafka_options: KafkaOptions, topic: TopicFactory
) -> None:
    name, producer = topic(), Makes(ObjectProducer, kafka_options).begun()

    refused = producer.produce_rows(
        name, _column([None] * 2), _column([b"v"] * 2), _give_up, Carried(_headers([[], [("a\0b", b"")]]))
    )

    assert refused is not None
    assert (refused.row, refused.error.code()) == (1, KafkaError._INVALID_ARG)
    assert "header 'a\\x00b' has a zero byte in its name" in refused.error.str()


@pytest.mark.parametrize("has_headers", [False, True], ids=["by the batch", "one by one"])
def test_rows_go_where_they_are_sent_in_their_order(
    make: Makes, topic: TopicFactory, has_headers: bool
) -> None:
    name, producer = topic(partitions=3), make.begun()
    values: list[bytes | None] = [b"%d" % number for number in range(300)]
    partitions = np.arange(300, dtype=np.int32) ** 2 % 3
    headers = _headers([[]] * 300) if has_headers else None

    producer.produce_rows(
        name, _column([b"same"] * 300), _column(values), _give_up, Carried(headers, None, partitions)
    )
    producer.commit_transaction(_SECONDS)

    found = _read(make, name)
    for partition in range(3):
        sent = [value for value, at in zip(values, partitions, strict=True) if at == partition]
        assert [r.value for r in found if r.partition == partition] == sent


def test_one_by_one_a_full_queue_is_waited_for_and_a_large_row_is_told(
    make: Makes, topic: TopicFactory
) -> None:
    name = topic()
    producer = make.begun(queue_buffering_max_messages="50", linger_ms="0", message_max_bytes="2000")
    values: list[bytes | None] = [b"%d" % number for number in range(500)]
    waits: list[int] = []
    carried = Carried(_headers([[("name", b"value")]] * 500))

    refused = producer.produce_rows(
        name, _column(values), _column(values), lambda: waits.append(producer.poll(0.01)), carried
    )
    producer.flush(_SECONDS)
    large = producer.produce_rows(
        name,
        _column([None] * 3),
        _column([b"v"] * 3),
        _give_up,
        Carried(_headers([[], [("large", bytes(3_000))], []])),
    )
    producer.commit_transaction(_SECONDS)

    assert (refused, waits != []) == (None, True)
    assert large is not None
    assert (large.row, large.error.code()) == (1, KafkaError.MSG_SIZE_TOO_LARGE)
    assert [r.value for r in _read(make, name)] == [*values, b"v"]


def test_a_partition_that_was_added_is_known_once_topics_were_listed(
    make: Makes, topic: TopicFactory
) -> None:
    name, producer = topic(partitions=1), make.begun()
    _write(producer, name, [b"old"])
    producer.flush(_SECONDS)
    administrator.grow_topic(topics.admin_client(tuple(make.options.librdkafka().items())), name, 2)

    def send() -> Refused | None:
        carried = Carried(partitions=np.array([1], np.int32))
        return producer.produce_rows(name, _column([None]), _column([b"new"]), _give_up, carried)

    refused = send()
    producer.list_topics(timeout=_SECONDS)
    taken = send()
    producer.flush(_SECONDS)

    assert refused is not None
    assert refused.error.code() == KafkaError._UNKNOWN_PARTITION
    assert taken is None
    found = topics.read(make.options.librdkafka(), name, topics.UNCOMMITTED)
    assert [(r.partition, r.value) for r in found] == [(0, b"old"), (1, b"new")]


def test_a_record_by_itself_has_partition_and_headers(make: Makes, topic: TopicFactory) -> None:
    name, producer = topic(partitions=3), make.begun()

    producer.produce(name, key=b"k", value=b"v\x00w", partition=2, headers=[("a", b"\x00b"), ("ü", "text")])
    producer.produce(name, key=b"", partition=2)
    producer.produce(name, value=b"", partition=2)
    producer.commit_transaction(_SECONDS)

    assert [(r.partition, r.key, r.value, r.headers) for r in _read(make, name)] == [
        (2, b"k", b"v\x00w", (("a", b"\x00b"), ("ü", b"text"))),
        (2, b"", None, ()),
        (2, None, b"", ()),
    ]


def test_a_full_queue_is_waited_for_and_keeps_the_order(make: Makes, topic: TopicFactory) -> None:
    name, producer = topic(), make.begun(queue_buffering_max_messages="50", linger_ms="0")
    values = [b"%d" % number for number in range(2_000)]
    waits: list[int] = []

    refused = producer.produce_rows(
        name, pa.nulls(len(values), pa.binary()), pa.array(values), lambda: waits.append(producer.poll(0.01))
    )
    producer.commit_transaction(_SECONDS)

    assert refused is None
    assert waits
    assert [r.value for r in _read(make, name)] == values


def test_a_queue_that_is_full_for_long_may_be_given_up_and_nothing_of_it_is_seen(
    kind: ProducerKind, mortal: KafkaBroker
) -> None:
    make = Makes(kind, KafkaOptions.from_connection_extra(mortal.client_config(), "k"))
    administrator.create_topic(AdminClient(mortal.client_config()), "data")
    producer = make.begun(queue_buffering_max_kbytes="1024")
    values: list[bytes | None] = [bytes(10_000)] * 1_000
    mortal.pause()

    with pytest.raises(TimeoutError):
        _write(producer, "data", values)
    waiting = len(producer)
    mortal.resume()
    producer.abort_transaction(_SECONDS)
    producer.begin_transaction()
    _write(producer, "data", [b"behind"])
    producer.commit_transaction(_SECONDS)

    assert 0 < waiting * 10_000 <= 1024 * 1024
    assert [r.value for r in _read(make, "data")] == [b"behind"]


def test_a_record_by_itself_that_finds_the_queue_full_says_so(make: Makes, topic: TopicFactory) -> None:
    name, producer = topic(), make.begun(queue_buffering_max_messages="3", linger_ms="20000")

    _write(producer, name, [b"1", b"2", b"3"])
    with pytest.raises(BufferError):
        producer.produce(name, value=b"4")
    producer.abort_transaction(_SECONDS)


# What goes wrong.


def test_a_row_that_the_client_does_not_take_is_told_by_its_index(make: Makes, topic: TopicFactory) -> None:
    name, producer = topic(), make.begun(message_max_bytes="2000")

    refused = _write(producer, name, [b"small", None, bytes(3_000), b"behind"])

    assert refused is not None
    assert (refused.row, refused.error.code()) == (2, KafkaError.MSG_SIZE_TOO_LARGE)
    assert "too large" in refused.error.str()


def test_a_row_that_the_broker_does_not_take_is_told_with_topic_and_size(
    make: Makes, topic: TopicFactory
) -> None:
    name, producer = topic("small", 1, **{"max.message.bytes": "1000"}), make.begun(compression_type="none")

    _write(producer, name, [bytes(3_000)])
    producer.flush(_SECONDS)

    assert make.undelivered == [(KafkaError.MSG_SIZE_TOO_LARGE, name, 3_000)]
    with pytest.raises(KafkaException) as raised:
        producer.commit_transaction(_SECONDS)
    assert _cause(raised).txn_requires_abort()
    producer.abort_transaction(_SECONDS)


def test_messages_of_a_batch_with_several_times_that_the_broker_refuses_do_not_tell_why(
    make: Makes, topic: TopicFactory
) -> None:
    """:mod:`.row_limits` asks the transaction."""
    name, producer = topic(), make.begun()

    far = Carried(times_ms=pa.array([_now_ms(), 2**42, 2**42], pa.int64()))
    producer.produce_rows(name, _column([None] * 3), _column([b"row"] * 3), _give_up, far)
    producer.flush(_SECONDS)
    with pytest.raises(KafkaException) as raised:
        producer.commit_transaction(_SECONDS)
    producer.abort_transaction(_SECONDS)

    codes = [code for code, _, _ in make.undelivered]
    assert codes == [KafkaError._INVALID_DIFFERENT_RECORD, *[KafkaError.INVALID_RECORD] * 2]
    assert _cause(raised).code() == KafkaError.INVALID_TIMESTAMP


def test_rows_for_a_topic_that_is_gone_are_undelivered_and_do_not_commit(make: Makes) -> None:
    name, producer = uuid.uuid4().hex, make.begun(timedelta(seconds=3))

    refused = _write(producer, name, [b"row"])
    with pytest.raises(KafkaException) as raised:
        producer.commit_transaction(_SECONDS)

    assert refused is None
    assert [(topic, size) for _, topic, size in make.undelivered] == [(name, 3)]
    assert _cause(raised).txn_requires_abort()


def test_rows_outside_of_a_transaction_are_refused_from_the_first(make: Makes, topic: TopicFactory) -> None:
    name, producer = topic(), make.begun()
    producer.commit_transaction(_SECONDS)

    refused = _write(producer, name, [b"1", b"2"])

    assert refused is not None
    assert (refused.row, refused.error.code()) == (0, KafkaError._STATE)
    with pytest.raises(KafkaException) as raised:
        producer.produce(name, value=b"3")
    assert _cause(raised).code() == KafkaError._STATE


def test_a_second_holder_of_the_id_fences_the_first(make: Makes, topic: TopicFactory) -> None:
    name, older = topic(), make.begun()
    _write(older, name, [b"never seen"])
    older.flush(_SECONDS)
    newer = make.begun()
    _write(newer, name, [b"seen"])

    with pytest.raises(KafkaException) as raised:
        older.commit_transaction(_SECONDS)
    newer.commit_transaction(_SECONDS)

    assert _cause(raised).fatal()
    assert _cause(raised).code() in (KafkaError._FENCED, KafkaError._FATAL)
    refused = _write(older, name, [b"never seen"])
    assert refused is not None
    assert refused.error.code() == KafkaError._FATAL
    assert [r.value for r in _read(make, name)] == [b"seen"]


def test_what_was_aborted_is_never_seen_and_the_next_transaction_is(make: Makes, topic: TopicFactory) -> None:
    name, producer = topic(), make.begun(linger_ms="900")
    _write(producer, name, [b"aborted"] * 10_000)
    producer.abort_transaction(_SECONDS)

    producer.begin_transaction()
    _write(producer, name, [b"committed"])
    producer.commit_transaction(_SECONDS)

    assert [r.value for r in _read(make, name)] == [b"committed"]
    assert {code for code, _, _ in make.undelivered} <= {KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT}


def test_what_was_purged_is_never_seen_and_the_transaction_of_the_next_producer_is(
    make: Makes, topic: TopicFactory
) -> None:
    """Behind a purge a producer is dropped: the broker may miss what was on its way, and refuse more."""
    name, producer = topic(), make.begun(linger_ms="900")
    _write(producer, name, [b"purged"] * 10_000)
    producer.purge()
    producer.abort_transaction(_SECONDS)

    successor = make.begun()
    _write(successor, name, [b"committed"])
    successor.commit_transaction(_SECONDS)

    assert [r.value for r in _read(make, name)] == [b"committed"]


def test_a_broker_that_goes_away_in_the_middle_is_told_and_the_commit_goes_on(
    kind: ProducerKind, mortal: KafkaBroker
) -> None:
    make = Makes(kind, KafkaOptions.from_connection_extra(mortal.client_config(), "k"))
    administrator.create_topic(AdminClient(mortal.client_config()), "data")
    producer = make.begun()
    values = [b"%d" % number for number in range(5_000)]
    keys = pa.nulls(len(values), pa.binary())

    producer.produce_rows("data", keys, pa.array(values), _give_up)
    mortal.kill()
    producer.produce_rows("data", keys, pa.array(values), _give_up)
    with pytest.raises(KafkaException) as raised:
        producer.commit_transaction(1)
    told = _cause(raised)
    mortal.restart()
    producer.commit_transaction(_SECONDS)

    assert (told.code(), told.retriable(), told.txn_requires_abort()) == (KafkaError._TIMED_OUT, True, False)
    assert make.complaints.newest is not None
    assert [r.value for r in _read(make, "data")] == values * 2


def test_refused_credentials_are_told_in_the_background(kind: ProducerKind, guarded: KafkaBroker) -> None:
    wrong = {**guarded.client_config("user"), "sasl.password": "wrong"}
    make = Makes(kind, KafkaOptions.from_connection_extra(wrong, "k"))
    producer = make()

    until(lambda: producer.poll(0.1) >= 0 and make.complaints.final is not None, "a complaint")

    assert make.complaints.final is not None
    assert make.complaints.final.code() in REFUSED_CREDENTIALS
    assert "Invalid username or password" in make.complaints.final.str()


def test_a_setting_that_is_not_known_is_named(make: Makes) -> None:
    with pytest.raises(KafkaException, match=r"no\.such\.setting"):
        make(no_such_setting="1")


def test_a_broker_that_is_away_is_told_in_time(kind: ProducerKind) -> None:
    away = KafkaOptions.from_connection_extra({"bootstrap.servers": "127.0.0.1:1"}, "k")
    producer = Makes(kind, away)()

    started = time.monotonic()

    with pytest.raises(KafkaException):
        producer.list_topics(timeout=0.5)
    with pytest.raises(KafkaException):
        producer.init_transactions(0.5)

    assert time.monotonic() - started < 5


# Its end.


@pytest.mark.parametrize("is_begun", [False, True], ids=["never used", "with rows"])
def test_a_producer_that_is_dropped_ends_its_threads(
    make: Makes, topic: TopicFactory, is_begun: bool
) -> None:
    name = topic()
    gc.collect()
    before = _threads()
    producer: list[RowProducer] = [make.begun(linger_ms="900") if is_begun else make()]
    if is_begun:
        _write(producer[0], name, [b"never sent"] * 100)
    own = _threads() - before  # of other producers some may end meanwhile

    producer.clear()

    assert own
    until(lambda: not own & _threads(), "its threads are gone")
