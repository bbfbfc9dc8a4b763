"""What becomes of each edge of JSON, by Spark itself, and against Python's own parser as the oracle."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from airflow_provider_sinks.core.spec.parts import Format
from airflow_provider_sinks.core.spec.source import KafkaSource
from airflow_provider_sinks.streaming import transform

# pyspark leaves its sockets to the garbage collector
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket.socket:ResourceWarning")

SCHEMA = (
    "a int, l long, s string, x double, g float, d decimal(5,2), big decimal(38,0), ds array<decimal(3,1)>, "
    "at timestamp, local timestamp_ntz, day date, place struct<city: string NOT NULL, zip: int>, "
    "m map<string, double>, bin binary, `odd.name ä` int, b tinyint"
)
_MORE = "The value is more than one JSON object: something stands behind the first one."
_HALF = "half a surrogate pair"
_TODAY = "<today>"
_EDGES: dict[str, tuple[str | bytes | None, dict[str, Any] | str]] = {
    "missing field": ("{}", {}),
    "null": ('{"a": null}', {}),
    "unknown field": ('{"a": 1, "z": [{"c": 2}]}', {"a": 1}),
    "wrong case": ('{"A": 1}', {}),
    "duplicate key, the last one counts": ('{"a": 1, "a": 2}', {"a": 2}),
    "duplicate key, the first is of another type": (
        '{"a": "x", "a": 2}',
        "The value does not fit the schema",
    ),
    "blanks around": (' \n{"a": 1}\r\n\t ', {"a": 1}),
    "tombstone": (None, {}),
    "empty": ("", "The value is empty."),
    "blank": (" \n", "The value is empty."),
    "array": ('[{"a": 1}]', "The value is not a JSON object."),
    "scalar": ("3", "The value is not a JSON object."),
    "null by itself": ("null", "The value is not a JSON object."),
    "byte order mark": ('\ufeff{"a": 1}', "The value is not a JSON object."),
    "two objects": ('{"a": 1}{"a": 2}', _MORE),
    "an object in each line": ('{"a": 1}\n{"a": 2}\n', _MORE),
    "two nested objects": ('{"place": {"city": "x"}}{"place": {"city": "y"}}', _MORE),
    "text behind": ('{"a": 1} and more', _MORE),
    "a brace behind": ('{"a": 1}}', _MORE),
    "a bracket behind": ('{"a": 1}]}', _MORE),
    "a field behind": ('{"a": 1},"a":2}', _MORE),
    "a zero byte behind": ('{"a": 1}\x00', _MORE),
    "cut in the middle": ('{"a": 1, "place": {"city": "x"}', "The value is not JSON."),
    "cut behind a comma": ('{"place": {"city": "x"},', "The value is not JSON."),
    "a brace in a string": ('{"a": 1, "s": "}"}', {"a": 1, "s": "}"}),
    "single quotes": ("{'a': 1}", "The value is not JSON."),
    "a comma too many": ('{"a": 1,}', "The value is not JSON."),
    "a comment": ('{"a": 1 /* one */}', "The value is not JSON."),
    "not UTF-8": (b'{"s": "\xff"}', "The value is not UTF-8."),
    "not UTF-8 in an unknown field": (b'{"z": "\xc3("}', "The value is not UTF-8."),
    "an encoded surrogate": (b'{"s": "\xed\xa0\x80"}', "The value is not UTF-8."),
    "a pair": (r'{"s": "\ud83d\ude00"}', {"s": "😀"}),
    "a high half": (r'{"s": "\ud83d"}', _HALF),
    "a low half": (r'{"s": "\uDE00"}', _HALF),
    "halves the wrong way round": (r'{"s": "\ude00\ud83d"}', _HALF),
    "a half behind a pair": (r'{"s": "\ud83d\ude00\ude00"}', _HALF),
    "halves with a backslash between": (r'{"s": "\ud83d\\\ude00"}', _HALF),
    "no half: the backslash is escaped": (r'{"s": "\\ud83d"}', {"s": r"\ud83d"}),
    "int of 3.7": ('{"a": 3.7}', "field a is not int"),
    "int of 3.0": ('{"a": 3.0}', "field a is not int"),
    "int of text": ('{"a": "12"}', "field a is not int"),
    "int that overflows": ('{"a": 3000000000}', "field a is not int"),
    "tinyint": ('{"b": -128}', {"b": -128}),
    "tinyint that overflows, and wraps around": ('{"b": 200}', "field b is not tinyint"),
    "tinyint that overflows": ('{"b": -129}', "field b is not tinyint"),
    "long that overflows": ('{"l": 9223372036854775808}', "field l is not bigint"),
    "several wrong fields": ('{"a": "x", "day": 7}', "field a is not int; field day is not date"),
    "a name with dot and umlaut": ('{"odd.name ä": "x"}', "field odd.name ä is not int"),
    "decimal that fits": ('{"d": 1.2300}', {"d": 1.23}),
    "decimal of text": ('{"d": "1.5"}', {"d": 1.5}),
    "decimal that rounds": ('{"d": 1.235}', "field d has more digits than decimal(5,2)"),
    "decimal that rounds far behind": ('{"d": 1.230000000000000000001}', "field d has more digits"),
    "decimal that rounds up to one digit more": ('{"d": 999.999}', "field d has more digits"),
    "decimal that overflows": ('{"d": 12345.1}', "field d is not decimal(5,2)"),
    "decimal with an exponent that costs seconds": (
        '{"d": 1e4000000}',
        "a number has an exponent of more than 999",
    ),
    "decimal of 38 digits": (f'{{"big": {"9" * 38}}}', {"big": int("9" * 38)}),
    "decimal in an array that rounds": ('{"ds": [1.5, null, 1.55]}', "field ds[] has more digits"),
    "double": ('{"x": 0.1}', {"x": 0.1}),
    "double that overflows": ('{"x": -1e400}', "field x is too large for double"),
    "float that overflows": ('{"g": 1e39}', "field g is too large for float"),
    "double in a map that overflows": ('{"m": {"k": 1e400}}', "field m[] is too large for double"),
    "NaN": ('{"x": NaN}', "The value is not JSON."),
    "NaN as text": ('{"x": "NaN"}', "field x is not double"),
    "Infinity": ('{"x": Infinity}', "The value is not JSON."),
    "microseconds": ('{"at": "2026-01-02T03:04:05.123456Z"}', {"at": "2026-01-02T03:04:05.123456Z"}),
    "nanoseconds are cut": (
        '{"at": "2026-01-02T03:04:05.123456789Z"}',
        {"at": "2026-01-02T03:04:05.123456Z"},
    ),
    "offset": ('{"at": "2026-01-02T03:04:05+02:00"}', {"at": "2026-01-02T01:04:05.000000Z"}),
    "no zone is UTC": ('{"at": "2026-01-02 03:04:05"}', {"at": "2026-01-02T03:04:05.000000Z"}),
    "zone in a local timestamp": ('{"local": "2026-01-02T03:04:05Z"}', "field local is not timestamp_ntz"),
    "local timestamp": ('{"local": "2026-01-02T03:04:05.5"}', {"local": "2026-01-02T03:04:05.500000"}),
    "a time without a date is today's": ('{"at": "12:30"}', {"at": f"{_TODAY}T12:30:00.000000Z"}),
    "a number is seconds": ('{"at": 1700000000}', {"at": "2023-11-14T22:13:20.000000Z"}),
    "milliseconds": ('{"at": 1700000000000}', "field at is not in the years 1 to 9999"),
    "date": ('{"day": "2026-02-28"}', {"day": "2026-02-28"}),
    "date that is none": ('{"day": "2026-02-30"}', "field day is not date"),
    "date with a time": ('{"day": "2026-02-28T12:00:00"}', "field day is not date"),
    "date without dashes": ('{"day": "20260228"}', "field day is not date"),
    "NOT NULL inside of null": ('{"place": null}', {}),
    "NOT NULL that is there": ('{"place": {"city": "x", "zip": 1}}', {"place": {"city": "x", "zip": 1}}),
    "NOT NULL that is missing": ('{"place": {}}', "field place.city is missing or null, and it is required"),
    "binary": ('{"bin": "AAE="}', {"bin": "AAE="}),
    "binary that is not base64": ('{"bin": "%"}', "field bin is not binary"),
    "number as text is written anew": ('{"s": 1.10}', {"s": "1.1"}),
    "object as text is written anew": ('{"s": {"k": [1, 2]}}', {"s": '{"k":[1,2]}'}),
    "nested a thousand times": (f'{{"z": {"[" * 1001}{"]" * 1001}}}', "The value is not JSON."),
    "nested deeply": (f'{{"a": 1, "z": {"[" * 900}{"]" * 900}}}', {"a": 1}),
    "a long string": (f'{{"a": 1, "z": "{"x" * 5_000_000}"}}', {"a": 1}),
}

_DOCUMENTED: dict[str, tuple[str, ...]] = {
    "none (a tombstone)": ("tombstone",),
    "empty, blank, an array": ("empty", "blank", "array", "scalar", "null by itself", "byte order mark"),
    "more than one object": ("two objects", "an object in each line", "text behind", "a brace behind"),
    "single quotes, comments": ("single quotes", "a comment", "a comma too many", "NaN", "Infinity"),
    "bytes that are not UTF-8": ("not UTF-8", "not UTF-8 in an unknown field", "a high half", "a low half"),
    "a field that is missing": ("missing field", "null", "NOT NULL that is missing"),
    "a field that the schema does not know": ("unknown field", "wrong case"),
    "the same field twice": ("duplicate key, the last one counts",),
    "a number for a whole-number type": ("int of 3.7", "int of 3.0", "int of text", "tinyint that overflows"),
    "a number or its text for `decimal": ("decimal that rounds", "decimal of text", "decimal that overflows"),
    "an exponent of more than 999": ("decimal with an exponent that costs seconds",),
    "a number for `double`": ("double", "double that overflows", "float that overflows"),
    "a number, object or array for": ("number as text is written anew", "object as text is written anew"),
    "text for `timestamp`": ("nanoseconds are cut", "no zone is UTC", "a time without a date is today's"),
    "a whole number for `timestamp`": ("a number is seconds",),
    "a `timestamp` outside of": ("milliseconds",),
    "text for `timestamp_ntz`": ("local timestamp", "zone in a local timestamp"),
    "text for `date`": ("date",),
    "text for `binary`": ("binary",),
    "nested more than 1,000 deep": ("nested a thousand times",),
}
"""By how a row of the table in ``docs/sinks.md`` begins, the edges that show it: the first one what it
begins with, the last one what does not parse, if it tells of that."""


_DECIMALS = (
    "d decimal(5,2), s string, x double, ds array<decimal(3,1)>, p struct<q: decimal(9,3)>, "
    "m map<string, decimal(4,1)>"
)
_COSTLY = (
    '{"d": 1e4000000}', '{"d":-1E+4000000 }', '{"d": 1.5e-4000000}', '{"d": 1e0004000000}',
    '{"d": "1e4000000"}', '{"d": "-1E-4000000"}', '{"d": "1e\uff14\uff10\uff10\uff10\uff10\uff10\uff10"}',
    r'{"d": "1\u00654000000"}', r'{"d": "1e\u0034000000"}', r'{"d": "1e\u002d4000000"}',
    r'{"d": "\u0031e4000000"}', r'{"d": "1e\uff14\uff10\uff10\uff10\uff10\uff10\uff10"}',
    '{"ds": [1, 1e4000000]}', '{"ds": [1, "1e4000000"]}', '{"p": {"q": 1e4000000}}',
    '{"m": {"k": "1e4000000"}}', '{"d": "1e4000000", "x": "y"}', '{"d": "1e4000000", oops}',
    '{"d": 1e4000000}{"d": 1}', '{"d": "1e4000000"', '{"d": 1e4000000', '{"d": 1e4000000x}',
    '{"p": {}, "d": 1e4000000Z', '{"p": {}, "d": "1e4000000Z',
    '{"d": "1e,4,0,0,0,0,0,0"}', '{"d": "1e4000000,"}', r'{"d": "1,e\u002c-4\u002c000000"}',
    f'{{"d": "{"9" * 1_000_000}"}}',
)  # fmt: skip
"""Each keeps Spark busy for seconds if it is read."""
_CHEAP: dict[str, dict[str, Any]] = {
    '{"s": "1e4000000", "d": 1.5}': {"s": "1e4000000", "d": 1.5},
    r'{"s": "\"d\": 1e4000000, ", "d": 1.5}': {"s": '"d": 1e4000000, ', "d": 1.5},
    r'{"s": "1\u00654000000", "d": "1.5"}': {"s": "1e4000000", "d": 1.5},
    '{"s": "7f12e4567", "ds": ["1.5"], "p": {"q": 1}}': {"s": "7f12e4567", "ds": [1.5], "p": {"q": 1.0}},
    '{"d": 1e0000002}': {"d": 100.0},
    '{"d": "1e00002"}': {"d": 100.0},
    '{"d": 1e2, "x": 1e300}': {"d": 100.0, "x": 1e300},
    f'{{"s": "{"x" * 200_000}", "d": 1}}': {"s": "x" * 200_000, "d": 1.0},
    f'{{"s": "{chr(92) * 400_000}", "m": {{"k": 1}}}}': {"s": chr(92) * 200_000, "m": {"k": 1.0}},
}


def test_each_edge_of_json_is_read_as_documented(spark_session: SparkSession) -> None:
    days = [_today()]
    read = _read(spark_session, [value for value, _ in _EDGES.values()], SCHEMA)
    days.append(_today())
    found = dict(zip(_EDGES, (_as_of_today(*each, days) for each in read), strict=True))

    wrong = {
        name: (expected, columns, error)
        for name, (_, expected) in _EDGES.items()
        for columns, error in [found[name]]
        if (columns, error) != (expected, None)
        and not (isinstance(expected, str) and expected in (error or ""))
    }
    assert wrong == {}


def test_the_table_in_the_docs_says_what_becomes_of_each_edge() -> None:
    page = (Path(__file__).parents[2] / "docs" / "sinks.md").read_text()
    table = page.partition("| a value of `format: json` | |\n|---|---|\n")[2].partition("\n\n")[0]
    rows = [tuple(cell.strip() for cell in line.strip("|").split(" | ", 1)) for line in table.splitlines()]

    assert [head[: len(row)] for (head, _), row in zip(rows, _DOCUMENTED, strict=True)] == list(_DOCUMENTED)
    for (head, said), names in zip(rows, _DOCUMENTED.values(), strict=True):
        refused = [isinstance(_EDGES[name][1], str) for name in (names[0], names[-1])]
        assert refused == [said.startswith("does not parse"), "not parse" in said], head


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


def _as_of_today(
    columns: dict[str, Any], error: str | None, days: Sequence[str]
) -> tuple[dict[str, Any], str | None]:
    """Name the day of the test as the table does; midnight may have come while Spark read."""
    for day in days:
        if str(columns.get("at", "")).startswith(day):
            return {**columns, "at": columns["at"].replace(day, _TODAY)}, error
    return columns, error


def test_required_columns_must_be_there(spark_session: SparkSession) -> None:
    values = ['{"id": 1, "n": 2}', '{"id": 1}', '{"n": 2}', '{"id": null, "n": 2}', None]

    found = _read(spark_session, values, "id int NOT NULL, n int, z int", required=["n"])

    missing = "The value does not fit the schema: field {} is missing or null, and it is required."
    assert found == [
        ({"id": 1, "n": 2}, None),
        ({}, missing.format("n")),
        ({}, missing.format("id")),
        ({}, missing.format("id")),
        ({}, None),
    ]


def test_text_must_be_utf8_and_bytes_may_be_anything(spark_session: SparkSession) -> None:
    values = ["Grüße", "", None, b"\xff"]
    texts = transform.parse(
        _records(spark_session, values), KafkaSource(connection="c", topic="t", format=Format.TEXT)
    )
    raw = transform.parse(
        _records(spark_session, values), KafkaSource(connection="c", topic="t", format=Format.BYTES)
    )

    assert [(r["value"], r["__sinks_error"] is None) for r in _in_order(texts)] == [
        ("Grüße", True), ("", True), (None, True), (None, False),
    ]  # fmt: skip
    assert [r["value"] for r in _in_order(raw)] == ["Grüße".encode(), b"", None, b"\xff"]


def test_a_value_is_read_if_and_only_if_python_reads_one_object_in_it(spark_session: SparkSession) -> None:
    values = sorted({_spoil(random.Random(seed)) for seed in range(20_000)})  # noqa: S311  no secret

    found = _read(spark_session, values, "a int")

    expected = [_oracle(value) for value in values]
    wrong = [
        (value, wanted, got)
        for value, wanted, got in zip(values, expected, found, strict=True)
        if (wanted is None) != (got[1] is not None) or (wanted is not None and wanted != got[0])
    ]
    assert wrong == []
    assert 2_000 < sum(wanted is not None for wanted in expected) < len(values) - 2_000


def test_a_number_that_takes_long_to_write_out_is_not_read(spark_session: SparkSession) -> None:
    begun = time.monotonic()
    cheap = _read(spark_session, list(_CHEAP), _DECIMALS)
    cheap_seconds = time.monotonic() - begun
    costly = _read(spark_session, _COSTLY, _DECIMALS)
    costly_seconds = time.monotonic() - begun - cheap_seconds

    assert cheap == [(wanted, None) for wanted in _CHEAP.values()]
    assert [value[:60] for value, (_, error) in zip(_COSTLY, costly, strict=True) if error is None] == []
    assert "an exponent of more than 999" in str(costly[0][1])
    assert costly_seconds < 3 * cheap_seconds + 5


def _oracle(value: bytes) -> dict[str, Any] | None:
    """Return what a sink must read by the schema ``a int``, or None where it must not."""
    roots: list[list[tuple[str, object]]] = []

    def keep(pairs: list[tuple[str, object]]) -> dict[str, object]:
        roots.append(pairs)
        return dict(pairs)

    def refuse(name: str) -> None:
        raise ValueError(name)

    try:
        read = json.loads(value.decode(), object_pairs_hook=keep, parse_constant=refuse)
        json.dumps(roots, ensure_ascii=False).encode()  # half a surrogate pair cannot be encoded
    except ValueError:
        return None
    if not isinstance(read, dict):
        return None
    given = [item for name, item in roots[-1] if name == "a"]
    if any(item is not None and (type(item) is not int or abs(item) >= 2**31) for item in given):
        return None
    return {"a": given[-1]} if given and given[-1] is not None else {}


_PIECES = (
    *'{}[],:"\\ \n\x00\x7f-.0aeEu',
    "{}", "[]", '""', "null", "true", "NaN", "\ufeff", "😀", r"\ud83d", r"\ude00", r"\n", r"\\", "1e5",
    '{"a":1}', '"a":2', "},{",
)  # fmt: skip
_WORDS = ("a", "b", "A", "a b", "}", "{", "]", r"\"", r"\\", r"\u0041", r"\ud83d\ude00", "ä", "😀", "")


def _value(rng: random.Random, depth: int = 0) -> str:
    kind = rng.randrange(5 if depth < 3 else 3)
    blank = rng.choice(("", "", " ", "\n"))
    if kind == 0:
        return rng.choice(("1", "-7", "0", "1.5", "1e2", "2147483648", "12345678901234567890"))
    if kind == 1:
        return f'"{rng.choice(_WORDS)}{rng.choice(_WORDS)}"'
    if kind == 2:
        return rng.choice(("null", "true", "false"))
    if kind == 3:
        return f"[{','.join(blank + _value(rng, depth + 1) for _ in range(rng.randrange(3)))}]"
    return _object(rng, depth + 1)


def _object(rng: random.Random, depth: int = 0) -> str:
    blank = rng.choice(("", "", " ", "\t"))
    fields = [f'"{rng.choice(_WORDS)}"{blank}:{blank}{_value(rng, depth)}' for _ in range(rng.randrange(3))]
    if depth == 0 and rng.random() < 0.7:
        fields.append(f'"a":{rng.choice(("1", "2", "null"))}')
    return "{" + f",{blank}".join(fields) + blank + "}"


def _spoil(rng: random.Random) -> bytes:
    """Return a value that is JSON, or was before something was put in, taken out, doubled or cut."""
    text = _object(rng)
    for _ in range(rng.choice((0, 1, 1, 2, 4))):
        at, end = rng.randrange(len(text) + 1), rng.randrange(len(text) + 1)
        kind = rng.randrange(6)
        piece = rng.choice(_PIECES)
        text = (
            text[:at] + piece + text[at:],
            text[:at] + text[at + 1 :],
            text + rng.choice(("", " ", "\n", ",")) + _object(rng),
            text[:at],
            text + piece,
            text[:at] + text[end:],
        )[kind]
    value = text.encode()
    at = rng.randrange(len(value) + 1)
    return (
        value[:at] + rng.choice((b"\xff", b"\xc3", b"\xed\xa0\x80")) + value[at:]
        if rng.random() < 0.05
        else value
    )


def _records(spark: SparkSession, values: Sequence[str | bytes | None]) -> DataFrame:
    held = [
        (offset, value if value is None else bytearray(value.encode() if isinstance(value, str) else value))
        for offset, value in enumerate(values)
    ]
    nulls = ["'t' AS topic", "0 AS partition", "offset", "CAST(NULL AS binary) AS key", "value"]
    nulls.append("CAST(NULL AS timestamp) AS timestamp")
    return spark.createDataFrame(held, "offset long, value binary").selectExpr(*nulls)


def _read(
    spark: SparkSession, values: Sequence[str | bytes | None], schema: str, **options: Any
) -> list[tuple[dict[str, Any], str | None]]:
    """Return what a sink reads: the columns that are not null, and the error, of each value."""
    source = KafkaSource(connection="c", topic="t", schema=schema, **options)
    parsed = transform.parse(_records(spark, values), source)
    names = [sql.col(f"`{name}`") for name in parsed.columns if not name.startswith("__sinks_")]
    moments = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS[XXX]"}
    moments["timestampNTZFormat"] = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
    shown = parsed.withColumn("shown", sql.to_json(sql.struct(*names), moments))
    return [(json.loads(row.shown), row["__sinks_error"]) for row in _in_order(shown)]


def _in_order(parsed: DataFrame) -> list[Any]:
    return parsed.drop("__sinks_raw_value").orderBy("__sinks_offset").collect()
