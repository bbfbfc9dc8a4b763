"""Sinks whose source records are changes of rows: what is refused before they start, and why."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.core.spec.sink import SinkSpec

ROW = '{"name": "after", "type": ["null", {"type": "record", "name": "V", "fields": [FIELDS]}]}'
FIELDS = '{"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"]}'
OP = '{"name": "op", "type": "string"}'
FLAG = '{"name": "__deleted", "type": ["null", "string"]}'
TARGETS: dict[str, dict[str, Any]] = {
    "postgres": {
        "connection": "pg",
        "table": "a.b",
        "mode": "upsert",
        "key": ["id"],
        "tombstones": "delete",
    },
    "iceberg": {"catalog": "lake", "table": "a.b", "mode": "upsert", "key": ["id"]},
    "delta": {"path": "/tables/b", "mode": "upsert", "key": ["id"]},
    "kafka": {"connection": "k", "topic": "out", "key": ["id"], "tombstones": True},
    "spark": {"format": "parquet", "path": "/tables/b"},
}


def record(*fields: str) -> str:
    return '{"type": "record", "name": "R", "fields": [' + ", ".join(fields) + "]}"


def parsed(source: dict[str, Any], target: dict[str, Any] | None = None, **parts: Any) -> SinkSpec:
    kafka = {
        "connection": "k",
        "topic": "t",
        "envelope": "debezium",
        "schema": "id long NOT NULL, name string, n int",
        "key_as": {"columns": ["id"]},
        **source,
    }
    kind = parts.pop("kind", "postgres")
    whole = {"name": "s", "source": {"kafka": kafka}, "target": {kind: {**TARGETS[kind], **(target or {})}}}
    return SinkSpec.parse({**whole, **parts})


@pytest.mark.parametrize("kind", ["postgres", "iceberg", "delta"])
def test_a_sink_of_changes_is_the_same_behind_its_own_text(kind: str) -> None:
    spec = parsed({}, kind=kind)

    again = SinkSpec.parse(spec.to_mapping())

    assert (again, again.digest) == (spec, spec.digest)
    assert spec.source.kafka.key_as is not None
    assert (spec.source.kafka.key_as.format, spec.source_columns) == ("json", ("id", "name", "n"))


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "no key": (
        {"key_as": None},
        {},
        "source.kafka.key_as: is missing: envelope debezium needs the columns of the key (key_as:",
    ),
    "a key that is one column of bytes": (
        {"key_as": {"format": "text"}},
        {},
        "source.kafka.key_as.columns: is missing: envelope debezium needs",
    ),
    "an unknown column of the key": (
        {"key_as": {"columns": ["ix"]}},
        {},
        "source.kafka.key_as.columns[0]: 'ix' is no column of the schema",
    ),
    "columns of a key without an envelope": (
        {"envelope": "append"},
        {},
        "source.kafka.key_as.columns: does not go with envelope append",
    ),
    "a column beside columns": (
        {"key_as": {"columns": ["id"], "column": "k"}},
        {},
        "source.kafka.key_as.column: does not go with columns (leave it out)",
    ),
    "text without columns": (
        {"format": "text", "schema": None, "key_as": {"columns": ["value"]}},
        {"target": {"key": "value"}},
        "source.kafka.format: text has no columns to change (json, avro, json_schema or protobuf)",
    ),
    "a key of bytes": (
        {"key_as": {"columns": ["id"], "format": "bytes"}},
        {},
        "source.kafka.key_as.format: bytes has no columns",
    ),
    "a key of two columns as text": (
        {"key_as": {"columns": ["id", "name"], "format": "text"}},
        {"target": {"key": ["id", "name"]}},
        "source.kafka.key_as.format: text is one column (json, avro, json_schema or protobuf)",
    ),
    "a key of Avro in front of JSON": (
        {"key_as": {"columns": ["id"], "format": "avro"}, "registry": "r"},
        {},
        "source.kafka.key_as.format: avro does not go with values of format json",
    ),
    "an envelope that nobody knows": (
        {"envelope": "debezum"},
        {},
        "source.kafka.envelope: 'debezum' is none of append, upsert, debezium (did you mean \"debezium\"?)",
    ),
    "an Avro schema of neither events nor rows": (
        {
            "format": "avro",
            "registry": "r",
            "schema": record(FIELDS),
            "key_as": {"columns": ["id"], "format": "text"},
        },
        {},
        "source.kafka.schema: is none of Debezium's events, with op and after, nor of rows with __deleted",
    ),
    "appending": (
        {},
        {"target": {"mode": "append", "key": [], "tombstones": "ignore"}},
        "target.postgres.mode: append keeps rows that envelope debezium deletes",
    ),
    "tombstones that are ignored": (
        {},
        {"target": {"tombstones": "ignore"}},
        "target.postgres.tombstones: ignore keeps rows that envelope debezium deletes (tombstones: delete)",
    ),
    "appending to Delta": (
        {},
        {"kind": "delta", "target": {"mode": "append", "key": []}},
        "target.delta.mode: append keeps rows that envelope debezium deletes (mode: upsert, with a key)",
    ),
    "a target of Kafka": (
        {},
        {"kind": "kafka"},
        "source.kafka.envelope: debezium has deletes, and a target of kind kafka takes none",
    ),
    "a target that Spark writes": (
        {},
        {"kind": "spark"},
        "source.kafka.envelope: debezium has deletes, and a target of kind spark takes none",
    ),
    "an aggregate": (
        {},
        {"query": "SELECT id, count(*) AS n FROM source GROUP BY id"},
        "query: has GROUP BY: envelope debezium takes a projection and a filter",
    ),
    "a generator": (
        {},
        {"select": ["id", "explode(array(n)) AS m"]},
        "select: makes many rows of one: envelope debezium takes",
    ),
    "a lateral view": (
        {},
        {"query": "SELECT id, m FROM source LATERAL VIEW explode(array(n)) t AS m"},
        "query: makes many rows of one",
    ),
    "a join": (
        {},
        {
            "query": "SELECT s.id, u.x FROM source s LEFT JOIN users u ON u.id = s.n",
            "lookups": {"users": "pg/a.users"},
        },
        "query: joins a lookup, whose rows come and go without a change of the source",
    ),
    "a star in a condition": ({}, {"where": "hash(*) > 0"}, "where: has a star in its condition"),
    "a key that is calculated": (
        {},
        {"select": ["lower(name) AS id", "n"]},
        "target.postgres.key[0]: 'id' is no column of the source's key as it is",
    ),
    "a key of another column": (
        {},
        {"select": ["name AS id", "n"]},
        "target.postgres.key[0]: 'id' is no column of the source's key as it is",
    ),
    "a field of a struct for the key": (
        {"schema": "id long, s struct<id: long>"},
        {"select": ["s.id", "id AS other"]},
        "target.postgres.key[0]: 'id' is no column of the source's key as it is",
    ),
    "a part of the key": (
        {"key_as": {"columns": ["id", "n"]}},
        {},
        "target.postgres.key: is not the whole key of the source: a delete would take rows",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_lose_a_delete_or_delete_too_much_is_refused(name: str) -> None:
    source, parts, expected = REFUSED[name]

    with pytest.raises(ConfigurationError) as refused:
        parsed(source, **parts)

    assert expected in str(refused.value)
    own = [problem for problem in refused.value.problems if "checkpoint" not in problem.where]
    assert len(own) == 1, "one mistake is told once"


@pytest.mark.parametrize(
    "parts",
    [
        {"select": ["id AS k", "upper(name) AS name"], "target": {"key": ["k"]}},
        {"query": "SELECT p.*, 1 AS one FROM source p WHERE p.n > 1"},
        {"query": "SELECT * EXCEPT (n) FROM source"},
        {"query": "SELECT ID, name FROM source", "target": {"key": ["ID"]}},
    ],
)
def test_a_projection_and_a_filter_may_give_the_key_any_name(parts: dict[str, Any]) -> None:
    assert parsed({}, **parts).shape.row_wise


@pytest.mark.parametrize(
    ("envelope", "schema", "columns"),
    [
        ("debezium", record(ROW.replace("FIELDS", FIELDS), OP), ("id", "name")),
        ("debezium", record(FIELDS, FLAG), ("id", "name")),
        ("upsert", record('{"name": "name", "type": "string"}'), ("name", "id")),
        ("upsert", record(FIELDS, FLAG), ("id", "name")),
    ],
)
def test_the_columns_of_avro_are_those_of_the_row(
    envelope: str, schema: str, columns: tuple[str, ...]
) -> None:
    key = {"columns": ["id"], "format": "avro"}

    spec = parsed({"envelope": envelope, "format": "avro", "registry": "r", "schema": schema, "key_as": key})

    assert spec.source_columns == columns


def test_a_filter_says_which_rows_are_gone_and_is_written_once() -> None:
    spec = parsed({}, query="SELECT s.id, upper(name) AS name FROM source s -- all\nWHERE n > 1 -- but few")

    assert spec.job_sql.count("n > 1") == 1
    assert "WHERE" not in spec.job_sql
    assert (
        "CASE WHEN `s`.__sinks_error IS NULL AND NOT `s`.__sinks_deleted THEN (upper(name)) END AS name"
        in (spec.job_sql)
    )
    assert "THEN NOT coalesce((n > 1), false) ELSE `s`.__sinks_deleted END AS __sinks_deleted" in spec.job_sql
