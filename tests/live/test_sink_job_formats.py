"""What goes in and what comes out: formats, keys, tombstones, compression, ``select`` and ``where``."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest
from confluent_kafka.admin import ConfigResource

from airflow_provider_sinks.connectors.kafka.spec import kafka_sink
from tests.faults import topics
from tests.live.segments import batches
from tests.live.stage import WHO_WRITES, KeyValue, Stage


@dataclass(frozen=True)
class Case:
    """One sink: what it reads, what it does, and what it must write.

    :param written: keys and values of the output; JSON values as what they stand for.
    """

    spec: dict[str, object]
    read: list[KeyValue]
    written: list[tuple[bytes | None, object]]
    from_: dict[str, object] = field(default_factory=dict)
    to: dict[str, object] = field(default_factory=dict)


CASES = {
    "json, every type, one key, select and where": Case(
        {
            "select": ["id", "name", "upper(name) AS loud", "at", "tags", "place", "ok", "price", "day"],
            "where": "id <> 3 AND ok",
        },
        [
            (
                "source key",
                json.dumps(
                    {
                        "id": 1,
                        "name": 'Zoë "q" \\ \n',
                        "at": "2026-01-02T03:04:05.678901Z",
                        "tags": ["a", None],
                        "place": {"city": "Köln", "zip": None},
                        "ok": True,
                        "price": 12.34,
                        "day": "2026-02-28",
                        "more": 1,
                    }
                ),
            ),
            (None, '{"id": 2, "ok": true}'),
            (None, '{"id": 3, "ok": true}'),
            (None, '{"id": 4, "ok": false}'),
            (None, '{"id": 5}'),
        ],
        [
            (
                b"1",
                {
                    "id": 1,
                    "name": 'Zoë "q" \\ \n',
                    "loud": 'ZOË "Q" \\ \n',
                    "at": "2026-01-02T03:04:05.678901Z",
                    "tags": ["a", None],
                    "place": {"city": "Köln", "zip": None},
                    "ok": True,
                    "price": 12.34,
                    "day": "2026-02-28",
                },
            ),
            (
                b"2",
                {
                    "id": 2,
                    "name": None,
                    "loud": None,
                    "at": None,
                    "tags": None,
                    "place": None,
                    "ok": True,
                    "price": None,
                    "day": None,
                },
            ),
        ],
        from_={
            "schema": "id long, name string, at timestamp, tags array<string>, "
            "place struct<city: string, zip: int>, ok boolean, price decimal(10,2), day date"
        },
        to={"key": "id"},
    ),
    "json, several keys, tombstones where the rest is null": Case(
        {"query": "SELECT b, a, n, m FROM source"},
        [
            ("k", '{"a": 1, "b": "x", "n": 5}'),
            ("k", '{"a": 1, "b": "x"}'),
            ("k", '{"a": null, "b": "y", "m": "m"}'),
            ("k", None),
        ],
        [
            (b'{"a":1,"b":"x"}', {"a": 1, "b": "x", "n": 5, "m": None}),
            (b'{"a":1,"b":"x"}', None),
            (b'{"a":null,"b":"y"}', {"a": None, "b": "y", "n": None, "m": "m"}),
            (b'{"a":null,"b":null}', None),
        ],
        from_={"schema": "a int, b string, n long, m string"},
        to={"key": ["a", "b"], "tombstones": True},
    ),
    "json, the source key goes through, tombstones go through": Case(
        {},
        [("k1", '{"n": 1}'), ("k2", None), (b"\xff\x00", '{"n": null}'), (None, '{"n": 4}')],
        [(b"k1", {"n": 1}), (b"k2", None), (b"\xff\x00", None), (None, {"n": 4})],
        from_={"schema": "n int"},
        to={"tombstones": True},
    ),
    "json, no tombstones unless asked for": Case(
        {},
        [("k", None), ("k", '{"n": null}')],
        [(b"k", {"n": None}), (b"k", {"n": None})],
        from_={"schema": "n int"},
    ),
    "json, a column as the value": Case(
        {"select": ["id", "place"]},
        [(None, '{"id": "a", "place": {"city": "Köln"}}'), (None, '{"id": "b"}')],
        [(b"a", {"city": "Köln"}), (b"b", None)],
        from_={"schema": "id string, place struct<city: string>"},
        to={"key": "id", "value": "place"},
    ),
    "text, changed, the source key goes through": Case(
        {"select": ["concat(value, '!') AS value"], "where": "value IS NULL OR value <> 'drop'"},
        [("k1", "Grüße"), (None, ""), ("k3", None), ("k4", "drop")],
        [(b"k1", "Grüße!".encode()), (None, b"!"), (b"k3", None)],
        from_={"format": "text"},
    ),
    "text from json, one column is the value": Case(
        {"select": ["id", "name"]},
        [("k", '{"id": 7, "name": "Ann"}'), ("k", '{"id": 8}')],
        [(b"7", b"Ann"), (b"8", None)],
        from_={"schema": "id int, name string"},
        to={"format": "text", "key": "id"},
    ),
    "text, an upsert deletes by the null of its one column": Case(
        {"select": ["id", "name"]},
        [("k", '{"id": 7, "name": "null"}'), ("k", '{"id": 7}')],
        [(b"7", b"null"), (b"7", None)],
        from_={"schema": "id int, name string"},
        to={"format": "text", "key": "id", "envelope": "upsert"},
    ),
    "bytes, untouched": Case(
        {},
        [(b"\x00\xff", b"\xff\xfe\x00\x80"), (b"", b""), ("k", None), (None, bytes(range(256)))],
        [(b"\x00\xff", b"\xff\xfe\x00\x80"), (b"", b""), (b"k", None), (None, bytes(range(256)))],
        from_={"format": "bytes"},
    ),
}


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CASES.items()])
@pytest.mark.parametrize("stage", WHO_WRITES, indirect=True)
def test_rows_come_out_as_the_spec_says(case: Case, stage: Stage) -> None:
    sink = stage.sink(
        "formats", stage.source("formats", {0: case.read}), from_=case.from_, to=case.to, **case.spec
    )

    status = sink.run()

    form = kafka_sink(sink.parsed).target.kafka.format
    written = [(record.key, _value(record.value, form)) for record in stage.read(sink.out)]
    assert written == case.written
    assert (status.rows, status.rows_total, status.dead_total) == (len(written), len(written), 0)


def test_batches_are_compressed_as_the_spec_says(stage: Stage) -> None:
    source = stage.source("codec", {0: [(None, "compressible " * 100)] * 20})
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")
    sinks = {c: stage.sink(c, source, from_={"format": "bytes"}, to={"compression": c}) for c in codecs}

    launches = [sink.launch() for sink in sinks.values()]

    assert [launch.wait() for launch in launches] == [0] * len(codecs)
    for codec, sink in sinks.items():
        assert {batch.codec for batch in batches(stage.broker, sink.out) if not batch.is_marker} == {codec}


def test_data_topic_is_made_as_the_spec_says(stage: Stage) -> None:
    source = stage.source("made", {partition: [(f"k{partition}", "x")] for partition in range(2)})
    wanted = {"partitions": 3, "replication_factor": 1, "config": {"retention.ms": 1234567}}
    sink = stage.sink("made", source, from_={"format": "text"}, to=wanted)

    sink.run()

    admin = topics.admin_client(tuple(stage.client.items()))
    resource = ConfigResource(ConfigResource.Type.TOPIC, sink.out)
    config = admin.describe_configs([resource])[resource].result(10)
    assert len(admin.list_topics(timeout=60).topics[sink.out].partitions) == 3
    assert config["retention.ms"].value == "1234567"
    assert sorted(record.key or b"" for record in stage.read(sink.out)) == [b"k0", b"k1"]


def _value(value: bytes | None, format_: str) -> object:
    return json.loads(value) if value is not None and format_ == "json" else value
