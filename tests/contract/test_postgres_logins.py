"""What a login may do, and what a newer start can not end because it belongs to another login."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import psycopg
import pytest
from psycopg import sql

from airflow_provider_sinks.connectors.postgres.layout import layout
from airflow_provider_sinks.connectors.postgres.options import PostgresOptions
from airflow_provider_sinks.core.errors import SinkError, UnavailableError
from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.testing.connector_contract import give_up
from airflow_provider_sinks.testing.played_start import SINK, PlayedStart, PlayedTask, rows_of
from tests.contract.postgres_harness import PostgresHarness, options_of

FIRST = {0: range(20), 1: range(10)}
SECOND = {0: range(20, 50), 1: range(10, 16)}
TIMEOUT = timedelta(seconds=3)


class Warehouse(PostgresHarness):
    """Tables that an administrator made, and logins of their own that write them."""

    def __init__(self, server: Postgres) -> None:
        super().__init__(server)
        self._server = server
        for creation in self.creations():
            self.direct.execute(creation.statement())

    def log_in(self, name: str) -> PostgresOptions:
        """Make a login that may do no more than an append needs, and connect as it from now on."""
        login = f"{self.schema}_{name}"
        grants = [
            "CREATE ROLE {login} LOGIN PASSWORD 'secret'",
            "GRANT USAGE ON SCHEMA {schema} TO {login}",
            "GRANT INSERT ON {data}, {dead} TO {login}",
            "GRANT SELECT, INSERT, UPDATE ON {progress} TO {login}",
        ]
        names = {"data": SINK, "dead": f"{SINK}_dead", "progress": "_sinks_progress"}
        tables = {name: sql.Identifier(self.schema, table) for name, table in names.items()}
        for grant in grants:
            statement = sql.SQL(grant).format(
                login=sql.Identifier(login), schema=sql.Identifier(self.schema), **tables
            )
            self.direct.execute(statement)
        own = options_of(self._server)
        self._options = replace(own, parameters={**own.parameters, "user": login, "password": "secret"})
        return self._options

    def close(self) -> None:
        for left in self.made:
            left.close()
        super().close()
        for (role,) in self._roles():
            with self._server.connect() as connection:
                name = sql.Identifier(role)
                connection.execute(sql.SQL("DROP OWNED BY {}").format(name))
                connection.execute(sql.SQL("DROP ROLE {}").format(name))

    def _roles(self) -> list[tuple[str]]:
        with self._server.connect() as connection:
            query = "SELECT rolname FROM pg_roles WHERE starts_with(rolname, %s)"
            return list(connection.execute(query, [self.schema]).fetchall())


@pytest.fixture
def warehouse(postgres: Postgres) -> Iterator[Warehouse]:
    harness = Warehouse(postgres)
    yield harness
    harness.close()


def test_the_fewest_rights_are_enough_for_rows_bad_rows_and_dead_letters(warehouse: Warehouse) -> None:
    table = sql.Identifier(warehouse.schema, SINK)
    warehouse.direct.execute(sql.SQL("ALTER TABLE {} ADD CHECK (at <> 7)").format(table))
    warehouse.log_in("few")
    start = PlayedStart(warehouse).start()
    start.epoch(1, FIRST, bad=[3])
    assert warehouse.set_aside() == [(0, 3), (0, 7), (1, 3), (1, 7)]
    assert warehouse.visible() == [row for row in rows_of(FIRST) if row[1] not in (3, 7)]
    assert start.connector.progress().dead_total == 4


def test_a_frozen_writer_of_another_login_is_waited_out(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    impatient = replace(warehouse.sink(), timeout=TIMEOUT)
    monkeypatch.setattr(warehouse, "sink", lambda *_: impatient)
    warehouse.log_in("older")
    older = PlayedStart(warehouse).start()
    older.epoch(1, FIRST)
    frozen = PlayedTask(older, 2, 0, SECOND).go_on(until="pre_commit")
    warehouse.log_in("newer")
    deadline = time.monotonic() + 60
    newer = PlayedStart(warehouse)
    while True:  # the row is locked until the server ends the idle transaction
        try:
            newer.open()
            break
        except UnavailableError:
            assert time.monotonic() < deadline
    newer.announce().epoch(2, SECOND)
    with pytest.raises(SinkError):
        frozen.go_on()
    give_up(frozen)
    assert warehouse.visible() == rows_of(FIRST, SECOND)


def test_a_table_in_partitions_takes_rows(warehouse: Warehouse) -> None:
    table = sql.Identifier(warehouse.schema, SINK)
    part = sql.Identifier(warehouse.schema, f"{SINK}_all")
    warehouse.direct.execute(sql.SQL("DROP TABLE {}").format(table))
    made = "CREATE TABLE {} (part integer, at bigint, what text) PARTITION BY RANGE (at)"
    warehouse.direct.execute(sql.SQL(made).format(table))
    rows = "CREATE TABLE {} PARTITION OF {} FOR VALUES FROM (0) TO (15)"
    warehouse.direct.execute(sql.SQL(rows).format(part, table))
    PlayedStart(warehouse).start().epoch(1, FIRST)
    assert warehouse.visible() == [row for row in rows_of(FIRST) if row[1] < 15]
    assert warehouse.set_aside() == [(0, at) for at in range(15, 20)]


def test_policies_on_rows_are_seen_by_the_login_that_they_bind(warehouse: Warehouse) -> None:
    table = sql.Identifier(warehouse.schema, SINK)
    warehouse.direct.execute(sql.SQL("ALTER TABLE {} ENABLE ROW LEVEL SECURITY").format(table))
    name = f"{warehouse.schema}.{SINK}"
    owner = layout(warehouse.direct, name)
    with psycopg.connect(psycopg.conninfo.make_conninfo(**warehouse.log_in("bound").conninfo)) as connection:
        bound = layout(connection, name)
    assert owner is not None
    assert bound is not None
    assert (owner.has_row_security, bound.has_row_security) == (False, True)
