"""Sinks whose target is a Postgres table: rows and progress in one transaction, whoever writes."""

from __future__ import annotations

from typing import LiteralString

import pytest
from confluent_kafka import Producer
from psycopg import sql

from airflow_provider_sinks.connectors.stored_letters import stored_letters
from airflow_provider_sinks.core.dead_letters.letter import ErrorClass
from airflow_provider_sinks.core.errors import ExitCode
from tests.live.stage import WHO_WRITES, KeyValue, Sink, Stage

_SCHEMA = "id int, userid string, price decimal(10,2), at timestamp"
_ROWS: list[KeyValue] = [
    ("k", '{"id": 1, "userid": "ann", "price": 1.25, "at": "2026-11-20T10:00:00.123456Z"}'),
    ("k", '{"id": 2, "userid": "bob", "price": 7}'),
    ("k", '{"id": 3, "userid": "eve \\u00e9", "price": -0.01}'),
]


def _sink(stage: Stage, source: str, schema: str, target: dict[str, object], **parts: object) -> Sink:
    table = {"connection": "pg", "table": f"{schema}.orders", **target}
    return stage.sink("table", source, from_={"schema": _SCHEMA}, target={"postgres": table}, **parts)


def _read(
    stage: Stage, schema: str, columns: LiteralString, table: str = "orders"
) -> list[tuple[object, ...]]:
    query = sql.SQL("SELECT {} FROM {} ORDER BY 1, 2").format(sql.SQL(columns), sql.Identifier(schema, table))
    with stage.postgres.connect() as connection:
        return connection.execute(query).fetchall()


def _sql(stage: Stage, schema: str, *statements: LiteralString, **values: str) -> None:
    """Run statements in one transaction; ``{s}`` in them is the schema."""
    names = {"s": sql.Identifier(schema), **{name: sql.Literal(value) for name, value in values.items()}}
    with stage.postgres.connect() as connection, connection.transaction():
        for statement in statements:
            connection.execute(sql.SQL(statement).format(**names))


@pytest.mark.parametrize("stage", WHO_WRITES, indirect=True)
def test_rows_are_appended_once_over_starts_to_a_table_that_is_made(stage: Stage, schema: str) -> None:
    source = stage.source("append", {0: _ROWS, 1: _ROWS[:1]})
    sink = _sink(stage, source, schema, {"create": True})

    first = sink.run()
    stage.produce(source, [(0, *_ROWS[1])])
    second = sink.run()
    third = sink.run()

    assert [status.rows_total for status in (first, second, third)] == [4, 5, 5]
    assert (first.health, set(first.metrics)) == ("well", {"server_version"})
    assert _read(stage, schema, "id, userid, price::text") == [
        (1, "ann", "1.25"),
        (1, "ann", "1.25"),
        (2, "bob", "7.00"),
        (2, "bob", "7.00"),
        (3, "eve é", "-0.01"),
    ]
    assert _read(stage, schema, "at::text, id")[0] == ("2026-11-20 10:00:00.123456+00", 1)


_LETTER = (
    "error_class, error, source_topic, source_partition, source_offset, source_timestamp IS NOT NULL, "
    "convert_from(key, 'UTF8'), convert_from(value, 'UTF8'), headers::text, sink, generation, epoch, "
    "spec_digest, replays"
)
_FIRST_COLUMNS = (
    "at timestamptz NOT NULL DEFAULT now(), sink text NOT NULL, error text NOT NULL, source_topic text, "
    "source_partition int, source_offset bigint, key bytea, value bytea"
)


@pytest.mark.parametrize("stage", WHO_WRITES, indirect=True)
@pytest.mark.parametrize("is_upsert", [False, True])
def test_dead_letters_of_each_class_have_one_shape(stage: Stage, schema: str, is_upsert: bool) -> None:
    with stage.postgres.connect() as connection:
        made = "CREATE TABLE {} (id smallint PRIMARY KEY CHECK (id <> 2), userid text)"
        connection.execute(sql.SQL(made).format(sql.Identifier(schema, "orders")))
    source = stage.topic("classes-source")
    producer = Producer(stage.client)
    for value in ('{"id": 2}', '{"id": 99999}', "{", '{"id": 1}'):
        producer.produce(source, key="k", value=value, headers=[("trace", b"\x00\xff"), ("none", None)])
    assert producer.flush(30) == 0
    target: dict[str, object] = {"key": "id", "mode": "upsert"} if is_upsert else {}
    dead = {"table": f"{schema}.orders_dead"}
    sink = _sink(stage, source, schema, target, select=["id", "userid"], dead_letter=dead)

    status = sink.run()

    def letter(kind: str, error: str, offset: int, value: str) -> tuple[object, ...]:
        place = (source, 0, offset, True)
        record = ("k", value, '[["trace","AP8="],["none",null]]')
        return (kind, error, *place, *record, sink.parsed.name, 1, 1, sink.parsed.digest, 0)

    refused = 'new row for relation "orders" violates check constraint "orders_id_check"'
    assert _read(stage, schema, _LETTER, "orders_dead") == [
        letter("convert", "column id: 99999 does not fit smallint", 1, '{"id": 99999}'),
        letter("parse", "The value is not JSON.", 2, "{"),
        letter("refused", refused, 0, '{"id": 2}'),
    ]
    assert (status.rows_total, status.dead_total) == (1, 3)


def test_a_table_of_dead_letters_of_the_release_before_is_written_as_it_is(stage: Stage, schema: str) -> None:
    with stage.postgres.connect() as connection:
        made = sql.SQL("CREATE TABLE {} ({})").format(
            sql.Identifier(schema, "orders_dead"), sql.SQL(_FIRST_COLUMNS)
        )
        connection.execute(made)
    source = stage.source("old", {0: [_ROWS[0], ("k", "{")]})
    sink = _sink(stage, source, schema, {"create": True}, dead_letter={"table": f"{schema}.orders_dead"})

    sink.run()

    assert _read(stage, schema, "error, source_offset", "orders_dead") == [("The value is not JSON.", 1)]
    with stored_letters(sink.parsed, sink.connections) as letters:
        (letter,) = letters.all()
    assert (letter.error_class, letter.told_class, letter.value) == (ErrorClass.PARSE, None, b"{")


@pytest.mark.parametrize("limits", [{"max_per_epoch": 11}, {"max_ratio": 0.7}])
def test_a_table_that_refuses_too_much_stops_the_sink_before_its_commit(
    stage: Stage, schema: str, limits: dict[str, float]
) -> None:
    with stage.postgres.connect() as connection:
        made = "CREATE TABLE {} (id int CHECK (id <> 2), userid text)"
        connection.execute(sql.SQL(made).format(sql.Identifier(schema, "orders")))
    source = stage.source("limit", {0: [*_ROWS[:1] * 3, *_ROWS[1:2] * 12]})
    dead = {"table": f"{schema}.orders_dead"}
    sink = _sink(stage, source, schema, {}, select=["id", "userid"], dead_letter={**dead, **limits})

    status = sink.fail(ExitCode.REFUSED)

    assert status.error is not None
    assert "would set aside 12 of 15 records at once" in status.error.primary
    assert _read(stage, schema, "id, userid") == []
    sink.spec = {**sink.spec, "dead_letter": dead}
    assert (sink.run().rows_total, len(_read(stage, schema, "1, 2", "orders_dead"))) == (3, 12)


@pytest.mark.parametrize("stage", WHO_WRITES, indirect=True)
def test_rows_of_one_key_replace_each_other_and_empty_ones_delete(stage: Stage, schema: str) -> None:
    source = stage.source("upsert", {0: _ROWS})
    target = {"create": True, "key": "id", "mode": "upsert", "tombstones": "delete"}
    sink = _sink(stage, source, schema, target, select=["id", "userid"])

    sink.run()
    stage.produce(source, [(0, "k", '{"id": 2, "userid": "zoe"}'), (0, "k", '{"id": 1}')])
    sink.run()

    assert _read(stage, schema, "id, userid") == [(2, "zoe"), (3, "eve é")]


def test_a_row_that_the_table_refuses_is_set_aside_and_the_others_are_written(
    stage: Stage, schema: str
) -> None:
    with stage.postgres.connect() as connection:
        made = "CREATE TABLE {} (id int CHECK (id <> 2), userid text)"
        connection.execute(sql.SQL(made).format(sql.Identifier(schema, "orders")))
    source = stage.source("bad", {0: [*_ROWS, ("k", "{")]})
    sink = _sink(
        stage, source, schema, {}, select=["id", "userid"], dead_letter={"table": f"{schema}.orders_dead"}
    )

    status = sink.run()

    assert (status.rows_total, status.dead_total) == (2, 2)
    assert [row[0] for row in _read(stage, schema, "id, userid")] == [1, 3]
    dead = _read(stage, schema, "source_offset, error, value", "orders_dead")
    assert [row[0] for row in dead] == [1, 3]
    assert "check constraint" in str(dead[0][1])


def test_a_table_that_is_dropped_is_refused_and_a_way_on_makes_it_anew(stage: Stage, schema: str) -> None:
    source = stage.source("dropped", {0: _ROWS})
    sink = _sink(stage, source, schema, {"create": True})
    sink.run()
    with stage.postgres.connect() as connection:
        connection.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(schema, "orders")))

    refused = sink.fail(ExitCode.REFUSED)
    assert refused.error is not None
    assert refused.error.primary.startswith(f'data table "{schema}.orders" is missing, but sink')
    sink.run(sink.code(refused, "start_over"))

    assert [row[0] for row in _read(stage, schema, "id, userid")] == [1, 2, 3]


_KEEP = (
    "CREATE TABLE {s}.older_rows AS TABLE {s}.orders",
    "CREATE TABLE {s}.older_progress AS TABLE {s}._sinks_progress",
)
_FAIL_OVER = (
    "TRUNCATE {s}.orders, {s}._sinks_progress",
    "INSERT INTO {s}.orders SELECT * FROM {s}.older_rows",
    "INSERT INTO {s}._sinks_progress SELECT * FROM {s}.older_progress",
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE strpos(application_name, {name}) > 0",
)


def test_a_database_that_forgets_commits_under_a_running_sink_ends_it_and_leaves_no_gap(
    stage: Stage, schema: str
) -> None:
    """As a replica that lags behind does when it takes over: connections break, and the newest is gone."""
    source = stage.source("forgets", {0: _ROWS})
    sink = _sink(stage, source, schema, {"create": True}, trigger={"every": "100ms"})
    driver = sink.start()
    driver.wait_until(lambda: driver.has_passed({0: 3}))
    _sql(stage, schema, *_KEEP)
    stage.produce(source, [(0, *row) for row in _ROWS])
    driver.wait_until(lambda: driver.has_passed({0: 6}))

    _sql(stage, schema, *_FAIL_OVER, name=sink.parsed.name)
    stage.produce(source, [(0, *row) for row in _ROWS])

    assert driver.wait() == ExitCode.REFUSED, driver.log[-3000:]
    assert driver.status is not None
    assert driver.status.error is not None
    assert driver.status.error.primary.startswith(f'progress of sink "{sink.parsed.name}" was rolled back')
    assert [row[0] for row in _read(stage, schema, "id, userid")] == [1, 2, 3]


def test_a_table_that_is_missing_is_made_only_where_the_spec_says_so(stage: Stage, schema: str) -> None:
    sink = _sink(stage, stage.source("missing", {0: _ROWS}), schema, {})

    error = sink.fail(ExitCode.CONFIGURATION).error

    assert error is not None
    assert error.primary == f'data table "{schema}.orders" cannot be made'
    assert "create: true" in error.hint


def test_columns_that_do_not_fit_the_table_are_all_named_before_anything_is_made(
    stage: Stage, schema: str
) -> None:
    with stage.postgres.connect() as connection:
        made = "CREATE TABLE {} (id uuid, usrid text, price numeric, at timestamptz)"
        connection.execute(sql.SQL(made).format(sql.Identifier(schema, "orders")))
    sink = _sink(stage, stage.source("misfit", {0: _ROWS}), schema, {})

    error = sink.fail(ExitCode.CONFIGURATION).error

    assert error is not None
    assert "id" in error.detail
    assert "usrid" in error.detail
    with stage.postgres.connect() as connection:
        found = connection.execute("SELECT to_regclass(%s)", [f"{schema}._sinks_progress"]).fetchone()
    assert found == (None,)
