"""Sinks into Redis streams, by a connector that a package of its own brings, on a real server."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.errors import ExitCode
from airflow_provider_sinks.streaming import driver_share
from tests.faults.parts import Part
from tests.installed_connector import Installed
from tests.live.stage import WHO_WRITES, KeyValue, Sink, Stage
from tests.live.test_sink_job_files import KILLS, SEED
from tests.redis_server import RedisServer

_SCHEMA = (
    "id int, at timestamp, price decimal(38,18), ratio double, tags array<string>, raw binary, good boolean"
)
_RAW = "encode(repeat('x', id), 'UTF-8') AS raw"
_SELECT = ["id", "at AS `the.moment`", "price", "ratio", "tags", _RAW, "good"]


@pytest.fixture(autouse=True)
def _found(installed_redis: Installed) -> Iterator[None]:
    with installed_redis.found():
        yield


def sink_into_redis(stage: Stage, server: RedisServer, source: str, **parts: object) -> Sink:
    made = stage.sink(
        "redis",
        source,
        **{
            "from_": {"schema": "id int"},
            "target": {"redis": {"connection": "redis", "stream": source}},
            **parts,
        },
    )
    own = {"redis": server.connection().options()}
    made.connections = ResolvedConnections({**made.connections.options, **own})
    return made


def rows(*ids: int) -> list[KeyValue]:
    return [("k", f'{{"id": {number}}}') for number in ids]


def read(server: RedisServer, stream: str) -> list[dict[str, str]]:
    """Return the fields of every entry, as any reader gets them."""
    with server.client() as client:
        return [fields for _, fields in client.xrange(stream)]


def ids(server: RedisServer, sink: Sink) -> list[int]:
    return sorted(int(row["id"]) for row in read(server, sink.parsed.resources[Role.DATA]))


@pytest.mark.parametrize("stage", WHO_WRITES, indirect=True)
def test_rows_are_in_the_stream_once_over_starts(stage: Stage, redis_server: RedisServer) -> None:
    source = stage.source("redis", {0: rows(0, 1, 2), 1: [*rows(3), ("k", "{")], 2: rows(4)})
    sink = sink_into_redis(stage, redis_server, source, dead_letter={"stream": f"{source}-dead"})

    first = sink.run()
    stage.produce(source, [(0, *rows(5)[0]), (1, "k", "["), (2, *rows(6)[0])])
    second, third = sink.run(), sink.run()

    assert [(s.rows_total, s.dead_total) for s in (first, second, third)] == [(5, 1), (7, 2), (7, 2)]
    assert [s.epoch for s in (first, second)] == [1, 2]
    assert first.health == "well"
    assert set(first.metrics) == {"server_version"}
    assert ids(redis_server, sink) == [0, 1, 2, 3, 4, 5, 6]
    letters = read(redis_server, f"{source}-dead")
    told = [
        (one["source_topic"], one["source_partition"], one["source_offset"], one["value"]) for one in letters
    ]
    assert told == [(source, "1", "1", "{"), (source, "1", "2", "[")]
    assert [one["epoch"] for one in letters] == ["1", "2"]


def test_each_type_is_text_as_spark_has_it_and_nothing_is_rounded(
    stage: Stage, redis_server: RedisServer
) -> None:
    value = (
        '{"id": 3, "at": "2026-11-23T01:02:03.000456Z", "price": 0.000000000000000001, "ratio": 0.1,'
        ' "tags": ["a", null], "good": true}'
    )
    source = stage.source("types", {0: [("k", value), ("k", '{"id": 0}')]})
    schema = {"schema": _SCHEMA.replace(", raw binary", "")}
    sink = sink_into_redis(stage, redis_server, source, from_=schema, select=_SELECT)

    sink.run()

    assert read(redis_server, source) == [
        {
            "id": "3",
            "the.moment": "2026-11-23T01:02:03.000456Z",
            "price": "0.000000000000000001",
            "ratio": "0.1",
            "tags": '["a",null]',
            "raw": "xxx",
            "good": "true",
        },
        {"id": "0", "raw": ""},
    ]


def test_a_stream_that_is_deleted_is_refused_and_a_way_on_makes_it_anew(
    stage: Stage, redis_server: RedisServer
) -> None:
    source = stage.source("deleted", {0: rows(0, 1)})
    sink = sink_into_redis(stage, redis_server, source)
    sink.run()
    with redis_server.client() as client:
        client.delete(source)

    refused = sink.fail(ExitCode.REFUSED)
    assert refused.error is not None
    assert refused.error.primary.startswith(f'data table "{source}" is missing, but sink')
    sink.run(sink.code(refused, "start_over"))

    assert ids(redis_server, sink) == [0, 1]


def test_drivers_that_are_killed_leave_no_row_out_and_none_twice(
    stage: Stage, redis_server: RedisServer, installed_redis: Installed, tmp_path: Path
) -> None:
    """The drivers have the connector from its wheel alone, as on a cluster."""
    wheel = shutil.copy(installed_redis.wheel, tmp_path / "redis.zip")
    chance, partitions = random.Random(SEED), range(3)  # noqa: S311  chance, no secret
    source = stage.source("kills", {partition: rows(0) for partition in partitions})
    sink = sink_into_redis(stage, redis_server, source, trigger={"every": "100ms"})
    written = 1
    for number in range(KILLS + 1):
        sink.conf = {driver_share.SETTING: str(1000 * (number % 2))}
        driver = sink.submit("--py-files", str(wheel))
        driver.wait_epochs(1)
        moment = time.monotonic() + chance.uniform(0.5, 2)
        while time.monotonic() < moment:
            more = range(written, written + 5)
            stage.produce(source, [(p, *rows(i)[0]) for p in partitions for i in more])
            written += 5
        driver.kill(Part.DRIVER)
    sink.spec = {**sink.spec, "trigger": "available_now"}

    status = sink.run()

    assert status.rows_total == written * len(partitions)
    assert ids(redis_server, sink) == sorted([*range(written)] * len(partitions)), f"FAULT_SEED={SEED}"
    with redis_server.client() as client:
        assert client.keys("_sinks_progress:stage:*") == []  # what was staged and never committed is swept
