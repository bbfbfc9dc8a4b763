"""Rows that a topic does not take, for their size: set aside, or named; never tried again and again."""

from __future__ import annotations

import base64
import hashlib
import json
import os

import pytest

from airflow_provider_sinks.core.errors import ExitCode
from tests.faults.topics import Record
from tests.live.stage import WHO_WRITES, KeyValue, Sink, Stage

_LIMIT = 100_000
_TEXT = {"from_": {"format": "text"}}
_EVERY = {"trigger": {"every": "100ms"}}


def _noise(size: int) -> str:
    """Text of this size that hardly shrinks when it is compressed."""
    return base64.b85encode(os.urandom(size))[:size].decode()


LARGE = _noise(2 * _LIMIT)
_ROWS: list[KeyValue] = [("k", "before"), ("large", LARGE), ("k", "behind")]


def _sink(stage: Stage, suffix: str, source: str, limit: int = _LIMIT, **spec: object) -> Sink:
    sink = stage.sink(suffix, source, **{**_TEXT, **spec})
    stage.create_topic(sink.out, 1, **{"max.message.bytes": str(limit)})
    return sink


def _values(records: list[Record]) -> list[str]:
    return [(record.value or b"").decode() for record in records]


def _headers(record: Record) -> dict[str, str]:
    return {
        name: value.decode() if isinstance(value, bytes) else value or "" for name, value in record.headers
    }


@pytest.mark.parametrize("stage", WHO_WRITES, indirect=True)
def test_a_row_that_the_topic_does_not_take_stops_the_sink_at_once_and_is_named(stage: Stage) -> None:
    source = stage.source("large", {0: _ROWS})
    sink = _sink(stage, "large", source)

    status = sink.fail(ExitCode.CONFIGURATION)

    assert status.error is not None
    assert status.error.primary.startswith(f'topic "{sink.out}" does not take a row of sink')
    assert f"Record {source}/0 at offset 1: It has 200,0" in status.error.detail
    assert status.error.detail.endswith("and max.message.bytes of the topic is 100,000.")
    assert f"--entity-name {sink.out} --add-config max.message.bytes=" in status.error.hint
    assert "`dead_letter: {topic: ...}`" in status.error.hint
    assert stage.read(sink.out) == []


@pytest.mark.parametrize("stage", WHO_WRITES, indirect=True)
def test_a_row_that_the_topic_does_not_take_is_set_aside_as_it_came(stage: Stage) -> None:
    source = stage.source("aside", {0: _ROWS})
    sink = _sink(stage, "aside", source, dead_letter=f"{source}-dead")

    status = sink.run()

    (letter,) = stage.read(f"{source}-dead")
    headers = _headers(letter)
    assert (letter.key, letter.value) == (b"large", LARGE.encode())
    assert (headers["source.partition"], headers["source.offset"]) == ("0", "1")
    assert headers["error"].startswith(f'Topic "{sink.out}" does not take the row.')
    assert _values(stage.read(sink.out)) == ["before", "behind"]
    assert (status.rows, status.dead_total) == (2, 1)


def test_a_record_that_no_topic_takes_leaves_its_place_and_a_digest(stage: Stage) -> None:
    source = stage.source("digest", {0: _ROWS})
    dead = {"topic": f"{source}-dead", "config": {"max.message.bytes": str(_LIMIT)}}
    sink = _sink(stage, "digest", source, dead_letter=dead)

    sink.run()

    (letter,) = stage.read(f"{source}-dead")
    headers = _headers(letter)
    assert (letter.key, letter.value) == (b"large", None)
    assert headers["source.offset"] == "1"
    assert headers["value.bytes"] == "200000"
    assert headers["value.sha256"] == hashlib.sha256(LARGE.encode()).hexdigest()
    assert _values(stage.read(sink.out)) == ["before", "behind"]


def test_a_row_that_the_query_made_large_leaves_its_source_record(stage: Stage) -> None:
    source = stage.source("grown", {0: [("k", "small"), ("k", "x")]})
    query = "SELECT repeat(value, IF(value = 'x', 200000, 1)) AS value FROM source"
    to = {"value": "value", "compression": "none"}
    sink = _sink(stage, "grown", source, query=query, to=to, dead_letter=f"{source}-dead")

    sink.run()

    assert _values(stage.read(f"{source}-dead")) == ["x"]
    assert _values(stage.read(sink.out)) == ["small"]


def test_many_rows_share_batches_that_the_topic_takes(stage: Stage) -> None:
    rows = [("k", _noise(10_000)) for _ in range(50)]
    source = stage.source("many", {0: rows})
    sink = _sink(stage, "many", source, to={"compression": "none"})

    sink.run()

    assert _values(stage.read(sink.out)) == [value for _, value in rows]


@pytest.mark.parametrize("compression", ["gzip", "snappy", "lz4", "zstd"])
def test_a_row_that_fits_once_it_is_compressed_is_written(stage: Stage, compression: str) -> None:
    source = stage.source("shrinks", {0: [("k", "x" * 3 * _LIMIT)]})
    sink = _sink(stage, "shrinks", source, to={"compression": compression})

    sink.run()

    assert [len(value) for value in _values(stage.read(sink.out))] == [3 * _LIMIT]


def test_a_row_beyond_the_limit_of_the_client_is_set_aside_too(stage: Stage) -> None:
    source = stage.source("client", {0: [("k", json.dumps({"n": 1})), ("k", json.dumps({"n": 1_000_000}))]})
    sink = _sink(
        stage,
        "client",
        source,
        limit=10_000_000,
        from_={"schema": "n int"},
        select=["repeat('x', n) AS value"],
        to={"compression": "zstd"},
        dead_letter=f"{source}-dead",
    )

    sink.run()

    assert _values(stage.read(f"{source}-dead")) == ['{"n": 1000000}']
    assert len(stage.read(sink.out)) == 1


@pytest.mark.parametrize("stage", WHO_WRITES, indirect=True)
def test_a_limit_that_changes_under_the_sink_counts_from_then_on(stage: Stage) -> None:
    source = stage.source("changes", {0: _ROWS})
    sink = _sink(stage, "changes", source, limit=4 * _LIMIT, dead_letter=f"{source}-dead", **_EVERY)
    launch = sink.launch()
    launch.wait_until(lambda: launch.has_passed({0: 3}))

    stage.configure_topic(sink.out, "max.message.bytes", str(_LIMIT))
    stage.produce(source, [(0, "large", LARGE), (0, "k", "now it is too large")])
    launch.wait_until(lambda: launch.has_passed({0: 5}))
    stage.configure_topic(sink.out, "max.message.bytes", str(4 * _LIMIT))
    stage.produce(source, [(0, "large", LARGE), (0, "k", "now it is not")])
    launch.wait_until(lambda: launch.has_passed({0: 7}))

    assert launch.stop() == ExitCode.OK
    expected = ["before", LARGE, "behind", "now it is too large", LARGE, "now it is not"]
    assert _values(stage.read(sink.out)) == expected
    assert _values(stage.read(f"{source}-dead")) == [LARGE]
