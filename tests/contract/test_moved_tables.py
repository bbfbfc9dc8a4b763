"""A connection that leads to other tables of the same names: told before anything is changed or started."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_sinks.connectors.preflight import validate
from airflow_provider_sinks.core.checks.check import Check, Outcome
from airflow_provider_sinks.core.connection.fields import ConnectionFields, Given
from airflow_provider_sinks.core.errors import UnavailableError
from airflow_provider_sinks.core.progress.witness import Witness
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.testing.connector_contract import FIRST
from airflow_provider_sinks.testing.played_start import SINK, SOURCE, Harness, PlayedStart
from tests.contract.delta_harness import DeltaHarness
from tests.contract.iceberg_harness import IcebergHarness
from tests.contract.postgres_harness import PostgresHarness

ALL = {"data", "dead-letter", "progress"}
NO_BROKER = UnavailableError("no broker: this test is about tables")


def wrote(harness: Harness) -> Witness:
    """Return what Airflow knows of a sink that has written rows, and set two aside."""
    start = PlayedStart(harness).start()
    start.epoch(1, FIRST)
    ended = start.connector.progress()
    for left in harness.made:
        left.close()
    return Witness(1, 1, ended.rows_total, ended.epoch_ends(), start.identities, "owner", 1, dead=2)


def named_like(harness: PostgresHarness, server: Postgres) -> PostgresHarness:
    """Return tables of the same names on another server."""
    made = PostgresHarness(server)
    made.direct.execute(f"ALTER SCHEMA {made.schema} RENAME TO {harness.schema}".encode())
    made.schema = harness.schema
    return made


def fields(server: Postgres, **changes: Any) -> ConnectionFields:
    given = {**server.connection_fields, **changes}
    return ConnectionFields(
        "warehouse",
        "postgres",
        given["host"],
        given["port"],
        given["login"],
        given["password"],
        given["schema"],
    )


def postgres_sink(harness: PostgresHarness) -> SinkSpec:
    source = {"kafka": {"connection": "k", "topic": SOURCE.name, "schema": "part int, at long, what string"}}
    target = {"postgres": {"connection": "warehouse", "table": f"{harness.schema}.{SINK}"}}
    whole = {"name": SINK, "source": source, "select": ["part", "at", "what"], "target": target}
    return SinkSpec.parse({**whole, "dead_letter": {"table": f"{harness.schema}.{SINK}_dead"}})


def identities(
    spec: SinkSpec, witness: Witness, target: ConnectionFields | None = None, **given: Any
) -> dict[str, Check]:
    """Return by role what a validation says of the identities."""
    known: dict[str, Given] = {"k": NO_BROKER, **({target.conn_id: target} if target else {})}
    report = validate(known, spec, witness=witness, **given)
    found = [check for check in report.checks if check.name.startswith("identity of ")]
    assert found, report.table()
    return {check.name.removeprefix("identity of ").split()[0]: check for check in found}


def failed(checks: dict[str, Check]) -> set[str]:
    return {role for role, check in checks.items() if check.outcome is Outcome.FAIL}


@pytest.fixture
def harness(postgres: Postgres) -> Iterator[PostgresHarness]:
    made = PostgresHarness(postgres)
    yield made
    made.close()


def test_the_same_tables_by_another_address_are_the_same(
    harness: PostgresHarness, postgres: Postgres
) -> None:
    witness = wrote(harness)

    checks = identities(postgres_sink(harness), witness, fields(postgres, port=harness.wire.port))

    assert checks.keys() == ALL
    assert {check.outcome for check in checks.values()} == {Outcome.PASS}


def test_tables_of_the_same_names_on_another_server_are_told_with_both(
    harness: PostgresHarness, postgres: Postgres, another_postgres: Postgres
) -> None:
    witness, other = wrote(harness), named_like(harness, another_postgres)
    wrote(other)
    try:
        checks = identities(postgres_sink(harness), witness, fields(another_postgres))
    finally:
        other.close()

    assert failed(checks) == ALL
    here, there = system_of(another_postgres), system_of(postgres)
    data = checks["data"]
    assert data.detail.startswith(f"this connection leads to database {here}/postgres, where it has id ")
    assert f"the sink ran on {there}/postgres, knew it by id {witness.identities.data.id}" in data.detail
    assert data.hint.startswith("Name the database it ran on. To move the sink on purpose")


def test_another_database_of_the_same_server_is_another_one(
    harness: PostgresHarness, postgres: Postgres
) -> None:
    witness = wrote(harness)

    checks = identities(postgres_sink(harness), witness, fields(postgres, schema="template1"))

    assert failed(checks) == ALL
    assert "/template1, where it is missing" in checks["data"].detail


def test_tables_that_were_made_anew_are_other_ones_and_before_a_start_that_fails_nothing(
    harness: PostgresHarness, postgres: Postgres
) -> None:
    witness, spec = wrote(harness), postgres_sink(harness)
    for name in (SINK, f"{SINK}_dead"):
        harness.direct.execute(f"ALTER TABLE {harness.schema}.{name} RENAME TO {name}_old".encode())
        like = f"CREATE TABLE {harness.schema}.{name} (LIKE {harness.schema}.{name}_old)"
        harness.direct.execute(like.encode())

    altered, told = (
        identities(spec, witness, fields(postgres), start_decides=decides) for decides in (False, True)
    )

    assert failed(altered) == {"data", "dead-letter"}
    assert "another table of this name" in altered["data"].detail
    assert failed(told) == set()
    assert told["data"].outcome is Outcome.UNKNOWN


def test_an_iceberg_catalog_of_the_same_name_in_another_database_is_another_one(
    postgres: Postgres, another_postgres: Postgres, tmp_path: Path
) -> None:
    lake, other = IcebergHarness(postgres, tmp_path / "a"), IcebergHarness(another_postgres, tmp_path / "b")
    try:
        witness = wrote(lake)
        checks, same = (
            identities(lake.spec(), witness, catalog(lake, server)) for server in (another_postgres, postgres)
        )
    finally:
        lake.close()
        other.close()

    assert failed(checks) == ALL
    assert failed(same) == set()


def test_a_delta_table_of_the_same_path_in_another_folder_is_another_one(tmp_path: Path) -> None:
    lake = DeltaHarness(tmp_path / "lake")
    witness, spec = wrote(lake), lake.spec()
    same = identities(spec, witness)
    lake.folder.rename(tmp_path / "aside")
    gone = identities(spec, witness)
    wrote(lake)
    moved = identities(spec, witness)

    assert failed(same) == set()
    assert failed(gone) == failed(moved) == ALL
    assert "it is not there any more" in gone["data"].detail
    assert f"the sink knew {witness.identities.data.id}, and wrote" in moved["data"].detail


def catalog(lake: IcebergHarness, server: Postgres) -> ConnectionFields:
    extra = {"name": lake.name, "warehouse": lake.folder.as_uri()}
    login = (server.user, server.password, server.dbname)
    return ConnectionFields("lake", "iceberg", server.host, server.port, *login, extra=extra)


def system_of(server: Postgres) -> str:
    with server.connect() as connection:
        found = connection.execute("SELECT system_identifier FROM pg_control_system()").fetchone()
    assert found is not None
    return str(found[0])
