"""Ranges of a topic, read without Spark: each record once and in order, or an error; by either client."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from airflow_provider_sinks.connectors import rows
from airflow_provider_sinks.connectors.kafka import reading_clients
from airflow_provider_sinks.connectors.kafka.arrow_consumer import ArrowConsumer
from airflow_provider_sinks.connectors.kafka.fetched import RecordConsumer
from airflow_provider_sinks.connectors.kafka.object_consumer import ObjectConsumer
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.kafka.range_reader import RangeReader
from airflow_provider_sinks.connectors.kafka.reading_clients import ReadingClient
from airflow_provider_sinks.core.errors import AuthenticationError, JobFailedError, UnavailableError
from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.listeners import Mechanism, Sasl
from tests import administrator
from tests.support import TopicFactory

_SECONDS = 120.0
KeyValue = tuple[bytes | None, bytes | None]
Read = tuple[int, bytes | None, bytes | None]


@pytest.fixture(params=[ArrowConsumer, ObjectConsumer], ids=["arrow", "objects"], autouse=True)
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[RecordConsumer]]:
    """Readers have clients of this kind, and none is kept for the next test."""
    kind: type[RecordConsumer] = request.param
    monkeypatch.setattr(reading_clients, "consumer_kind", lambda: kind)
    kept: list[tuple[RangeReader, ReadingClient]] = []
    monkeypatch.setattr(reading_clients, "_kept", kept)
    yield kind
    for _, client in kept:
        client.close()


@pytest.fixture(params=[False, True], ids=["one by one", "reading on"])
def reader(request: pytest.FixtureRequest, kafka_options: KafkaOptions, topic: TopicFactory) -> RangeReader:
    """A reader of an empty topic with two partitions."""
    return RangeReader(kafka_options, topic("read", 2), request.param)


def _producer(options: KafkaOptions) -> Producer:
    own = {"transactional.id": uuid.uuid4().hex, "linger.ms": 0, "log_level": 0}
    producer = Producer({**options.librdkafka(), **own})
    producer.init_transactions(_SECONDS)
    return producer


def _fill(reader: RangeReader, given: list[KeyValue], *, partition: int = 0, commits: bool = True) -> None:
    """Write records by one transaction; it takes an offset more than there are records."""
    producer = _producer(reader.options)
    producer.begin_transaction()
    for key, value in given:
        producer.produce(reader.topic, key=key, value=value, partition=partition, headers={"h": b"1"})
    producer.flush(_SECONDS)
    (producer.commit_transaction if commits else producer.abort_transaction)(_SECONDS)


def _read(
    reader: RangeReader, begin: int, end: int, partition: int = 0, leader_epoch: int | None = 0
) -> list[Read]:
    """Return offsets, keys and values of a range."""
    found: list[Read] = []
    for batch in reader(partition, begin, end, leader_epoch):
        assert set(rows.integers(batch.column(rows.PARTITION))) == {partition}
        columns = (batch.column(name).to_pylist() for name in (rows.OFFSET, rows.RAW_KEY, rows.RAW_VALUE))
        found += zip(*columns, strict=True)
    return found


_MANY: list[KeyValue] = [(b"key-%d" % n, b"value-%d" % n * (1 + n % 7)) for n in range(30_000)]


def test_keys_and_values_come_as_they_are(reader: RangeReader) -> None:
    given: list[KeyValue] = [(b"k", b"v"), (None, b""), (b"", None), (None, None), (b"\0", b"\0" * 1_000)]
    _fill(reader, given)

    assert _read(reader, 0, 5) == [(offset, *pair) for offset, pair in enumerate(given)]


def test_a_range_is_cut_at_both_ends_and_the_next_goes_on_there(reader: RangeReader) -> None:
    _fill(reader, _MANY)
    all_of_it = [(offset, *pair) for offset, pair in enumerate(_MANY)]
    cuts = [0, 1, 9_000, 9_001, 20_000, 30_000]

    assert [_read(reader, *cut) for cut in pairwise(cuts)] == [
        all_of_it[begin:end] for begin, end in pairwise(cuts)
    ]


def test_partitions_are_read_in_turn(reader: RangeReader) -> None:
    for partition in (0, 1):
        _fill(reader, [(b"%d" % partition, b"%d" % n) for n in range(6)], partition=partition)

    found = [_read(reader, begin, begin + 2, partition) for begin in (0, 2, 4) for partition in (0, 1)]

    assert [value for part in found for _, _, value in part] == [
        b"%d" % n for n in (0, 1, 0, 1, 2, 3, 2, 3, 4, 5, 4, 5)
    ]
    assert [part[0][1] for part in found] == [b"0", b"1"] * 3


def test_a_range_may_be_read_again(reader: RangeReader) -> None:
    _fill(reader, _MANY[:100])

    assert _read(reader, 10, 20) == _read(reader, 10, 20)


def test_a_reading_that_was_given_up_leaves_nothing_to_the_next(reader: RangeReader) -> None:
    _fill(reader, _MANY)
    begun = reader(0, 0, 30_000, 0)
    assert next(iter(begun)).num_rows
    begun.close()  # type: ignore[attr-defined]

    assert _read(reader, 0, 2) == [(0, *_MANY[0]), (1, *_MANY[1])]


def test_what_was_aborted_is_left_out_and_so_are_marks(reader: RangeReader) -> None:
    _fill(reader, [(b"a", b"1")])  # the mark is at 1
    _fill(reader, [(b"ghost", b"2")], commits=False)  # 2 and 3
    _fill(reader, [(b"b", b"3")])  # 4 and 5

    assert _read(reader, 0, 6) == [(0, b"a", b"1"), (4, b"b", b"3")]


def test_a_range_without_a_record_ends(reader: RangeReader) -> None:
    _fill(reader, [(b"a", b"1")])
    _fill(reader, [(b"ghost", b"2")], commits=False)

    assert [_read(reader, begin, 4) for begin in (1, 2, 3)] == [[], [], []]


def test_records_that_come_behind_a_range_are_in_the_next(reader: RangeReader) -> None:
    found = []
    for number in range(3):
        _fill(reader, [(b"k", b"%d" % number)])
        found += _read(reader, 2 * number, 2 * number + 2)

    assert found == [(0, b"k", b"0"), (2, b"k", b"1"), (4, b"k", b"2")]


def test_what_was_fetched_under_another_leader_is_fetched_again(
    kind: type[RecordConsumer],
    kafka_options: KafkaOptions,
    topic: TopicFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reader = RangeReader(kafka_options, topic("read", 1), reads_on=True)
    _fill(reader, _MANY[:100])
    started: list[int] = []
    start = kind.start

    def note(client: RecordConsumer, partition: int, offset: int) -> None:
        started.append(offset)
        start(client, partition, offset)

    monkeypatch.setattr(kind, "start", note)
    found = [_read(reader, n, n + 10, 0, epoch) for n, epoch in ((0, 5), (10, 5), (20, 6), (30, None))]

    assert [part[0][0] for part in found] == [0, 10, 20, 30]
    assert started == [0, 20, 30]


def test_a_record_of_a_megabyte_comes_whole(reader: RangeReader) -> None:
    value = bytes(range(256)) * 3_900
    _fill(reader, [(b"k", value), (b"k", b"small")])

    assert _read(reader, 0, 2) == [(0, b"k", value), (1, b"k", b"small")]


def test_records_that_are_gone_are_told_by_their_offset(reader: RangeReader) -> None:
    _fill(reader, _MANY[:10])
    administrator.remove_records(AdminClient({**reader.options.librdkafka()}), reader.topic, {0: 5})

    with pytest.raises(JobFailedError, match=f"records of source {reader.topic}/0 are gone") as failed:
        _read(reader, 0, 10)

    assert "Offset 0 is not there" in failed.value.detail
    assert "Start again" in failed.value.hint


def test_a_topic_that_is_not_there_is_told(kafka_options: KafkaOptions) -> None:
    with pytest.raises(UnavailableError, match='could not give records of "nowhere"') as failed:
        _read(RangeReader(kafka_options, "nowhere"), 0, 1)

    assert "UNKNOWN" in failed.value.detail.upper()


def test_refused_credentials_are_told_at_once(tmp_path: Path) -> None:
    sasl = Sasl(Mechanism.PLAIN, {"user": "right"})
    with KafkaBroker.start(tmp_path / "kafka", sasl=sasl) as broker:
        extra = {**broker.client_config("user"), "sasl.password": "wrong"}
        wrong = KafkaOptions.from_connection_extra(extra, "guarded")
        began = time.monotonic()

        with pytest.raises(AuthenticationError, match="refused the credentials"):
            _read(RangeReader(wrong, "any"), 0, 1)

    assert time.monotonic() - began < _SECONDS / 2


def test_a_broker_that_comes_back_is_read_on(tmp_path: Path) -> None:
    with KafkaBroker.start(tmp_path / "kafka") as broker:
        options = KafkaOptions.from_connection_extra(dict(broker.client_config()), "mortal")
        admin = AdminClient({**broker.client_config(), "log_level": 0})
        administrator.create_topic(admin, "read")
        reader = RangeReader(options, "read")
        _fill(reader, _MANY)
        batches = reader(0, 0, 30_000, 0)
        first = next(iter(batches))
        broker.pause()
        time.sleep(1)
        broker.resume()
        whole = pa.Table.from_batches([first, *batches])

    assert whole.column(rows.RAW_VALUE).to_pylist() == [value for _, value in _MANY]


def test_no_secret_is_in_what_is_printed(kafka_options: KafkaOptions) -> None:
    secret = replace(kafka_options, options={**kafka_options.options, "sasl.password": "geheim"})

    assert "geheim" not in repr(RangeReader(secret, "t"))
