"""What messages carry beside key and value: the parts that librdkafka is given, partitions, times."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from airflow_provider_sinks.connectors.kafka import librdkafka, row_path
from airflow_provider_sinks.connectors.kafka.carried import NOTHING, Carried, each, header_bytes, headers_of
from airflow_provider_sinks.connectors.kafka.columns import (
    HEADER_NAME,
    HEADER_VALUE,
    HEADERS,
    TIME,
)
from airflow_provider_sinks.connectors.kafka.murmur2 import murmur2, murmur2_of, partitions_of
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.kafka.part_array import PART, PartArray, part_array
from airflow_provider_sinks.connectors.kafka.preflight.topic_checks import (
    SinkTopic,
    TopicSurvey,
    topic_checks,
)
from airflow_provider_sinks.connectors.kafka.record_size import TOPIC_LIMIT
from airflow_provider_sinks.connectors.kafka.spec import kafka_sink
from airflow_provider_sinks.connectors.kafka.time_limits import LOG_APPEND_TIME, TIME_TYPE, time_limits
from airflow_provider_sinks.connectors.kafka.topic_facts import POLICY
from airflow_provider_sinks.core.checks.check import Check, Outcome
from airflow_provider_sinks.core.dead_letters.letter import ErrorClass
from airflow_provider_sinks.core.decision.facts import Existence
from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.core.spec.sink import SinkSpec

Pairs = list[tuple[str, bytes | None]]

_KIND = pa.list_(pa.struct([(HEADER_NAME, pa.string()), (HEADER_VALUE, pa.binary())]))
_HEADERS: list[Pairs | None] = [
    [("a", b"1"), ("ü", None)],
    [],
    None,
    [("", b""), ("a", b"\x00b"), ("a", b"last")],
]
_KEYS = [b"k", None, b"", b"key"]
_VALUES = [b"", b"v", None, b"value"]
_NOW_MS = 1_700_000_000_000


def _column(rows: list[Pairs | None]) -> pa.Array:
    found = [
        None if row is None else [{HEADER_NAME: name, HEADER_VALUE: value} for name, value in row]
        for row in rows
    ]
    return pa.array(found, _KIND)


def _message(parts: PartArray, row: int) -> dict[int, list[Any]]:
    """Return what a C function would read: the contents by the kinds of parts."""
    address, count = parts.calls[row]
    found: dict[int, list[Any]] = {}
    for place in range(count):
        part = librdkafka.Part.from_address(address + place * ctypes.sizeof(librdkafka.Part))
        found.setdefault(part.kind, []).append(_content(part, address + place * PART.itemsize))
    return found


def _content(part: librdkafka.Part, address: int) -> object:
    first, second, third = (ctypes.c_size_t.from_address(address + at).value for at in (8, 16, 24))
    match part.kind:
        case librdkafka.KEY_PART | librdkafka.VALUE_PART:
            return ctypes.string_at(first, second) if first else None
        case librdkafka.HEADER_PART:
            return part.u.header.name.decode(), ctypes.string_at(second, third) if second else None
        case librdkafka.TIME_PART | librdkafka.TOPIC_HANDLE_PART | librdkafka.HEADERS_PART:
            return first
        case _:
            return part.u.number


def test_each_message_has_the_parts_of_its_row() -> None:
    keys, values = pa.array([b"cut", *_KEYS]), pa.array([b"cut", *_VALUES])
    headers, times = _column([[("cut", b"")], *_HEADERS]), pa.array([9, 1, 2, 3, 4], pa.int64())
    carried = Carried(headers.slice(1), times.slice(1), np.array([2, -1, 0, 1], np.int32))

    parts = part_array(77, keys.slice(1), values.slice(1), carried)

    assert [_message(parts, row) for row in range(len(parts))] == [
        {
            librdkafka.TOPIC_HANDLE_PART: [77],
            librdkafka.FLAGS_PART: [librdkafka.COPY],
            librdkafka.PARTITION_PART: [partition],
            librdkafka.KEY_PART: [key],
            librdkafka.VALUE_PART: [value],
            librdkafka.TIME_PART: [time],
            **({librdkafka.HEADER_PART: pairs} if pairs else {}),
        }
        for partition, key, value, time, pairs in zip(
            [2, -1, 0, 1], _KEYS, _VALUES, [1, 2, 3, 4], _HEADERS, strict=True
        )
    ]


def test_a_part_is_what_the_structure_says() -> None:
    assert PART.itemsize == ctypes.sizeof(librdkafka.Part)
    assert {PART.fields[name][1] for name in ("number", "long", "first")} == {librdkafka.Part.u.offset}  # type: ignore[index]  # it has names


def test_without_headers_and_times_there_are_no_parts_of_them() -> None:
    parts = part_array(1, pa.array([b"k"]), pa.array([b"v"]), Carried(_column([[]])))

    assert not {librdkafka.TIME_PART, librdkafka.HEADER_PART} & _message(parts, 0).keys()
    assert _message(parts, 0)[librdkafka.PARTITION_PART] == [librdkafka.ANY_PARTITION]


def test_headers_that_no_row_has_come_from_java_without_any_place() -> None:
    texts = [pa.Array.from_buffers(kind, 0, [None, pa.py_buffer(b""), pa.py_buffer(b"")])
             for kind in (pa.string(), pa.binary())]  # fmt: skip
    pairs = pa.StructArray.from_arrays(texts, names=[HEADER_NAME, HEADER_VALUE])
    column = pa.ListArray.from_arrays(pa.array([0, 0, 0], pa.int32()), pairs)

    parts = part_array(1, pa.array([b"k", None]), pa.array([b"v", b"w"]), Carried(column))

    assert header_bytes(column).tolist() == [0, 0]
    assert [librdkafka.HEADER_PART in _message(parts, row) for row in range(2)] == [False, False]
    assert _message(parts, 1)[librdkafka.VALUE_PART] == [b"w"]


def test_headers_with_a_zero_byte_in_a_name_are_one_list_and_no_other_rows() -> None:
    column = _column([[("cut", b"")], [("a", b"1")], [("b\0c", b"2"), ("d", None)], [], [("e", b"3")]])

    parts = part_array(1, pa.array([None] * 4, pa.binary()), pa.array([b"v"] * 4), Carried(column.slice(1)))

    listed = {row: librdkafka.HEADERS_PART in _message(parts, row) for row in range(4)}
    assert listed == {0: False, 1: True, 2: False, 3: False}
    assert _message(parts, 1)[librdkafka.HEADERS_PART] == [parts.lists[1].address]
    found = [_message(parts, row).get(librdkafka.HEADER_PART) for row in range(4)]
    assert found == [[("a", b"1")], None, None, [("e", b"3")]]


def test_headers_of_rows_are_counted_and_told() -> None:
    column = _column(_HEADERS)

    assert header_bytes(column).tolist() == [1 + 1 + 2 + 20, 0, 0, 1 + 2 + 1 + 4 + 30]
    assert [headers_of(column, row) for row in range(4)] == [tuple(pairs or ()) for pairs in _HEADERS]
    assert [one["headers"] for one in each(Carried(column), 4)] == [pairs or [] for pairs in _HEADERS]
    assert headers_of(None, 0) == ()


@pytest.mark.parametrize("columns", [(), (HEADERS,), (TIME,), (HEADERS, TIME)])
def test_calls_are_needed_for_headers_and_times_alone(columns: tuple[str, ...]) -> None:
    kinds = {HEADERS: _KIND, TIME: pa.int64()}
    rows = pa.RecordBatch.from_pylist([], pa.schema([(name, kinds[name]) for name in columns]))

    carried = Carried.of(rows)

    assert carried.needs_calls is bool(columns)
    assert (carried is NOTHING) is not bool(columns)
    assert not Carried(partitions=np.zeros(1, np.int32)).needs_calls


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.string()])
def test_the_hash_is_kafkas_for_all_lengths_at_once_and_one_by_one(kind: pa.DataType) -> None:
    texts = [
        "",
        "21",
        "foobar",
        "a-little-bit-long-string",
        *("x" * size for size in range(600)),
        "y" * 9_000,
    ]
    known = [275646681, -973932308, -790332482, -985981536]
    column = pa.array(["cut", *texts]).cast(kind).slice(1)

    found = murmur2(column)

    assert found[:4].astype(np.int32).tolist() == known
    assert found.tolist() == [murmur2_of(text.encode()) for text in texts]


def test_a_partition_is_the_hash_without_its_sign() -> None:
    hashes = np.array([0, 2**31 - 1, 2**31, 2**32 - 1], np.uint32)

    assert partitions_of(hashes, 10).tolist() == [0, 7, 0, 7]
    assert murmur2(pa.array([], pa.binary())).tolist() == []


@pytest.mark.parametrize(
    ("config", "time_ms", "said"),
    [
        ({}, 10**15, ""),
        ({"message.timestamp.after.max.ms": "3600000"}, _NOW_MS + 3_600_000, ""),
        (
            {"message.timestamp.after.max.ms": "3600000"},
            _NOW_MS + 3_600_001,
            "after.max.ms of the topic is 3,6",
        ),
        ({"message.timestamp.before.max.ms": "3600000"}, _NOW_MS - 3_500_000, ""),
        (
            {"message.timestamp.before.max.ms": "3600000"},
            _NOW_MS - 3_600_000,
            "before.max.ms of the topic is 3",
        ),
        (
            {"message.timestamp.difference.max.ms": "1000"},
            _NOW_MS + 1_001,
            "It is 2023-11-14T22:13:21.001+00:00",
        ),
        ({"message.timestamp.after.max.ms": "0"}, 2**62, f"It is {2**62:,} ms since 1970"),
        ({"message.timestamp.after.max.ms": "9223372036854775807"}, 2**62, ""),
        ({"message.timestamp.after.max.ms": "0", TIME_TYPE: LOG_APPEND_TIME}, 2**62, ""),
    ],
    ids=str,
)
def test_a_time_is_judged_by_the_limits_of_its_topic(config: dict[str, str], time_ms: int, said: str) -> None:
    found = time_limits("t", config).why_not(time_ms, _NOW_MS)

    assert said in found
    assert bool(found) is bool(said)


def test_what_is_taken_for_long_is_taken_now_and_in_ten_minutes() -> None:
    limits = time_limits("t", {"message.timestamp.difference.max.ms": "7200000"})

    first, last = limits.taken_for_long_ms(_NOW_MS)

    assert first > limits.taken_ms(_NOW_MS + 600_000)[0]
    assert last <= limits.taken_ms(_NOW_MS)[1]
    assert (first, last) == limits.taken_for_long_ms(_NOW_MS // 600_000 * 600_000)


@pytest.mark.parametrize(
    "error",
    ["The timestamp cannot be written: column at is null.", "The value cannot be written: field a is null"],
)
def test_a_time_that_cannot_be_written_is_told_as_a_conversion(error: str) -> None:
    assert (ErrorClass.of(error), ErrorClass.of_row(error)) == (ErrorClass.CONVERT, ErrorClass.CONVERT)


def test_a_time_that_the_topic_refuses_is_told_as_refused() -> None:
    assert ErrorClass.of('Topic "t" does not take the timestamp of the row. It is') is ErrorClass.REFUSED


def _spec(**target: object) -> SinkSpec:
    source = {"connection": "k", "topic": "in", "format": "json", "schema": "id long, at timestamp"}
    kafka = {"connection": "k", "topic": "out", **target}
    return SinkSpec.parse({"name": "s", "source": {"kafka": source}, "target": {"kafka": kafka}})


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ({}, ""),
        ({"partition_by": "id", "timestamp": "now"}, ""),
        ({"headers": "source"}, "a call each"),
        ({"timestamp": {"column": "at"}}, "a call each"),
    ],
    ids=str,
)
def test_rows_that_go_by_calls_are_told(target: dict[str, object], said: str) -> None:
    found = row_path.told(kafka_sink(_spec(**target)).target.kafka)

    assert said in found
    assert bool(found) is bool(said)


@pytest.mark.parametrize(
    ("config", "outcome", "said"),
    [
        ({TIME_TYPE: LOG_APPEND_TIME}, Outcome.UNKNOWN, "the broker puts its own time in the place of"),
        (
            {TIME_TYPE: "CreateTime", "message.timestamp.after.max.ms": "3600000"},
            Outcome.PASS,
            "CreateTime, message.timestamp.after.max.ms 3,600,000",
        ),
        (None, Outcome.UNKNOWN, "hidden"),
    ],
    ids=["ignored", "kept", "hidden"],
)
def test_a_validation_says_whether_a_topic_keeps_times(
    config: dict[str, str] | None, outcome: Outcome, said: str
) -> None:
    check = _time_check(_spec(timestamp="source"), config)

    assert check is not None
    assert (check.outcome, said in check.detail) == (outcome, True)


@pytest.mark.parametrize("name", [TIME_TYPE, TOPIC_LIMIT])
def test_a_validation_that_may_not_see_a_limit_of_rows_names_the_right(name: str) -> None:
    check = _topic_check(_spec(timestamp="source"), None, name)

    assert check is not None
    assert check.outcome is Outcome.UNKNOWN
    assert "--operation DescribeConfigs --topic out" in check.hint


def test_times_of_their_writing_are_not_checked() -> None:
    assert _time_check(_spec(), {TIME_TYPE: LOG_APPEND_TIME}) is None


def test_tombstones_stay_in_the_partition_of_their_key() -> None:
    _spec(key="id", tombstones=True, partition_by="id")

    with pytest.raises(ConfigurationError) as caught:
        _spec(key="id", tombstones=True, partition_by=["id", "at"])

    assert "target.kafka.partition_by: names at beside the key: null in a tombstone" in str(caught.value)


@pytest.mark.parametrize(
    ("partition_by", "outcome"), [("id", Outcome.PASS), ("at", Outcome.UNKNOWN)], ids=["key", "beside it"]
)
def test_a_compacted_topic_is_checked_for_one_place_of_each_key(partition_by: str, outcome: Outcome) -> None:
    check = _topic_check(_spec(key="id", partition_by=partition_by), {POLICY: "compact"}, POLICY)

    assert check is not None
    assert check.outcome is outcome, check


def test_a_compacted_topic_is_checked_for_a_key_of_each_row() -> None:
    check = _topic_check(_spec(), {POLICY: "delete, compact"}, POLICY)

    assert check is not None
    assert "rows whose source record has none stop the sink" in check.detail
    assert (check.outcome, check.hint) == (
        Outcome.UNKNOWN,
        "Name target.kafka.key, or set the policy to delete.",
    )


def _time_check(spec: SinkSpec, config: dict[str, str] | None) -> Check | None:
    return _topic_check(spec, config, TIME_TYPE)


def _topic_check(spec: SinkSpec, config: dict[str, str] | None, name: str) -> Check | None:
    creations = {made.name: (role, made) for role, made in kafka_sink(spec).creations().items()}
    role, made = creations["out"]
    survey = TopicSurvey("out", Existence.PRESENT, config=config)
    options = KafkaOptions.from_connection_extra({"bootstrap.servers": "b:1"}, "k")
    found = topic_checks(options, spec, [SinkTopic("out", (role,), made)], {"out": survey}, {})
    return next((check for check in found if check.name.startswith(name)), None)
