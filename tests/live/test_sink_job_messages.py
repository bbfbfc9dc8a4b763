"""What messages carry beside their values: headers, times, partitions of columns; keys left out of values."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer

from airflow_provider_sinks.connectors.kafka.arrow_producer import ArrowProducer
from airflow_provider_sinks.connectors.kafka.client_failures import Complaints
from airflow_provider_sinks.connectors.kafka.murmur2 import murmur2, partitions_of
from airflow_provider_sinks.core.errors import ExitCode
from tests.faults.topics import Record
from tests.live import segments
from tests.live.replaying import replay
from tests.live.stage import WHO_WRITES, KeyValue, Stage

_SCHEMA = "id int, region string, trace string, tags array<string>, at timestamp"
_AT_MS = 1_700_000_000_123
_HEADERS: list[tuple[str, str | bytes | None]] = [("trace", b"\x00\xff"), ("none", None), ("trace", b"2")]


def _row(number: int, **changes: object) -> KeyValue:
    row = {"id": number, "region": f"r{number % 5}", "trace": f"t{number}", "at": "2023-11-14T22:13:20.123Z"}
    return "k", json.dumps(row | changes)


def _produce(stage: Stage, source: str, values: Sequence[str | bytes], at_ms: int = _AT_MS) -> None:
    producer = Producer({**stage.client, "linger.ms": "5"})
    for number, value in enumerate(values):
        producer.produce(source, key="k", value=value, headers=_HEADERS, timestamp=at_ms + number)
    assert producer.flush(30) == 0


def _told(letters: Sequence[Record], *names: str) -> list[tuple[str, ...]]:
    told = [dict(letter.headers) for letter in letters]
    return [tuple(str(bytes(one[name] or b""), "utf-8") for name in names) for one in told]  # type: ignore[arg-type]


@pytest.mark.parametrize("stage", WHO_WRITES, indirect=True)
def test_messages_carry_what_columns_say_and_what_kafka_refuses_is_set_aside(stage: Stage) -> None:
    late = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 86_400))
    bad = [_row(90, at=None), _row(91, at="1970-01-01T00:00:00Z"), _row(92, at=late)]
    nulls = _row(60, region=None, trace=None, tags=["a", None])
    source = stage.source("carried", {0: [*map(_row, range(50)), *bad, nulls]})
    to = {
        "key": "id",
        "key_in_value": False,
        "headers": {"trace": "trace", "all tags": "tags"},
        "timestamp": {"column": "at"},
        "partition_by": "region",
        "partitions": 3,
    }
    sink = stage.sink("carried", source, from_={"schema": _SCHEMA}, to=to, dead_letter=f"{source}-dead")

    status = sink.run()

    found, letters = stage.read(sink.out), stage.read(f"{source}-dead")
    regions = pa.array([b"r%d" % number for number in range(5)], pa.binary())
    places = partitions_of(murmur2(regions), 3).tolist()
    for partition in range(3):
        ids = [int(r.key or b"") for r in found if r.partition == partition and r.key != b"60"]
        assert ids == [number for number in range(50) if places[number % 5] == partition]
    assert {r.at_ms for r in found} == {_AT_MS}
    assert {r.key: r.headers for r in found} == {
        **{b"%d" % n: (("all tags", None), ("trace", b"t%d" % n)) for n in range(50)},
        b"60": (("all tags", b'["a",null]'), ("trace", None)),
    }
    assert json.loads(found[0].value or b"").keys() == {"region", "trace", "tags", "at"}
    assert (status.rows, status.dead_total) == (51, 3)
    assert [letter.value for letter in letters] == [str(value).encode() for _, value in bad]
    assert _told(letters, "error.class", "source.offset") == [
        ("convert", "50"), ("convert", "51"), ("refused", "52"),
    ]  # fmt: skip
    null, early, far = (text for (text,) in _told(letters, "error"))
    assert null == "The timestamp cannot be written: column at is null."
    assert "column at is 1970-01-01 00:00:00, and times of messages are later than" in early
    assert "does not take the timestamp of the row. It is " in far
    assert "message.timestamp.after.max.ms of the topic is 3,600,000." in far


def test_a_time_that_kafka_refuses_stops_a_sink_without_dead_letters(stage: Stage) -> None:
    source = stage.source("stops", {0: [_row(0), _row(1, at="2500-01-01T00:00:00Z")]})
    sink = stage.sink("stops", source, from_={"schema": _SCHEMA}, to={"timestamp": {"column": "at"}})

    status = sink.fail(ExitCode.CONFIGURATION)

    assert status.error is not None
    assert f'topic "{sink.out}" does not take the timestamp of a row' in status.error.primary
    assert f"Record {source}/0 at offset 1: It is 2500-01-01T00:00:00.000+00:00" in status.error.detail
    assert stage.read(sink.out) == []


@pytest.mark.parametrize("stage", WHO_WRITES, indirect=True)
def test_records_without_any_header_go_through_where_headers_of_the_source_do(stage: Stage) -> None:
    source = stage.source("bare", {0: [("k", json.dumps({"id": number})) for number in range(5)]})
    sink = stage.sink("bare", source, from_={"schema": "id int"}, to={"headers": "source"})

    status = sink.run()

    assert status.rows == 5
    assert [record.headers for record in stage.read(sink.out)] == [()] * 5


@pytest.mark.parametrize("stage", WHO_WRITES, indirect=True)
def test_headers_and_times_of_the_source_go_through_also_by_a_replay(stage: Stage) -> None:
    source = stage.topic("through-source")
    _produce(stage, source, ['{"id": 0}', "{", '{"id": "one"}'])
    to = {"headers": "source", "timestamp": "source"}
    sink = stage.sink("through", source, from_={"schema": "id int"}, to=to, dead_letter=f"{source}-dead")
    sink.run()
    first = stage.read(sink.out)
    sink.spec = {
        **sink.spec,
        "source": {"kafka": {"connection": "kafka", "topic": source, "schema": "id string"}},
    }

    status = replay(stage, sink).run()

    (passed,), replayed = first, stage.read(sink.out)[1:]
    assert (passed.key, passed.headers, passed.at_ms) == (b"k", tuple(_HEADERS), _AT_MS)
    assert [(r.value, r.headers, r.at_ms) for r in replayed] == [
        (b'{"id":"one"}', tuple(_HEADERS), _AT_MS + 2)
    ]
    assert (status.rows_total, status.dead_total) == (1, 1)


def test_a_zero_byte_in_the_name_of_a_header_of_the_source_goes_through_whole(stage: Stage) -> None:
    source, complaints = stage.topic("zero-source"), Complaints()
    producer = ArrowProducer(stage.client, complaints.take, lambda *_: None)
    for value in (b'{"value": 1}', b"{"):
        producer.produce(source, value=value, headers=[("a\0b", b"\x00v"), ("c", None)])
    producer.flush(30)
    to, dead = {"headers": "source", "compression": "none"}, f"{source}-dead"
    sink = stage.sink(
        "zero", source, from_={"format": "json", "schema": "value int"}, to=to, dead_letter=dead
    )

    sink.run()

    assert segments.content(stage.broker, source).count(b"a\0b") == 2
    assert b"a\0b\x04\x00v" in segments.content(stage.broker, sink.out)


def test_a_topic_with_times_of_its_own_takes_any_time(stage: Stage) -> None:
    source = stage.topic("append-source")
    _produce(stage, source, [b"a", b"b"])
    config: dict[str, Any] = {"config": {"message.timestamp.type": "LogAppendTime"}}
    to = {"timestamp": "source", "headers": "source", **config}
    sink = stage.sink("append", source, from_={"format": "bytes"}, to=to)
    before_ms = int(time.time() * 1000)

    sink.run()

    found = stage.read(sink.out)
    assert [(r.value, r.headers) for r in found] == [(b"a", tuple(_HEADERS)), (b"b", tuple(_HEADERS))]
    assert min(r.at_ms for r in found) >= before_ms - 60_000
