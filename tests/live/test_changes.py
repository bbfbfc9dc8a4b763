"""What becomes of records that are changes of rows, by Spark itself: the row, and whether it is gone."""

from __future__ import annotations

import base64
import hashlib
import json
import uuid
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from airflow_provider_sinks.connectors import rows
from airflow_provider_sinks.core.query.analysis import analyse
from airflow_provider_sinks.core.query.rewrite import row_wise_sql
from airflow_provider_sinks.core.spec.source import KafkaSource
from airflow_provider_sinks.streaming import transform

# pyspark leaves its sockets to the garbage collector
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket.socket:ResourceWarning")

RECORD = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp"
SCHEMA = "id bigint NOT NULL, name string, price decimal(5,2), note string NOT NULL"
KEY = '{"id": 1}'
ROW = {"id": 1, "name": "ann", "price": 1.5, "note": "n"}
GONE: dict[str, Any] = {"id": 1, "name": None, "price": None, "note": None, "gone": True}
THERE = {**ROW, "gone": False}
BEFORE = {"id": 1, "name": None, "price": None, "note": None}


def wrapped(payload: object) -> str:
    """Return a value as Connect writes it with its schema."""
    names = payload if isinstance(payload, dict) else {}
    schema = {"type": "struct", "fields": [{"field": name} for name in names]}
    return json.dumps({"schema": schema, "payload": payload})


def event(op: str | None, before: object = None, after: object = None, **more: object) -> dict[str, object]:
    source = {"version": "3.0", "connector": "postgresql", "ts_ms": 7, "table": "orders"}
    return {"before": before, "after": after, "source": source, "op": op, "ts_ms": 8, "ts_us": 8000, **more}


Found = dict[str, Any] | str | None
Record = tuple[str | bytes | None, object]


def read(spark: SparkSession, envelope: str, records: list[Record], **source: object) -> list[Found]:
    """Return what becomes of records: rows, why there is none, or nothing where one says nothing."""
    declared = {"schema": SCHEMA, "key_as": {"columns": ["id"]}, **source}
    kafka = KafkaSource.model_validate({"connection": "k", "topic": "t", "envelope": envelope, **declared})
    given = [
        (_bytes(key), _bytes(value), "t", 0, offset, datetime(2026, 1, 1, tzinfo=UTC))
        for offset, (key, value) in enumerate(records)
    ]
    frame = spark.createDataFrame(given, RECORD)
    found = {row[rows.OFFSET]: row for row in transform.parse(frame, kafka).collect()}
    return [_found(found.get(offset), kafka.columns or ()) for offset in range(len(records))]


def _bytes(part: object) -> bytes | None:
    if part is None or isinstance(part, bytes):
        return part
    return (part if isinstance(part, str) else json.dumps(part)).encode()


def _found(row: Row | None, names: tuple[str, ...]) -> Found:
    if row is None:
        return None
    if row[rows.ERROR] is not None:
        return str(row[rows.ERROR]) if row[rows.DELETED] is False else "an error that is a delete"
    values = {name: row[name] for name in names}
    plain = {name: float(one) if isinstance(one, Decimal) else one for name, one in values.items()}
    return {**plain, "gone": row[rows.DELETED]}


NOT_SENT = (
    "The change lacks column {}, which did not change and is large; "
    "with REPLICA IDENTITY FULL the database sends it."
)
UPSERTS: dict[str, tuple[str | None, object, dict[str, Any] | str]] = {
    "a row": (KEY, ROW, THERE),
    "a row without its key": (KEY, {**ROW, "id": None} | {"note": "n"}, THERE),
    "a row that says another key than its key": (KEY, {**ROW, "id": 2}, THERE),
    "a row that says its key in another type": (KEY, {**ROW, "id": "x"}, THERE),
    "a key and a row with Connect's schemas": (wrapped({"id": 1}), wrapped(ROW), THERE),
    "a tombstone": (KEY, None, GONE),
    "a tombstone with Connect's schema around its key": (wrapped({"id": 1}), None, GONE),
    "a tombstone that an old Connect has wrapped": (KEY, '{"schema": null, "payload": null}', GONE),
    "a tombstone that Connect has wrapped": (KEY, wrapped(None), GONE),
    "a text that says null": (KEY, "null", "The value is not a JSON object."),
    "a row that was rewritten as gone": (KEY, {**ROW, "__deleted": "true"}, GONE),
    "a row that was rewritten as gone, by a boolean": (KEY, {**ROW, "__deleted": True}, GONE),
    "a row that was rewritten as there": (KEY, {**ROW, "__deleted": "false"}, THERE),
    "nulls in a row that is there": (KEY, {"note": "n"}, {**BEFORE, "note": "n", "gone": False}),
    "no key": (None, ROW, "The record has no key, and a row is one of a key."),
    "no key and no value": (None, None, "The record has no key, and a row is one of a key."),
    "a key of other columns": ('{"k": 1}', ROW, "Column id of the key is null or missing."),
    "a null in the key": ('{"id": null}', None, "Column id of the key is null or missing."),
    "a key that is no JSON": ("x", ROW, "The key is not a JSON object."),
    "a key of another type": ('{"id": "x"}', ROW, "The key does not fit the schema: field id is not bigint."),
    "a row that lacks what must be there": (
        KEY,
        {"id": 1},
        "The value does not fit the schema: field note is missing or null, and it is required.",
    ),
    "a row that does not fit": (
        KEY,
        {**ROW, "price": 1.555},
        "The value does not fit the schema: field price has more digits than decimal(5,2).",
    ),
    "a row that is no JSON": (KEY, "x", "The value is not a JSON object."),
    "a field payload without a schema": (KEY, {**ROW, "payload": {"a": 1}}, THERE),
    "a field payload of another type": (KEY, {**ROW, "payload": "text"}, THERE),
    "a field payload in the key": ('{"id": 1, "payload": {"id": 2}}', ROW, THERE),
    "a field schema that is none, and a null in payload": (
        KEY,
        {"schema": "v1", **ROW, "payload": None},
        THERE,
    ),
    "a row beside fields that look like Connect's": (
        KEY,
        {"schema": {"type": "struct"}, **ROW, "more": {}, "payload": None},
        THERE,
    ),
    "a row with Connect's schema behind it": (KEY, {"payload": ROW, "schema": {"type": "struct"}}, THERE),
    "a large value that the database did not send": (
        KEY,
        {**ROW, "name": "__debezium_unavailable_value"},
        NOT_SENT.format("name"),
    ),
}


def test_a_record_of_an_upsert_source_is_a_row_or_a_delete_of_its_key(spark_session: SparkSession) -> None:
    found = read(spark_session, "upsert", [(key, value) for key, value, _ in UPSERTS.values()])

    assert dict(zip(UPSERTS, found, strict=True)) == {name: told for name, (_, _, told) in UPSERTS.items()}


EVENTS: dict[str, tuple[str | None, object, dict[str, Any] | str | None]] = {
    "a create": (KEY, event("c", after=ROW), THERE),
    "a row of a snapshot": (KEY, event("r", after=ROW), THERE),
    "an update": (KEY, event("u", before=BEFORE, after=ROW), THERE),
    "an update without a key": (None, event("u", before=BEFORE, after=ROW), THERE),
    "an update under a key in another format": ("\0\0", event("u", before=BEFORE, after=ROW), THERE),
    "an update whose row before was otherwise": (
        KEY,
        event("u", {"id": 1, "name": 7}, ROW),
        THERE,
    ),
    "a delete": (KEY, event("d", before=BEFORE), GONE),
    "a delete with the whole row before": (KEY, event("d", before=ROW), GONE),
    "a delete without a row before": (KEY, event("d"), GONE),
    "a delete without a key": (None, event("d", before=BEFORE), GONE),
    "the tombstone behind a delete": (KEY, None, GONE),
    "a tombstone without a key": (None, None, None),
    "a tombstone of another key": ('{"customer": 1}', None, None),
    "a tombstone whose key cannot be read": ("x", None, "The key is not a JSON object."),
    "a row that was rewritten as gone": (KEY, {**ROW, "__deleted": "true"}, GONE),
    "a row that was rewritten as there": (None, {**ROW, "__deleted": "false"}, THERE),
    "a delete without a row before and without a key": (
        None,
        event("d"),
        "Column id of the key is null or missing.",
    ),
    "a delete whose key cannot be read": ("x", event("d"), "The key is not a JSON object."),
    "no op": (KEY, event(None, after=ROW), "The value is no change of a row: it has no op."),
    "a row by itself": (KEY, ROW, "The value is no change of a row: it has no op."),
    "an op that nobody knows": (
        KEY,
        event("x", after=ROW),
        "The change has op x, which is none of c, r, u and d.",
    ),
    "a truncate": (
        KEY,
        event("t"),
        "The change truncates the table (op t), and no row stands for that.",
    ),
    "a message": (
        None,
        event("m", message={"prefix": "p", "content": "aGk="}),
        "The change is a message (op m), and no row stands for that.",
    ),
    "an update without a row after": (KEY, event("u", before=BEFORE), "The change has op u and no after."),
    "a row after that lacks what must be there": (
        KEY,
        event("c", after={"id": 1}),
        "The value does not fit the schema: field note is missing or null, and it is required.",
    ),
    "a row after that does not fit": (
        KEY,
        event("c", after={**ROW, "price": 1.555}),
        "The value does not fit the schema: field after.price has more digits than decimal(5,2).",
    ),
    "a large value that the database did not send": (
        KEY,
        event("u", after={**ROW, "name": "__debezium_unavailable_value"}),
        NOT_SENT.format("name"),
    ),
}


def test_a_change_of_debezium_is_a_row_or_a_delete_with_and_without_its_schema(
    spark_session: SparkSession,
) -> None:
    bare = [(key, value) for key, value, _ in EVENTS.values()]
    in_schemas = [
        (wrapped(json.loads(key)) if key and key.startswith("{") else key, wrapped(value) if value else None)
        for key, value in bare
    ]

    found = read(spark_session, "debezium", [*bare, *in_schemas])

    expected = {name: told for name, (_, _, told) in EVENTS.items()}
    assert dict(zip(EVENTS, found[: len(bare)], strict=True)) == expected
    place = {"a row after that does not fit": str(expected["a row after that does not fit"])}
    inner = {name: told.replace("after.", "payload.after.") for name, told in place.items()}
    assert dict(zip(EVENTS, found[len(bare) :], strict=True)) == {**expected, **inner}


UNSENT = "__debezium_unavailable_value"
UNSENT_CODED = base64.b64encode(UNSENT.encode()).decode()
UNSENT_UUID = str(uuid.UUID(bytes=hashlib.md5(UNSENT.encode(), usedforsecurity=False).digest(), version=3))
UNSENT_BYTES = [*UNSENT.encode()]
UNSENT_DAYS = [str(date(1970, 1, 1) + timedelta(days=byte)) for byte in UNSENT_BYTES]
LARGE: list[tuple[str, object]] = [
    ("binary", UNSENT_CODED),
    ("array<string>", [UNSENT]),
    ("array<string>", [UNSENT_UUID]),
    ("array<string>", UNSENT_BYTES),
    ("array<binary>", [UNSENT_CODED]),
    ("array<smallint>", UNSENT_BYTES),
    ("array<int>", UNSENT_BYTES),
    ("array<bigint>", UNSENT_BYTES),
    ("array<double>", UNSENT_BYTES),
    ("array<decimal(20,2)>", UNSENT_BYTES),
    ("array<date>", UNSENT_DAYS),
    ("map<string, string>", {UNSENT: UNSENT}),
    ("string", {UNSENT: UNSENT}),
    ("string", json.dumps({UNSENT: UNSENT}, separators=(",", ":"))),
    ("string", [UNSENT_UUID]),
    ("string", UNSENT_BYTES),
]


def read_large(spark: SparkSession, values: list[tuple[str, object]]) -> list[Found]:
    """Return what becomes of updates, each with a value in a column of its own."""
    records: list[Record] = [
        (KEY, event("u", after={"id": 1, f"c{n}": one})) for n, (_, one) in enumerate(values)
    ]
    schema = ", ".join(["id bigint", *(f"c{n} {kind}" for n, (kind, _) in enumerate(values))])
    return read(spark, "debezium", records, schema=schema)


def test_a_large_value_that_was_not_sent_is_told_in_each_type_that_has_one(
    spark_session: SparkSession,
) -> None:
    found = read_large(spark_session, LARGE)

    assert found == [NOT_SENT.format(f"c{n}") for n in range(len(LARGE))]


def test_an_array_that_has_some_of_the_numbers_of_one_that_was_not_sent_is_kept(
    spark_session: SparkSession,
) -> None:
    others = [UNSENT_BYTES[:3], [*UNSENT_BYTES, 1], [0, *UNSENT_BYTES[1:]], [*UNSENT_BYTES[:-1], None], []]
    values: list[tuple[str, object]] = [
        *((f"array<{kind}>", one) for kind in ("int", "bigint") for one in others),
        ("array<string>", [UNSENT[:9], None]),
        ("array<string>", [str(uuid.UUID(int=7))]),
        ("string", f"text of {UNSENT}"),
    ]

    found = read_large(spark_session, values)

    told = [one[f"c{n}"] if isinstance(one, dict) else one for n, one in enumerate(found)]
    assert told == [one for _, one in values]


def test_a_tombstone_is_a_delete_however_its_key_spells_the_name_of_the_column(
    spark_session: SparkSession,
) -> None:
    keys = ['{"größe": 1}', json.dumps({"größe": 1}), '{"gr\\u00F6\\u00dfe": 1}', '{"other": 1}']
    key_as = {"columns": ["größe"]}

    found = read(
        spark_session, "debezium", [(key, None) for key in keys], schema="`größe` bigint", key_as=key_as
    )

    assert found == [{"größe": 1, "gone": True}] * 3 + [None]


def test_columns_named_as_the_envelope_are_columns_of_the_row(spark_session: SparkSession) -> None:
    row = {"id": 1, "op": "buy", "after": 3, "source": "web", "payload": "x"}
    schema = "id int, op string, after int, source string, payload string"

    [found] = read(spark_session, "debezium", [(KEY, event("c", after=row))], schema=schema)
    [upserted] = read(spark_session, "upsert", [(KEY, row)], schema=schema)

    assert found == upserted == {**row, "gone": False}


def test_a_flag_that_the_schema_names_is_a_column_too(spark_session: SparkSession) -> None:
    records: list[Record] = [(KEY, {"id": 1, "__deleted": flag}) for flag in ("false", "true")]

    found = read(spark_session, "debezium", records, schema="id int, __deleted string")

    assert found == [
        {"id": 1, "__deleted": "false", "gone": False},
        {"id": 1, "__deleted": None, "gone": True},
    ]


def test_a_key_of_text_is_one_column(spark_session: SparkSession) -> None:
    key_as = {"columns": ["id"], "format": "text"}

    found = read(spark_session, "upsert", [("7", None), ("x", None)], schema="id bigint", key_as=key_as)

    assert found == [{"id": 7, "gone": True}, "The key is not bigint."]


TEXT_KEYS: dict[str, list[tuple[str | bytes, object]]] = {
    "decimal(5,2)": [("1.55", 1.55), ("1.555", None)],
    "date": [("2026-01-05", date(2026, 1, 5)), ("2026-01-05 10:00:00", None)],
    "timestamp_ntz": [
        ("2026-01-05 10:00:00.123456", datetime.fromisoformat("2026-01-05 10:00:00.123456")),
        ("2026-01-05 10:00:00.1234567", None),
    ],
    "binary": [(b"\xff", b"\xff")],
}


def test_a_key_of_text_is_the_whole_value_or_none(spark_session: SparkSession) -> None:
    key_as = {"columns": ["id"], "format": "text"}

    for kind, keys in TEXT_KEYS.items():
        records: list[Record] = [(key, None) for key, _ in keys]
        found = read(spark_session, "upsert", records, schema=f"id {kind}", key_as=key_as)

        wrong = f"The key is not {kind}."
        assert found == [wrong if told is None else {"id": told, "gone": True} for _, told in keys]


def test_what_a_condition_does_not_take_is_gone_and_no_expression_sees_it(
    spark_session: SparkSession,
) -> None:
    kafka = KafkaSource.model_validate(
        {
            "connection": "k",
            "topic": "t",
            "envelope": "upsert",
            "schema": "id int, n int",
            "key_as": {"columns": ["id"]},
        }
    )
    values = ['{"n": 2}', '{"n": 0}', '{"n": null}', None, "x"]
    given = [
        (b'{"id": 1}', _bytes(value), "t", 0, offset, datetime(2026, 1, 1, tzinfo=UTC))
        for offset, value in enumerate(values)
    ]
    transform.parse(spark_session.createDataFrame(given, RECORD), kafka).createOrReplaceTempView("source")
    query = analyse("SELECT s.id AS k, *, 4 / n AS part, 'eu' AS place FROM source AS s WHERE n <> 0")

    found = spark_session.sql(row_wise_sql(query, has_deletes=True)).orderBy(rows.OFFSET).collect()

    assert [(row.k, row.part, row.place, row[rows.DELETED]) for row in found] == [
        (1, 2.0, "eu", False),
        (1, None, "eu", True),
        (1, None, "eu", True),
        (1, None, "eu", True),
        (None, None, "eu", False),
    ]
    assert [row[rows.ERROR] is None for row in found] == [True, True, True, True, False]
