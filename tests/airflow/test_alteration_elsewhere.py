"""A Postgres connection that is altered to lead to other tables of the same names: refused before."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import psycopg
import pytest

from airflow_provider_sinks.clients.airflow_api import AirflowApi
from airflow_provider_sinks.clients.airflow_connections import ConnectionStore
from airflow_provider_sinks.core.alter.changes import SetOption
from airflow_provider_sinks.core.alter.dependents import Dependent, NewestLaunch
from airflow_provider_sinks.core.alter.steps import End, Wishes
from airflow_provider_sinks.core.connection.fields import ConnectionFields
from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.core.launch.status import SinkState
from airflow_provider_sinks.core.progress.identity import Identities, Identity
from airflow_provider_sinks.core.progress.witness import Witness
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.hooks.airflow_account import airflow_api
from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.metadata.memory import Memory
from airflow_provider_sinks.operators.alter import dependent_sinks, locked_connection
from airflow_provider_sinks.operators.alter.alteration import Alteration, Altered
from airflow_provider_sinks.operators.alter.arguments import AlterOrder
from airflow_provider_sinks.operators.alter.dependent_sinks import DependentSinks
from airflow_provider_sinks.operators.alter.locked_connection import Alterer, LockedConnection
from airflow_provider_sinks.operators.alter.worker_view import view_of
from tests.airflow.altering import KEPT, LOG, ME, Notes
from tests.airflow.api_server import account

CONN_ID = "warehouse_altered"
SPEC = SinkSpec.parse(
    {
        "name": "orders",
        "source": {"kafka": {"connection": "k", "topic": "orders", "schema": "id long"}},
        "select": ["id"],
        "target": {"postgres": {"connection": CONN_ID, "table": "public.orders", "create": True}},
    }
)
TABLES = """
    CREATE TABLE orders (id bigint);
    CREATE TABLE _sinks_progress (sink text, writer text, run text, holder text, generation bigint,
        epoch bigint, record json, changed_at timestamptz, PRIMARY KEY (sink, writer))"""


class OneSink(DependentSinks):
    """The sink of the connection: it runs, and Airflow remembers that it wrote 7 rows."""

    def __init__(self, api: AirflowApi, witness: Witness) -> None:
        super().__init__(api, CONN_ID, Notes(), LOG)
        self._memory = Memory("owner", 1, witness).to_mapping()

    def look(self) -> Iterator[tuple[Dependent, Mapping[str, Any] | None]]:
        newest = NewestLaunch(1, 1, SinkState.RUNNING, epoch_done=True, error=None)
        yield Dependent("orders", SPEC, True, ("running",), paused=False, newest=newest), self._memory


@pytest.fixture
def databases(postgres: Postgres) -> Iterator[tuple[str, str]]:
    """Two databases with tables of the same names, as a restored backup has them."""
    names = (f"a{uuid.uuid4().hex[:12]}", f"b{uuid.uuid4().hex[:12]}")
    for name in names:
        with postgres.connect() as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        with postgres.connect(name) as connection:
            connection.execute(TABLES.encode())
    yield names
    with postgres.connect() as connection:
        for name in names:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def witness_of(server: Postgres, dbname: str) -> Witness:
    with server.connect(dbname) as connection:
        data, progress = (identity(connection, name) for name in ("orders", "_sinks_progress"))
    return Witness(
        1, 1, 7, {0: 7}, Identities(Identity("cluster", "orders", "id", 1), data, progress), "owner", 1
    )


def identity(connection: psycopg.Connection, table: str) -> Identity:
    query = """SELECT (SELECT system_identifier FROM pg_control_system())::text || '/' || current_database(),
        %s::regclass::oid::text"""
    found = connection.execute(query, [table]).fetchone()
    assert found is not None
    return Identity(found[0], f"public.{table}", found[1])


@pytest.fixture
def store(
    airflow_url: str, connections: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> Iterator[ConnectionStore]:
    monkeypatch.setenv("_AIRFLOW_PROCESS_CONTEXT", "server")
    monkeypatch.setattr(dependent_sinks, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(locked_connection, "_SEEN_SECONDS", 0.1)
    monkeypatch.setattr(locked_connection, "_LOOK_AGAIN_SECONDS", 0.01)
    connections(airflow_api_default=account(airflow_url))
    with airflow_api() as api:
        made = ConnectionStore(api)
        for conn_id in (CONN_ID, f"{CONN_ID}.before"):
            made.delete(conn_id)
        yield made
        for conn_id in (CONN_ID, f"{CONN_ID}.before"):
            made.delete(conn_id)


def alter(store: ConnectionStore, witness: Witness, option: SetOption) -> Altered:
    order = AlterOrder(CONN_ID, (option,), Wishes(restart=False), False, 5.0, KEPT)
    with airflow_api() as api:
        held = LockedConnection(CONN_ID, store, Alterer(ME, is_retry=False))
        return Alteration(order, held, OneSink(api, witness), LOG).run()


def make(store: ConnectionStore, server: Postgres, dbname: str) -> None:
    login = (server.user, server.password, dbname)
    store.create(ConnectionFields(CONN_ID, "postgres", server.host, server.port, *login), "")


def test_an_alteration_that_leads_to_another_database_is_refused_before_anything_is_changed(
    store: ConnectionStore, postgres: Postgres, databases: tuple[str, str]
) -> None:
    old, new = databases
    make(store, postgres, old)

    with pytest.raises(ConfigurationError, match='sink "orders" could not run on its new options') as caught:
        alter(store, witness_of(postgres, old), SetOption("schema", new))

    assert view_of(CONN_ID).schema == old
    with airflow_api() as api:
        assert api.find(f"connections/{CONN_ID}.before") is None
    told = caught.value.detail
    assert (
        'orders: warehouse_altered: identity of data table "public.orders": this connection leads to' in told
    )
    assert f"/{new}, where it has id " in told
    assert f"/{old}, knew it by id " in told
    assert "and wrote 7 rows to it" in told


def test_an_alteration_back_to_the_database_of_the_sink_is_made(
    store: ConnectionStore, postgres: Postgres, databases: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    mine, wrong = databases
    make(store, postgres, wrong)

    altered = alter(store, witness_of(postgres, mine), SetOption("schema", mine))

    assert altered.end is End.ALTERED
    assert cast("Any", view_of(CONN_ID)).schema == mine
