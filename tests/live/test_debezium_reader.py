"""What sinks write is read by Debezium's JDBC sink: its table has the rows that a table of ours has."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from psycopg import sql

from airflow_provider_sinks.clients.wait import holds_within
from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.postgres import Postgres
from tests.live.jdbc_sink import JdbcSink, avro
from tests.live.registered import Registered
from tests.live.stage import KeyValue, Stage

_TIMES = ", at timestamp, local timestamp_ntz"
_SCHEMA = (
    "id long, name string, small smallint, part double, exact decimal(20,4), raw binary, ok boolean, day date"
    + _TIMES
)
_ANN = {
    "name": "Ann", "small": -1, "part": 0.1, "exact": 1234567890.1234, "day": "1969-12-31",
    "at": "2026-02-28T01:02:03.000004Z", "local": "2026-02-28T23:59:59.999999", "raw": "AP8=", "ok": False,
}  # fmt: skip
_READ_SECONDS = 60.0


def _row(number: int, **fields: object) -> KeyValue:
    return None, json.dumps({"id": number, **fields})


_ROWS = [
    _row(1, **_ANN),
    _row(2, name="null"),
    _row(3, **{**_ANN, "name": "Köln\n'\""}),
    _row(2),
    _row(1, **{**_ANN, "exact": -0.0001, "day": "9999-12-31", "at": "0001-01-01T00:00:00Z"}),
    _row(4, name="gone"),
    _row(4),
    _row(2, name="back", small=32767),
]
"""The second row of 2 deletes it, and its third makes it again; 4 is made and deleted."""

_BY_KEY = {"insert.mode": "upsert", "delete.enabled": "true", "primary.key.mode": "record_key"}
_EACH = {"insert.mode": "insert", "primary.key.mode": "none"}
_ENVELOPES: dict[str, tuple[dict[str, Any], Mapping[str, str]]] = {
    "append": ({}, _EACH),
    "upsert": ({"key": "id", "envelope": "upsert"}, _BY_KEY),
    "upsert, compacted": ({"key": "id", "envelope": "upsert", "compact_epoch": True}, _BY_KEY),
    "debezium": ({"key": "id", "envelope": "debezium"}, _BY_KEY),
    "debezium without tombstones": (
        {"key": "id", "envelope": "debezium", "deletes": "without_tombstone"},
        _BY_KEY,
    ),
}


@pytest.fixture(scope="module")
def jdbc_sink(
    tmp_path_factory: pytest.TempPathFactory, broker: KafkaBroker, postgres: Postgres
) -> Iterator[JdbcSink]:
    """A worker that reads topics into tables of the shared database."""
    with JdbcSink(tmp_path_factory.mktemp("connect") / "worker", broker, postgres) as running:
        yield running


def _found(stage: Stage, table: str, columns: list[str]) -> list[tuple[Any, ...]]:
    query = sql.SQL("SELECT {} FROM {} ORDER BY id, name, small, exact").format(
        sql.SQL(", ").join(map(sql.Identifier, columns)), sql.Identifier("public", table)
    )
    with stage.postgres.connect() as connection:
        if connection.execute("SELECT to_regclass(%s)", [f'public."{table}"']).fetchone() == (None,):
            return []
        return connection.execute(query).fetchall()


def _demand_same_rows(
    stage: Stage, jdbc_sink: JdbcSink, schema: str, to: Mapping[str, Any], how: Mapping[str, str]
) -> None:
    """Let Debezium read what a sink wrote, and a sink of ours write the same rows into a table itself."""
    columns = re.findall(r"(\w+) [a-z_]+", schema)
    source = stage.source("read", {0: _ROWS})
    written = stage.sink("read", source, from_={"schema": schema}, to=to)
    theirs, ours = (f"{who}_{source[-8:]}" for who in ("theirs", "ours"))
    mode = {"key": ["id"], "mode": "upsert", "tombstones": "delete"} if "key" in to else {}
    table = {"connection": "pg", "table": f"public.{ours}", "create": True, **mode}
    written.run()
    stage.sink("ours", source, from_={"schema": schema}, target={"postgres": table}).run()
    expected = _found(stage, ours, columns)

    jdbc_sink.read(written.out, theirs, how)

    def has_all() -> bool:
        jdbc_sink.demand_running(written.out)
        return _found(stage, theirs, columns) == expected

    holds_within(has_all, _READ_SECONDS, pause_seconds=0.2)
    assert _found(stage, theirs, columns) == expected
    assert [row[0] for row in expected] == ([1, 2, 3] if mode else [1, 1, 2, 2, 2, 3, 4, 4])


@pytest.mark.parametrize("envelope", _ENVELOPES)
def test_debezium_reads_rows_by_the_schema_in_their_messages(
    stage: Stage, jdbc_sink: JdbcSink, envelope: str
) -> None:
    to, how = _ENVELOPES[envelope]

    _demand_same_rows(stage, jdbc_sink, _SCHEMA, {"schemas_enable": True, **to}, how)


@pytest.mark.parametrize("envelope", ["append", "upsert", "debezium"])
def test_debezium_reads_rows_of_avro(registered: Registered, jdbc_sink: JdbcSink, envelope: str) -> None:
    to, how = _ENVELOPES[envelope]
    by_avro = {"format": "avro", "registry": "registry", "record": "shop.Order"}
    keys = {"key_format": "avro"} if "key" in to else {}
    schema = _SCHEMA.replace(_TIMES, "")  # Apicurio's converter takes microseconds for plain numbers
    url = registered.registry.url.replace("/ccompat/v7", "/registry/v2")

    _demand_same_rows(registered.stage, jdbc_sink, schema, {**by_avro, **keys, **to}, {**how, **avro(url)})
