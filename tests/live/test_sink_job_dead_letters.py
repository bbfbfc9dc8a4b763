"""Records that do not parse: set aside in the same transaction, or a reason to stop."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from confluent_kafka import Producer

from airflow_provider_sinks.core.errors import ExitCode
from tests.faults.topics import Record
from tests.live.segments import batches
from tests.live.stage import WHO_WRITES, KeyValue, Stage

_SCHEMA = "id int, name string"
_GOOD: list[KeyValue] = [("k", f'{{"id": {number}, "name": "n{number}"}}') for number in range(3)]
_OTHERS: list[KeyValue] = [("k", f'{{"id": {number}, "name": "n{number}"}}') for number in range(10, 13)]
_BAD: list[KeyValue] = [
    ("no json", "{"),
    ("not an object", '"text"'),
    ("wrong type", '{"id": "one"}'),
    (b"\xff\x00", b"\xff\xfe"),
    (None, ""),
    ("two objects", '{"id": 1}{"id": 2}'),
]
_ALWAYS = (
    "error",
    "error.class",
    "source.topic",
    "source.partition",
    "source.offset",
    "sink",
    "generation",
    "epoch",
    "spec.digest",
    "replays",
)
_WHY = [
    "The value is not JSON.",
    "The value is not a JSON object.",
    "The value does not fit the schema: field id is not int.",
    "The value is not UTF-8.",
    "The value is empty.",
    "The value is more than one JSON object: something stands behind the first one.",
]


@pytest.mark.parametrize("stage", WHO_WRITES, indirect=True)
def test_dead_letters_say_where_they_come_from_and_keep_key_and_value(stage: Stage) -> None:
    source = stage.source("dead", {0: [*_GOOD, *_BAD], 1: [_BAD[0], *_GOOD]})
    dead = {"topic": f"{source}-dead", "partitions": 1}
    sink = stage.sink(
        "dead", source, from_={"schema": _SCHEMA}, to={"key": "id"}, where="id > 0", dead_letter=dead
    )

    status = sink.run()

    letters = {(r.key, r.value, _told(r, *_ALWAYS)) for r in stage.read(f"{source}-dead")}
    bad = list(zip(_BAD, _WHY, strict=True))
    places = [(0, 3 + number, *record) for number, record in enumerate(bad)] + [(1, 0, *bad[0])]
    assert letters == {
        (_bytes(key), _bytes(value), (
            ("error", why),
            ("error.class", "parse"),
            ("source.topic", source),
            ("source.partition", str(partition)),
            ("source.offset", str(offset)),
            ("sink", sink.parsed.name),
            ("generation", "1"),
            ("epoch", "1"),
            ("spec.digest", sink.parsed.digest),
            ("replays", "0"),
        ))
        for partition, offset, (key, value), why in places
    }  # fmt: skip
    assert sorted(record.key or b"" for record in stage.read(sink.out)) == [b"1", b"1", b"2", b"2"]
    assert (status.rows, status.dead_total) == (4, 7)


def test_a_row_without_a_key_for_a_compacted_topic_is_set_aside_as_it_came_or_stops_the_sink(
    stage: Stage,
) -> None:
    source = stage.source("keyless", {0: [*_GOOD, (None, '{"id": 9}')]})
    given = {"from_": {"schema": _SCHEMA}, "to": {"key": "name"}}
    aside = stage.sink("aside", source, dead_letter=f"{source}-dead", **given)
    stops = stage.sink("stops", source, **given)
    for sink in (aside, stops):
        stage.create_topic(sink.out, 1, **{"cleanup.policy": "compact"})

    status, error = aside.run(), stops.fail(ExitCode.CONFIGURATION).error

    (letter,) = stage.read(f"{source}-dead")
    why = f'Topic "{aside.out}" is compacted, and takes no record without a key.'
    assert (letter.key, letter.value) == (None, b'{"id": 9}')
    assert _told(letter, "error", "error.class") == (("error", why), ("error.class", "refused"))
    assert (status.rows, status.dead_total, len(stage.read(aside.out))) == (3, 1, 3)
    assert error is not None
    assert error.primary == f'topic "{stops.out}" takes no row of sink "{stops.parsed.name}" without a key'
    assert f"Record {source}/0 at offset 3: It has no key" in error.detail
    assert stage.read(stops.out) == []


@pytest.mark.parametrize("stage", WHO_WRITES, indirect=True)
def test_dead_letters_keep_time_and_headers_of_their_records(stage: Stage) -> None:
    source = stage.topic("headers-source")
    producer = Producer({**stage.client, "linger.ms": "5"})
    given: list[tuple[str, str | bytes | None]] = [("trace", b"\x00\xff"), ("none", None), ("trace", b"2")]
    producer.produce(source, value="{", headers=given, timestamp=1_700_000_000_123)
    producer.produce(source, value="[]", timestamp=1_700_000_000_124)
    assert producer.flush(30) == 0
    sink = stage.sink("headers", source, from_={"schema": _SCHEMA}, dead_letter=f"{source}-dead")

    sink.run()

    with_headers, without = map(_headers, stage.read(f"{source}-dead"))
    own = "source.header."
    assert [(name, value) for name, value in with_headers if name.startswith(own)] == [
        (f"{own}{name}", value) for name, value in given
    ]
    assert dict(with_headers)["source.timestamp"] == b"1700000000123"
    assert not [name for name, _ in without if name.startswith(own)]
    assert dict(without)["source.timestamp"] == b"1700000000124"


@pytest.mark.parametrize("stage", WHO_WRITES, indirect=True)
@pytest.mark.parametrize("writers", ["per_partition", "single"])
@pytest.mark.parametrize(
    ("limits", "which"),
    [
        ({"max_per_epoch": 11}, "max_per_epoch is 11"),
        ({"max_ratio": 0.7}, "max_ratio is 0.7, and this is 0.8"),
    ],
)
def test_a_sink_that_sets_too_much_aside_stops_before_its_commit(
    stage: Stage, limits: dict[str, float], which: str, writers: str
) -> None:
    bad: list[KeyValue] = [("k", "{"), *[("k", '{"id": "x"}')] * 11]
    source = stage.source("many", {0: [*_GOOD, *bad]})
    dead = {"topic": f"{source}-dead"}
    sink = stage.sink(
        "many", source, from_={"schema": _SCHEMA}, dead_letter={**dead, **limits}, writers=writers
    )

    status = sink.fail(ExitCode.REFUSED)

    assert status.error is not None
    assert "would set aside 12 of 15 records at once" in status.error.primary
    assert f"offsets 0: 0 to 15; dead_letter.{which}" in status.error.detail
    assert "Errors: 11 times: The value does not fit the schema: field id is not int" in status.error.detail
    assert stage.read(sink.out) == stage.read(f"{source}-dead") == []
    sink.spec = {**sink.spec, "dead_letter": dead}
    assert (sink.run().rows_total, len(stage.read(f"{source}-dead"))) == (3, 12)


@pytest.mark.parametrize("limits", [{"max_per_epoch": 12}, {"max_ratio": 0.8}])
def test_as_much_as_the_limits_say_is_set_aside(stage: Stage, limits: dict[str, float]) -> None:
    source = stage.source("few", {0: [*_GOOD, *[("k", "{")] * 12]})
    dead = {"topic": f"{source}-dead", **limits}
    sink = stage.sink("few", source, from_={"schema": _SCHEMA}, dead_letter=dead)

    status = sink.run()

    assert (status.rows_total, status.dead_total) == (3, 12)


@pytest.mark.parametrize("stage", WHO_WRITES, indirect=True)
def test_dead_letters_rows_and_progress_are_one_transaction(stage: Stage) -> None:
    source = stage.source("one", {0: [*_GOOD, *_BAD]})
    dead = f"{source}-dead"
    sink = stage.sink("one", source, from_={"schema": _SCHEMA}, dead_letter=dead)

    sink.run()

    producers, endings = {}, {}
    for topic in (sink.out, dead):
        found = batches(stage.broker, topic)
        producers[topic] = {batch.producer for batch in found}
        endings[topic] = [batch.is_marker for batch in found].count(True)
    progress = {batch.producer for batch in batches(stage.broker, sink.progress)}
    assert producers[sink.out] == producers[dead]
    assert len(producers[dead]) == 1
    assert producers[dead] <= progress
    assert endings == {sink.out: 1, dead: 1}
    newest = dict(stage.progress(sink))["p0"]
    assert (newest.rows, newest.rows_total, newest.dead_total) == (3, 3, 6)


def test_only_dead_letters_move_the_progress_too(stage: Stage) -> None:
    source = stage.source("only", {0: _BAD})
    sink = stage.sink("only", source, from_={"schema": _SCHEMA}, dead_letter=f"{source}-dead")
    sink.run()
    stage.produce(source, [(0, *_BAD[0])])

    status = sink.run()

    assert (status.rows_total, status.dead_total, status.positions) == (0, 7, {0: 7})
    assert len(stage.read(f"{source}-dead")) == 7
    assert stage.read(sink.out) == []


@pytest.mark.parametrize("stage", WHO_WRITES, indirect=True)
def test_single_writer_sets_dead_letters_aside_too(stage: Stage) -> None:
    source = stage.source("single", {0: [*_GOOD, _BAD[0]], 1: [_BAD[2], *_GOOD]})
    sink = stage.sink(
        "single", source, from_={"schema": _SCHEMA}, dead_letter=f"{source}-dead", writers="single"
    )

    status = sink.run()

    headers = sorted(
        dict(record.headers)["source.partition"] or b"" for record in stage.read(f"{source}-dead")
    )
    assert headers == [b"0", b"1"]
    assert (status.rows, status.dead_total) == (6, 2)
    assert {writer for writer, _ in stage.progress(sink)} == {"driver", "all"}


def test_a_query_with_state_sets_dead_letters_aside_and_does_not_count_them(stage: Stage) -> None:
    source = stage.source("state", {0: [*_GOOD, *_BAD, ("k", '{"id": 9}'), *_GOOD]})
    query = "SELECT name, count(*) AS n FROM source GROUP BY name"
    schema = {"schema": f"{_SCHEMA} NOT NULL"}
    sink = stage.sink(
        "state", source, from_=schema, to={"key": "name"}, query=query, dead_letter=f"{source}-dead"
    )

    sink.run()

    counts = {row["name"]: row["n"] for row in (json.loads(r.value or b"") for r in stage.read(sink.out))}
    errors = [dict(r.headers)["error"] for r in stage.read(f"{source}-dead")]
    missing = "The value does not fit the schema: field name is missing or null, and it is required."
    assert counts == {"n0": 2, "n1": 2, "n2": 2}
    assert Counter(errors) == Counter(why.encode() for why in (*_WHY, missing))


@pytest.mark.parametrize("stage", WHO_WRITES, indirect=True)
def test_without_a_dead_letter_topic_the_job_stops_and_names_the_record(stage: Stage) -> None:
    source = stage.source("stop", {0: [*_GOOD, _BAD[0], *_GOOD], 1: _OTHERS})
    sink = stage.sink("stop", source, from_={"schema": _SCHEMA})

    status = sink.fail(ExitCode.CONFIGURATION)

    assert status.error is not None
    assert "does not parse" in status.error.primary
    assert f"{source}/0 at offset 3" in status.error.detail
    assert "`dead_letter: {topic: ...}`" in status.error.hint
    assert set(_ids(stage, sink.out)) <= {10, 11, 12}


def test_a_sink_that_stopped_goes_on_once_it_has_a_dead_letter_topic(stage: Stage) -> None:
    source = stage.source("mended", {0: [*_GOOD, _BAD[0]], 1: _OTHERS})
    sink = stage.sink("mended", source, from_={"schema": _SCHEMA}, to={"partitions": 2})
    sink.fail(ExitCode.CONFIGURATION)
    sink.spec = {**sink.spec, "dead_letter": f"{source}-dead"}

    sink.run()

    assert sorted(_ids(stage, sink.out)) == [0, 1, 2, 10, 11, 12]
    assert len(stage.read(f"{source}-dead")) == 1


def _told(record: Record, *names: str) -> tuple[tuple[str, str], ...]:
    """Return some headers of a letter, in their order."""
    return tuple((name, (value or b"").decode()) for name, value in _headers(record) if name in names)


def _headers(record: Record) -> list[tuple[str, bytes | None]]:
    return [(name, value.encode() if isinstance(value, str) else value) for name, value in record.headers]


def _bytes(given: str | bytes | None) -> bytes | None:
    return given.encode() if isinstance(given, str) else given


def _ids(stage: Stage, topic: str) -> list[int]:
    return [json.loads(record.value or b"{}")["id"] for record in stage.read(topic)]
