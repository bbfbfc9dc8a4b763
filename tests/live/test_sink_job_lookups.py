"""Joins with a Postgres table: which rows match, when a changed table is read again, and what goes wrong."""

from __future__ import annotations

import json
import time
import uuid

import pytest
from psycopg import sql

from airflow_provider_sinks.connectors.postgres.options import PostgresOptions
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.errors import ExitCode
from airflow_provider_sinks.local.ports import free_port
from tests.live.stage import KeyValue, Sink, Stage

_SCHEMA = "id int, userid string"
_JOIN = "SELECT s.id, s.userid, u.region FROM source s {} JOIN users u USING (userid)"
_ROWS: list[KeyValue] = [
    ("k", '{"id": 1, "userid": "ann"}'),
    ("k", '{"id": 2, "userid": "nobody"}'),
    ("k", '{"id": 3}'),
    ("k", "{"),
    ("k", '{"id": 5, "userid": "bob"}'),
]


def _lookup(table: str, **options: object) -> dict[str, object]:
    return {"users": {"postgres": {"connection": "pg", "table": f"public.{table}", **options}}}


@pytest.fixture
def users(stage: Stage) -> str:
    """A table of its own, with two users."""
    table = f"users_{uuid.uuid4().hex[:8]}"
    with stage.postgres.connect() as connection:
        name = sql.Identifier(table)
        connection.execute(sql.SQL("CREATE TABLE {} (userid text, region text, note text)").format(name))
        insert = sql.SQL("INSERT INTO {} VALUES ('ann', 'north', repeat('x', 100000)), ('bob', NULL, '')")
        connection.execute(insert.format(name))
    return table


def test_left_join_keeps_rows_without_a_match_and_inner_join_drops_them(stage: Stage, users: str) -> None:
    source = stage.source("joins", {0: _ROWS})
    parts = {"from_": {"schema": _SCHEMA}, "lookups": _lookup(users)}
    left = stage.sink("left", source, query=_JOIN.format("LEFT"), dead_letter=f"{source}-left", **parts)
    inner = stage.sink("inner", source, query=_JOIN.format("INNER"), dead_letter=f"{source}-inner", **parts)

    launches = [left.launch(), inner.launch()]

    assert [launch.wait() for launch in launches] == [0, 0]
    assert _regions(stage, left.out) == {1: "north", 2: None, 3: None, 5: None}
    assert _regions(stage, inner.out) == {1: "north", 5: None}
    assert len(stage.read(f"{source}-left")) == len(stage.read(f"{source}-inner")) == 1


def test_changed_table_is_read_again_within_its_interval(stage: Stage, users: str) -> None:
    source = stage.source("refresh", {0: _ROWS[:1]})
    sink = stage.sink(
        "refresh",
        source,
        from_={"schema": _SCHEMA},
        lookups=_lookup(users, refresh="2s", columns=["userid", "region"]),
        query=_JOIN.format("LEFT"),
        trigger={"every": "100ms"},
    )
    launch = sink.launch()
    launch.wait_until(lambda: launch.has_passed({0: 1}))
    with stage.postgres.connect() as connection:
        connection.execute(sql.SQL("UPDATE {} SET region = 'south'").format(sql.Identifier(users)))

    time.sleep(2.1)
    stage.produce(source, [(0, "k", '{"id": 10, "userid": "ann"}')])
    launch.wait_until(lambda: launch.has_passed({0: 2}))

    assert launch.stop() == ExitCode.OK
    assert _regions(stage, sink.out) == {1: "north", 10: "south"}


def test_lookup_that_is_missing_is_named_with_the_nearest_one(stage: Stage, users: str) -> None:
    sink = _joined(stage, _lookup(users + "x"))

    status = sink.fail(ExitCode.CONFIGURATION)

    assert status.error is not None
    assert status.error.primary == f'lookup table "public.{users}x" cannot be read'
    assert f'did you mean "{users}"?' in status.error.detail
    assert "GRANT SELECT ON" in status.error.hint
    assert stage.read(sink.out) == []


def test_lookup_that_is_too_large_names_the_ways_on(stage: Stage, users: str) -> None:
    sink = _joined(stage, _lookup(users, max_bytes=1000))

    status = sink.fail(ExitCode.CONFIGURATION)

    assert status.error is not None
    assert status.error.primary == f'lookup table "public.{users}" is too large to broadcast'
    assert "larger than 1,000 bytes" in status.error.detail
    assert "`columns`" in status.error.hint
    assert "`max_bytes`" in status.error.hint


@pytest.mark.parametrize(
    "query", [_JOIN.format("LEFT"), "SELECT s.id, u.* FROM source s LEFT JOIN users u USING (userid)"]
)
def test_column_that_is_dropped_under_a_running_sink_is_said_by_its_table(
    stage: Stage, users: str, query: str
) -> None:
    sink = _following(stage, users, query=query)
    launch = sink.launch()
    launch.wait_until(lambda: launch.has_passed({0: 1}))

    _alter(stage, users, "DROP COLUMN region")
    time.sleep(1.1)
    stage.produce(sink.source, [(0, "k", '{"id": 10, "userid": "ann"}')])

    assert launch.wait() == ExitCode.CONFIGURATION
    status = launch.status
    assert status is not None
    assert status.error is not None
    assert status.error.primary == f'lookup table "public.{users}" of sink "{sink.parsed.name}" has changed'
    assert f"lookups.users: table \"public.{users}\" has lost column 'region'" in status.error.detail


def test_lookup_column_that_changes_its_type_under_a_running_sink_stops_it(stage: Stage, users: str) -> None:
    sink = _following(stage, users)
    launch = sink.launch()
    launch.wait_until(lambda: launch.has_passed({0: 1}))

    _alter(stage, users, "ALTER COLUMN region TYPE int USING 7")
    time.sleep(1.1)
    stage.produce(sink.source, [(0, "k", '{"id": 2, "userid": "ann"}')])

    assert launch.wait() == ExitCode.CONFIGURATION
    error = launch.status.error if launch.status else None
    assert error is not None
    assert error.primary == f'lookup table "public.{users}" changed while the sink ran'
    assert f'columns: region: in table "public.{users}" it was string and is int32' in error.detail
    assert _regions(stage, sink.out) == {1: "north"}


def test_new_lookup_column_is_read_from_the_next_start_on(stage: Stage, users: str) -> None:
    sink = _following(stage, users, query="SELECT s.id, u.* FROM source s LEFT JOIN users u USING (userid)")
    launch = sink.launch()
    launch.wait_until(lambda: launch.has_passed({0: 1}))
    _alter(stage, users, "ADD COLUMN city text DEFAULT 'Oslo'")
    time.sleep(1.1)
    stage.produce(sink.source, [(0, "k", '{"id": 2, "userid": "ann"}')])
    launch.wait_until(lambda: launch.has_passed({0: 2}))
    assert launch.stop() == ExitCode.OK
    stage.produce(sink.source, [(0, "k", '{"id": 3, "userid": "ann"}')])
    again = sink.launch()
    again.wait_until(lambda: again.has_passed({0: 3}))

    assert again.stop() == ExitCode.OK
    rows = {row["id"]: row for row in (json.loads(r.value or b"") for r in stage.read(sink.out))}
    assert ["city" in rows[number] for number in (1, 2, 3)] == [False, False, True]


def test_duplicate_keys_multiply_rows_and_null_keys_match_nothing(stage: Stage, users: str) -> None:
    _alter(stage, users, "ADD COLUMN n int")
    with stage.postgres.connect() as connection:
        view = sql.Identifier(f"{users}_view")
        more = sql.SQL("INSERT INTO {} (userid, region) VALUES ('ann', 'south'), (NULL, 'x'), (NULL, 'y')")
        connection.execute(more.format(sql.Identifier(users)))
        make = sql.SQL("CREATE VIEW {} AS SELECT userid, region FROM {}")
        connection.execute(make.format(view, sql.Identifier(users)))
    source = stage.source("twice", {0: [*_ROWS[:3], _ROWS[4]]})
    sink = stage.sink(
        "twice",
        source,
        from_={"schema": _SCHEMA},
        lookups=_lookup(f"{users}_view"),
        query=_JOIN.format("LEFT"),
    )

    sink.run()

    written = [json.loads(record.value or b"{}") for record in stage.read(sink.out)]
    found = sorted((row["id"], row["region"] or "") for row in written)
    assert found == [(1, "north"), (1, "south"), (2, ""), (3, ""), (5, "")]
    told = f'lookup "users": 1 keys (userid) stand in more than one row of table "public.{users}_view"'
    assert sink.launches[-1].log.count(told) == 1


def test_duplicate_keys_are_told_once_however_often_the_table_is_read(stage: Stage, users: str) -> None:
    with stage.postgres.connect() as connection:
        more = sql.SQL("INSERT INTO {} VALUES ('ann', 'north', ''), ('bob', NULL, '')")
        connection.execute(more.format(sql.Identifier(users)))
    sink = _following(stage, users)
    launch = sink.launch()
    launch.wait_until(lambda: launch.has_passed({0: 1}))
    with stage.postgres.connect() as connection:
        connection.execute(sql.SQL("UPDATE {} SET region = 'south'").format(sql.Identifier(users)))
    for offset in range(1, 100):
        stage.produce(sink.source, [(0, "k", f'{{"id": {offset}, "userid": "ann"}}')])
        launch.wait_until(lambda now=offset: launch.has_passed({0: now + 1}))  # type: ignore[misc]
        if "south" in _regions(stage, sink.out).values():
            break

    assert launch.stop() == ExitCode.OK
    assert _regions(stage, sink.out)[offset] == "south"  # it was read again
    told = f'lookup "users": 2 keys (userid) stand in more than one row of table "public.{users}"'
    assert launch.log.count(told) == 1


def test_wrong_postgres_password_is_final(stage: Stage, users: str) -> None:
    sink = _joined(stage, _lookup(users))
    _connect(sink, stage, password="wrong")

    status = sink.fail(ExitCode.CONFIGURATION)

    assert status.error is not None
    assert status.error.kind == "AuthenticationError"
    assert status.error.primary.startswith('Postgres refused the credentials of connection "pg"')


def test_postgres_that_is_away_is_worth_a_retry(stage: Stage, users: str) -> None:
    sink = _joined(stage, _lookup(users))
    _connect(sink, stage, port=free_port())
    assert sink.fail(ExitCode.UNAVAILABLE).error is not None

    _connect(sink, stage)
    sink.run()

    assert _regions(stage, sink.out) == {1: "north"}


def _connect(sink: Sink, stage: Stage, *, password: str | None = None, port: int | None = None) -> None:
    """Give a sink other options for its database."""
    server = stage.postgres
    other = {"port": port or server.port, "password": password or server.password}
    options = PostgresOptions.from_connection("pg", **{**server.connection_fields, **other}, extra={})
    sink.connections = ResolvedConnections({**sink.connections.options, "pg": options})


def _following(stage: Stage, users: str, **spec: object) -> Sink:
    """Return an endless sink that reads its lookup again each second."""
    source = stage.source("follows", {0: _ROWS[:1]})
    lookups = _lookup(users, refresh="1s")
    query = {"query": _JOIN.format("LEFT"), **spec}
    return stage.sink(
        "follows", source, from_={"schema": _SCHEMA}, lookups=lookups, trigger={"every": "100ms"}, **query
    )


def _alter(stage: Stage, table: str, change: str) -> None:
    with stage.postgres.connect() as connection:
        connection.execute(f"ALTER TABLE {table} {change}".encode())


def _joined(stage: Stage, lookups: dict[str, object]) -> Sink:
    source = stage.source("broken", {0: _ROWS[:1]})
    return stage.sink(
        "broken", source, from_={"schema": _SCHEMA}, lookups=lookups, query=_JOIN.format("LEFT")
    )


def _regions(stage: Stage, topic: str) -> dict[int, str | None]:
    rows = [json.loads(record.value or b"{}") for record in stage.read(topic)]
    return {row["id"]: row["region"] for row in rows}
