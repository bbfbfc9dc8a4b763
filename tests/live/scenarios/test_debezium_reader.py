"""Changes that a sink wrote, read by Debezium's JDBC sink in Kafka Connect: the table has the same rows."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from decimal import Decimal
from pathlib import Path

from psycopg import sql

from airflow_provider_sinks.clients.wait import look_until
from tests.kafka_connect import JdbcSink
from tests.live.stage import Stage

_SCHEMA = "id long, name string, price decimal(20,4), day date, at timestamp, local timestamp_ntz, ok boolean"
_ROWS = [
    {"id": 1, "name": "first", "price": "1.5"},
    {"id": 2, "name": "gone"},
    {"id": 3, "name": "null", "ok": True},
    {"id": 2},
    {
        "id": 1, "name": "Zoë", "price": "1234567890123456.7891", "day": "1969-12-31",
        "at": "2026-02-28T01:02:03.000004Z", "local": "1970-01-01T00:00:01.000002", "ok": False,
    },
    {"id": 4, "name": "last"},
]  # fmt: skip
_AT = dt.datetime(2026, 2, 28, 1, 2, 3, 4, dt.UTC)
_LOCAL = dt.datetime(1970, 1, 1, 0, 0, 1, 2)  # noqa: DTZ001  it has no zone
_TABLE = [
    (1, "Zoë", Decimal("1234567890123456.7891"), dt.date(1969, 12, 31), _AT, _LOCAL, False),
    (3, "null", None, None, None, None, True),
    (4, "last", None, None, None, None, None),
]
_ARRIVAL_SECONDS = 180.0


def test_debeziums_jdbc_sink_makes_the_table_that_the_rows_say(stage: Stage, tmp_path: Path) -> None:
    source = stage.source("jdbc", {0: [(None, json.dumps(row)) for row in _ROWS]})
    to = {"envelope": "debezium", "key": "id", "schemas_enable": True}
    sink = stage.sink("jdbc", source, from_={"schema": _SCHEMA}, to=to)
    table = f"jdbc_{uuid.uuid4().hex[:8]}"
    options = {
        "topics": sink.out,
        "collection.name.format": table,
        "insert.mode": "upsert",
        "delete.enabled": "true",
        "primary.key.mode": "record_key",
        "schema.evolution": "basic",
    }

    sink.run()

    names = ", ".join(part.split()[0] for part in _SCHEMA.split(", "))
    query = sql.SQL("SELECT {} FROM {} ORDER BY id").format(sql.SQL(names), sql.Identifier(table))
    with JdbcSink(
        tmp_path / "connect", stage.client["bootstrap.servers"], stage.postgres, options
    ) as connect:
        found = look_until(
            lambda: (_rows(stage, table, query), connect.complaint),
            lambda seen: seen[0] == _TABLE or bool(seen[1]),
            _ARRIVAL_SECONDS,
            0.5,
        )
    assert found == (_TABLE, "")


def _rows(stage: Stage, table: str, query: sql.Composed) -> list[tuple[object, ...]]:
    with stage.postgres.connect() as connection:
        there = connection.execute("SELECT to_regclass(%s)", (table,)).fetchone()
        return connection.execute(query).fetchall() if there and there[0] else []
