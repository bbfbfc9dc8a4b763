"""Sinks that read and write JSON by JSON Schemas of a registry, on the real broker, Spark and registry."""

from __future__ import annotations

import json
from typing import Any

from airflow_provider_sinks.core.errors import ExitCode
from airflow_provider_sinks.core.schemas.wire import header
from tests.faults.topics import Record
from tests.live.registered import KEY, Registered, record

JSON = {"format": "json_schema", "registry": "registry"}


def order(**more: Any) -> dict[str, Any]:
    """Return the schema of an order with more properties."""
    properties = {"id": {"type": "integer"}, "what": {"type": "string", "maxLength": 9}, **more}
    return {"title": "shop.Order", "type": "object", "properties": properties, "required": ["id"]}


def _source(registered: Registered, suffix: str, *values: dict[str, Any]) -> str:
    topic = registered.stage.topic(f"{suffix}-source")
    registered.stage.produce(
        topic, ((0, None, registered.encode_json(topic, order(), value)) for value in values)
    )
    return topic


def _header(letter: Record, name: str) -> str:
    found = dict(letter.headers)[name]
    return found.decode() if isinstance(found, bytes) else str(found)


def test_json_goes_in_and_out_and_what_does_not_fit_is_set_aside(registered: Registered) -> None:
    stage = registered.stage
    source = _source(registered, "both", {"id": 1, "what": "tea"}, {"id": 2})
    good = registered.encode_json(source, order(), {"id": 3, "what": "süß"})
    newer = registered.encode_json(
        f"{source}-elsewhere", order(note={"type": "string"}), {"id": 4, "note": "new"}
    )
    other = registered.register(f"{source}-avro", record("Order", id="long"))
    broken = [
        good[:3],
        good[5:],
        header(2_000_000_000) + good[5:],
        header(other) + good[5:],
        good[:-2],
        good + b"{}",
        good[:5] + b'{"id": 5, "what": 6}',
        good[:5] + b'{"id": 5, "what": "longer than nine"}',
    ]
    key = registered.encode_json(
        source, {"title": "K", "properties": {"n": {"type": "integer"}}}, {"n": 7}, KEY
    )
    stage.produce(source, ((0, key, value) for value in [*broken, good, newer]))
    dead = f"{source}-dead"
    key_as = {"column": "k", "format": "json_schema"}
    sink = stage.sink(
        "both",
        source,
        from_={**JSON, "key_as": key_as},
        to={**JSON, "key": ["id"], "key_format": "json_schema", "record": "shop.Out"},
        select=["id", "what", "k.n AS n", "CAST(id AS decimal(9,2)) AS amount", "DATE'2024-02-29' AS day"],
        dead_letter={"topic": dead},
    )

    status = sink.run()

    fixed = {"day": "2024-02-29"}
    assert registered.json_values(sink) == [
        {"id": 1, "what": "tea", "n": None, "amount": 1.0, **fixed},
        {"id": 2, "what": None, "n": None, "amount": 2.0, **fixed},
        {"id": 3, "what": "süß", "n": 7, "amount": 3.0, **fixed},
        {"id": 4, "what": None, "n": 7, "amount": 4.0, **fixed},
    ]
    assert registered.json_values(sink, KEY) == [{"id": number} for number in (1, 2, 3, 4)]
    assert (status.rows, status.dead_total) == (4, len(broken))
    letters = stage.read(dead)
    away = f"which the schema registry at {registered.registry.url} does not know"
    assert [one.value for one in letters] == broken
    offsets = [_header(one, "source.offset") for one in letters]
    assert offsets == [str(offset) for offset in range(2, 2 + len(broken))]
    assert [_header(one, "error") for one in letters] == [
        "The value is cut off: it has 3 bytes, and the header of Confluent's wire format has 5.",
        "The value has no magic byte: it is not in Confluent's wire format, which begins with 0.",
        f"The value has schema id 2000000000, {away}.",
        f"The value has schema id {other}, which is of kind AVRO.",
        "The value is not JSON.",
        "The value is more than one JSON object: something stands behind the first one.",
        "The value does not fit the schema: field what is no text.",
        "The value does not fit the schema: field what has more than 9 characters.",
    ]


def test_a_new_column_may_follow_and_another_type_is_refused_by_field(registered: Registered) -> None:
    stage = registered.stage
    source = _source(registered, "next", {"id": 1, "what": "tea"})
    to = {**JSON, "topic": f"{source}-out", "key": ["id"], "key_format": "json_schema", "record": "shop.Out"}
    stage.sink("first", source, from_=JSON, to=to).run()
    registered.level(f"{source}-out-value", "BACKWARD")

    more = stage.sink("more", source, from_=JSON, to=to, select=["id", "what", "length(what) AS size"])
    more.run()
    select = ["id", "CAST(length(what) AS double) AS what"]
    value = stage.sink("value", source, from_=JSON, to=to, select=select).fail(ExitCode.CONFIGURATION)
    checked = {**to, "auto_register": "check", "key": ["what"]}
    key = stage.sink("key", source, from_=JSON, to=checked).fail(ExitCode.CONFIGURATION)

    assert value.error is not None
    assert key.error is not None
    assert registered.json_values(more)[-1] == {"id": 1, "what": "tea", "size": 3}
    assert "(BACKWARD) because field what is written as string and read as number" in value.error.detail
    assert "field what is new, and with it every key becomes another one" in key.error.detail
    assert [registered.versions(f"{source}-out-{part}") for part in ("key", "value")] == [1, 2]


def test_a_schema_that_is_there_is_written_as_it_says(registered: Registered) -> None:
    stage = registered.stage
    source = _source(registered, "strict", {"id": 1, "what": "RED"}, {"id": 2, "what": "PINK"}, {"id": 3})
    color = {"$schema": "http://json-schema.org/draft-07/schema#", "enum": ["RED", "BLUE"]}
    registered.register(f"{source}-color", color, "JSON")
    reference = {"name": "color.json", "subject": f"{source}-color", "version": 1}
    strict = order(what={"$ref": "color.json"})
    dead = f"{source}-dead"
    schema = {"inline": json.dumps(strict), "references": [reference]}
    to = {**JSON, "schema": schema, "subjects": "topic_record_name"}
    sink = stage.sink("strict", source, from_=JSON, to=to, dead_letter={"topic": dead})

    sink.run()

    assert [json.loads((one.value or b"")[5:]) for one in stage.read(sink.out)] == [
        {"id": 1, "what": "RED"},
        {"id": 3},
    ]
    assert [_header(one, "error") for one in stage.read(dead)] == [
        "The value cannot be written: field what is none of RED, BLUE."
    ]
    assert registered.newest(f"{sink.out}-shop.Order")["properties"]["what"] == {"$ref": "color.json"}
