"""Values by a JSON Schema, read and written by Spark itself; a validator of JSON Schema is the oracle."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from jsonschema import Draft7Validator
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from airflow_provider_sinks.connectors.kafka.json_encoding import json_body
from airflow_provider_sinks.connectors.kafka.registered_encoding import written_bytes, written_error
from airflow_provider_sinks.connectors.kafka.written_schemas import WrittenBy
from airflow_provider_sinks.connectors.schema_registry.json_guards import reasons
from airflow_provider_sinks.connectors.schema_registry.reasons import Guard, first
from airflow_provider_sinks.core.schemas.derived import columns_of
from airflow_provider_sinks.core.schemas.json_derived import derive
from airflow_provider_sinks.core.schemas.json_schema import parse
from airflow_provider_sinks.core.schemas.json_types import ArrayOf, JsonType, Scalar
from airflow_provider_sinks.core.schemas.subjects import Part
from airflow_provider_sinks.core.schemas.wire import HEADER_BYTES, header
from airflow_provider_sinks.streaming import json_values
from airflow_provider_sinks.streaming.registered_json import decode
from airflow_provider_sinks.streaming.wire_values import WrittenAs

# pyspark leaves its sockets to the garbage collector
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket.socket:ResourceWarning")

DECIMAL = {
    "type": "number",
    "title": "org.apache.kafka.connect.data.Decimal",
    "connect.parameters": {"scale": "2", "connect.decimal.precision": "5"},
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["id"],
    "properties": {
        "id": {"type": "integer", "minimum": 1, "exclusiveMaximum": 1000, "multipleOf": 1},
        "what": {"type": ["string", "null"], "maxLength": 5},
        "color": {"enum": ["RED", "BLUE"]},
        "amount": DECIMAL,
        "ratio": {"type": "number"},
        "small": {"type": "integer", "connect.type": "int8"},
        "at": {"type": "string", "format": "date-time"},
        "day": {"type": "string", "format": "date"},
        "raw": {"type": "string", "contentEncoding": "base64"},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
        "place": {"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}},
        "notes": {"type": "object", "additionalProperties": {"type": ["string", "null"]}},
        "flag": {"const": True},
    },
}
_MISFIT = "The value does not fit the schema: "
_EDGES: dict[str, tuple[str | None, dict[str, Any] | str]] = {
    "the least": ('{"id": 1}', {"id": 1}),
    "a tombstone": (None, {}),
    "empty": ("", "The value is empty."),
    "required, and missing": ("{}", "field id is missing or null, and it is required"),
    "required, and null": ('{"id": null}', "field id is missing or null, and it is required"),
    "optional, and null": ('{"id": 1, "color": null}', {"id": 1}),
    "unknown": ('{"id": 1, "x": [1]}', {"id": 1}),
    "a number with a point for a whole one": ('{"id": 1.0}', "field id is not bigint"),
    "text for a number": ('{"id": "1"}', "field id is not bigint"),
    "less than the minimum": ('{"id": 0}', "field id is less than 1."),
    "the exclusive maximum": ('{"id": 1000}', "field id is not less than 1000."),
    "a number for text": ('{"id": 1, "what": 5}', f"{_MISFIT}field what is no text."),
    "true for text": ('{"id": 1, "what" :true}', "field what is no text"),
    "an object for text": ('{"id": 1, "what": {"a": 1}}', "field what is no text"),
    "a number for text, its name escaped": (r'{"id": 1, "wh\u0061t": 5}', "field what is no text"),
    "null for text": ('{"id": 1, "what": null}', {"id": 1}),
    "text with what looks like a field": (r'{"id": 1, "what": "\"a\":1"}', {"id": 1, "what": '"a":1'}),
    "too long": ('{"id": 1, "what": "123456"}', "field what has more than 5 characters"),
    "as long as may be, beyond the first plane": (
        '{"id": 1, "what": "😀😀😀😀😀"}',
        {"id": 1, "what": "😀" * 5},
    ),
    "no choice": ('{"id": 1, "color": "PINK"}', "field color is none of RED, BLUE."),
    "not the constant": ('{"id": 1, "flag": false}', "field flag is none of True."),
    "text for a decimal": ('{"id": 1, "amount": "1.5"}', f"{_MISFIT}field amount is no number."),
    "a decimal": ('{"id": 1, "amount": 1.50}', {"id": 1, "amount": 1.5}),
    "a decimal that rounds": ('{"id": 1, "amount": 1.555}', "field amount has more digits than decimal(5,2)"),
    "too large for a byte": ('{"id": 1, "small": 128}', "field small is not tinyint"),
    "a moment": (
        '{"id": 1, "at": "2024-02-29T23:59:59.5+01:00"}',
        {"id": 1, "at": "2024-02-29T22:59:59.500000Z"},
    ),
    "a moment without a zone": ('{"id": 1, "at": "2024-02-29T23:59:59"}', "field at is not timestamp"),
    "a time of day for a moment": ('{"id": 1, "at": "12:30"}', "field at is not timestamp"),
    "a number for a moment": ('{"id": 1, "at": 1700000000}', "field at is no text"),
    "a day": ('{"id": 1, "day": "2024-02-29"}', {"id": 1, "day": "2024-02-29"}),
    "a number in a list of text": ('{"id": 1, "tags": ["a", 5]}', "field tags[] is no text"),
    "null in a list that has none": (
        '{"id": 1, "tags": ["a", null]}',
        "field tags[] is null, and it never may be",
    ),
    "too many items": ('{"id": 1, "tags": ["a", "b", "c", "d"]}', "field tags has more than 3 items"),
    "required inside": ('{"id": 1, "place": {}}', "field place.city is missing or null"),
    "a number inside": ('{"id": 1, "place": {"city": 7}}', "field place.city is no text"),
    "nothing around what is required": ('{"id": 1, "place": null}', {"id": 1}),
    "null in a map that may have it": ('{"id": 1, "notes": {"a": null}}', {"id": 1, "notes": {"a": None}}),
    "a number in a map of text": ('{"id": 1, "notes": {"a": 1}}', "field notes[] is no text"),
    "two objects": ('{"id": 1}{"id": 2}', "The value is more than one JSON object"),
}


def test_each_edge_of_a_value_is_read_as_its_schema_says_or_set_aside(spark_session: SparkSession) -> None:
    reader = parse(json.dumps(SCHEMA))
    rows = [(name, None if text is None else header(7) + text.encode()) for name, (text, _) in _EDGES.items()]
    records = spark_session.createDataFrame(rows, "name string, value binary")

    judged, found = decode(records, Part.VALUE, reader, WrittenAs({7: reader}))

    for row in judged.select("name", json_values.ERROR, sql.to_json(found).alias("found")).collect():
        _, expected = _EDGES[row["name"]]
        if isinstance(expected, str):
            assert expected in (row[json_values.ERROR] or ""), row["name"]
        else:
            assert row[json_values.ERROR] is None, (row["name"], row[json_values.ERROR])
            read = json.loads(row["found"] or "{}")
            assert {k: v for k, v in read.items() if v is not None} == _as_spark_writes(expected), row["name"]


def _as_spark_writes(expected: dict[str, Any]) -> dict[str, Any]:
    """Spark's own writer has milliseconds."""
    return {key: v.replace("500000Z", "500Z") if key == "at" else v for key, v in expected.items()}


EVERYTHING = """
    named_struct('b', 'x', 'a', cast(null AS int)) AS inner, 1 AS id, 2L AS long, cast(3 AS smallint) AS s,
    cast(1.5 AS float) AS ratio, 0.1D AS double, 1.10BD AS amount, true AS flag, 'süß "q"' AS what,
    X'00ff' AS raw, DATE'1969-07-20' AS day, TIMESTAMP'2024-02-29 23:59:59.123456' AS at,
    TIMESTAMP_NTZ'2024-02-29 23:59:59' AS local, array(1, null) AS items,
    map('k', cast(null AS string)) AS notes, array(named_struct('n', 1), null) AS parts,
    cast(null AS bigint) AS missing
"""


def test_what_is_made_of_columns_takes_what_they_have_and_reads_it_back(spark_session: SparkSession) -> None:
    output = spark_session.sql(f"SELECT {EVERYTHING}")
    columns = columns_of(output.schema.jsonValue())
    text = derive(columns, "shop.Everything", "All types.")
    schema = parse(text)
    Draft7Validator.check_schema(json.loads(text))

    [written] = _written(output, text)
    value = json.loads(written["body"])

    assert written["error"] is None
    Draft7Validator(json.loads(text)).validate(value)
    assert list(value) == output.columns
    assert value["at"] == "2024-02-29T23:59:59.123456Z"
    # no literal: Spark would write it into every expression that reads it, which takes it minutes
    records = spark_session.createDataFrame([(header(1) + bytes(written["body"]),)], "value binary")
    judged, found = decode(records, Part.VALUE, schema, WrittenAs({1: schema}))
    [read] = judged.select(json_values.ERROR, found.alias("found")).collect()
    assert read[json_values.ERROR] is None
    assert read["found"] == output.collect()[0]


def _written(output: DataFrame, text: str, part: Part = Part.VALUE) -> Any:
    columns: list[tuple[str, Column]] = [(name, sql.col(name)) for name in output.columns]
    by = WrittenBy(1, parse(text))
    body = sql.substring(written_bytes(output, columns, by), HEADER_BYTES + 1, 1_000_000)
    error = written_error(output, columns, by, part)
    return output.select(error.alias("error"), sql.when(error.isNull(), body).alias("body")).collect()


_COLUMNS = {
    "id": "1L",
    "what": "cast(null AS string)",
    "color": "cast(null AS string)",
    "ratio": "cast(null AS double)",
    "day": "cast(null AS date)",
    "place": "cast(null AS struct<city: string>)",
    "tags": "cast(null AS array<string>)",
    "big": "cast(null AS decimal(9,2))",
}
_ROWS: dict[str, tuple[dict[str, str], dict[str, Any] | str]] = {
    "null where nothing must be is left out": ({}, {"id": 1}),
    "null where something must be": ({"id": "NULL"}, "field id is null, and it is required"),
    "too small": ({"id": "0L"}, "field id is less than 1"),
    "no choice": ({"color": "'PINK'"}, "field color is none of RED, BLUE"),
    "too long": ({"what": "'123456'"}, "field what has more than 5 characters"),
    "no number": ({"ratio": "double('NaN')"}, "field ratio is no number in JSON"),
    "endless": ({"ratio": "double('-Infinity')"}, "field ratio is no number in JSON"),
    "a year of five digits": ({"day": "DATE'+10000-01-01'"}, "field day is not in the years 1 to 9999"),
    "null inside": ({"place": "named_struct('city', cast(null AS string))"}, "field place.city is missing"),
    "null in a list": ({"tags": "array('a', null)"}, "field tags[] is null"),
    "a list too long": ({"tags": "array('a', 'b', 'c', 'd')"}, "field tags has more than 3 items"),
    "a decimal keeps its digits": ({"big": "1.10BD"}, {"id": 1, "big": Decimal("1.10")}),
}


def test_each_row_is_written_as_its_schema_says_or_set_aside(spark_session: SparkSession) -> None:
    schema = {**SCHEMA, "properties": {**SCHEMA["properties"], "big": {"type": "number"}}}
    rows = (
        f"SELECT {', '.join(f'{value} AS {name}' for name, value in {**_COLUMNS, **given}.items())}"
        for given, _ in _ROWS.values()
    )
    output = spark_session.sql(" UNION ALL ".join(rows)).coalesce(1)

    written = _written(output, json.dumps(schema))

    for (name, (_, expected)), row in zip(_ROWS.items(), written, strict=True):
        if isinstance(expected, str):
            assert expected in (row["error"] or ""), name
        else:
            assert row["error"] is None, name
            assert json.loads(row["body"], parse_float=Decimal) == expected, name
            Draft7Validator(schema).validate(json.loads(row["body"]))


def test_equal_keys_have_equal_bytes_however_the_query_orders_them(spark_session: SparkSession) -> None:
    part = {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}}
    schema = parse(json.dumps({"properties": {"id": {"type": "integer"}, "part": part}}))

    def body(query: str) -> bytes:
        output = spark_session.sql(f"SELECT {query}")
        columns = [(name, sql.col(name)) for name in output.columns]
        kinds: StructType = output.schema
        return bytes(output.select(json_body(columns, kinds, schema.type)).collect()[0][0])

    one = body("1L AS id, named_struct('x', 2L, 'y', 3L) AS part")
    other = body("named_struct('y', 3L, 'x', 2L) AS part, 1L AS id")

    assert one == other == b'{"id":1,"part":{"x":2,"y":3}}'


def test_each_place_of_a_schema_is_judged_once_however_deep_it_lies(spark_session: SparkSession) -> None:
    kind: JsonType = Scalar("string")
    for _ in range(9):
        kind = ArrayOf(kind)
    judged: list[str] = []

    def judge(value: Column, kind: JsonType, path: str) -> Iterator[Guard]:
        judged.append(path)
        assert isinstance(kind, ArrayOf if len(judged) < 10 else Scalar)
        yield value.isNull(), f"{path} is null"

    value = sql.lit(None).cast("array<" * 9 + "string" + ">" * 9)
    [said] = spark_session.range(1).select(first(reasons(value, kind, "a", judge))).first() or [""]

    assert said == "a is null"
    assert judged == ["a" + "[]" * depth for depth in range(10)]
