"""The connection of a table that a sink writes is altered while it runs: another port, and another login."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from psycopg import sql

from airflow_provider_sinks.local import spark
from airflow_provider_sinks.local.airflow import AirflowStack
from airflow_provider_sinks.local.airflow_rest_api import DagRun
from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.postgres import Postgres
from tests.contract.wire import PostgresWire
from tests.faults.driver import QUICK_START
from tests.live.alter_story import AlterDag
from tests.live.table_sink import TableSink

TABLE_CONNECTION = f"pg_{uuid.uuid4().hex[:6]}"
PASSWORDS = {user: f"{user} canary {uuid.uuid4().hex}" for user in ("old", "new", "stranger")}
_GRANTS = (
    b"CREATE ROLE writers",
    b"GRANT writers TO old, new",
    b"GRANT USAGE, CREATE ON SCHEMA shop TO writers",
    b"GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA shop TO writers",
    b"ALTER DEFAULT PRIVILEGES FOR ROLE old IN SCHEMA shop GRANT SELECT, INSERT, UPDATE ON TABLES TO writers",
)


@dataclass(frozen=True)
class World:
    """The sink, what alters its connection, and the two ways to the server."""

    airflow: AirflowStack
    server: Postgres
    old_way: PostgresWire
    new_way: PostgresWire
    sink: TableSink
    alter: AlterDag
    run: DagRun

    def stored(self) -> tuple[int, str]:
        """Return port and login of the connection."""
        found = self.airflow.call("GET", f"connections/{TABLE_CONNECTION}")
        return found["port"], found["login"]

    def logins(self) -> set[str]:
        """Return who has connections of the sink open."""
        query = "SELECT usename FROM pg_stat_activity WHERE application_name LIKE 'sinks/%'"
        with self.server.connect() as connection:
            return {name for (name,) in connection.execute(query).fetchall()}


@pytest.fixture(scope="module")
def world(airflow: AirflowStack, broker: KafkaBroker, postgres: Postgres) -> Iterator[World]:
    """The sink, running by the old way as the old login."""
    ways = [PostgresWire((postgres.host, postgres.port)) for _ in range(2)]
    arguments = {
        "spark_conn_id": "spark_of_tables",
        "jars": ",".join(map(str, spark.kafka_jars())),
        "conf": {
            "spark.driver.memory": "512m",
            "spark.driver.extraJavaOptions": QUICK_START,
            "spark.ui.enabled": "false",
        },
    }
    sink = TableSink(
        airflow, broker, "table", arguments, server=postgres, table_connection=TABLE_CONNECTION, schema="shop"
    )
    make_logins(sink)
    airflow.add_connection("spark_of_tables", "spark", host="local[1,4]")
    fields = {
        **postgres.connection_fields,
        "port": ways[0].port,
        "login": "old",
        "password": PASSWORDS["old"],
    }
    airflow.add_connection(TABLE_CONNECTION, "postgres", **fields)
    for user in ("new", "stranger"):
        airflow.call("POST", "variables", {"key": f"sinks_secret_pg_{user}", "value": PASSWORDS[user]})
    alter = AlterDag.write(airflow, f"alter_{TABLE_CONNECTION}")
    sink.prepare(20)
    run = sink.start()
    sink.wait_running(1)
    with sink.fed_all_the_time():
        yield World(airflow, postgres, ways[0], ways[1], sink, alter, run)
    end(sink, run)
    for way in ways:
        way.close()


def make_logins(sink: TableSink) -> None:
    """Make a schema with the sink's table that two logins share, and a login that may do nothing."""
    with sink.server.connect() as connection:
        connection.execute("CREATE SCHEMA shop")
        sink.make_table()
        for user, password in PASSWORDS.items():
            create = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}")
            connection.execute(create.format(sql.Identifier(user), sql.Literal(password)))
        for statement in _GRANTS:
            connection.execute(statement)


def end(sink: TableSink, run: DagRun) -> None:
    if sink.airflow.run_state(run) == "running":
        sink.mark(run, "failed")
    sink.wait_no_driver()


def test_a_login_that_may_not_write_is_found_before_anything_is_changed(world: World) -> None:
    statement = "SET (login = stranger, password = SECRET sinks_secret_pg_stranger)"

    run = world.alter.start(f"ALTER CONNECTION {TABLE_CONNECTION} {statement}")
    world.airflow.wait_for_run(run, 300)

    log = world.airflow.task_log(run, "alter")
    assert f'sink "{world.sink.name}" could not run on its new options' in log
    assert world.stored() == (world.old_way.port, "old")
    assert len(world.sink.launches) == 1


def test_the_running_sink_moves_to_another_port_and_login(world: World) -> None:
    statement = (
        f"ALTER CONNECTION {TABLE_CONNECTION} SET (port = {world.new_way.port}, login = new, "
        "password = SECRET sinks_secret_pg_new)"
    )

    result = world.alter.result(world.alter.start(statement))
    world.sink.wait_through()
    world.old_way.close()
    world.sink.wait_through()

    assert result["end"] == "altered", result["log"]
    assert {found["came"] for found in result["on_new"].values()} == {"back"}
    assert world.stored() == (world.new_way.port, "new")
    assert world.logins() == {"new"}
    assert len(world.sink.launches) == 2


def test_over_all_that_no_row_is_missing_and_none_is_doubled(world: World) -> None:
    end(world.sink, world.run)

    world.sink.demand_exact(rows_min=50)
