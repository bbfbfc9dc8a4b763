"""What a start finds in a real database, and what it says of it: in tables, with the SQL that mends it."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Iterator
from dataclasses import replace

import pytest

from airflow_provider_sinks.connectors.postgres.connector import PostgresConnector
from airflow_provider_sinks.connectors.postgres.observe import layout
from airflow_provider_sinks.core.decision.decide import decide
from airflow_provider_sinks.core.decision.start_request import StartRequest
from airflow_provider_sinks.core.decision.verdict import Verdict, VerdictKind
from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.testing.played_start import SINK, SOURCE, PlayedStart
from tests.contract.postgres_harness import PostgresHarness


@pytest.fixture
def made(postgres: Postgres) -> Iterator[PostgresHarness]:
    """A schema in which a sink has started and written nothing."""
    harness = PostgresHarness(postgres)
    start = PlayedStart(harness).start()
    start.connector.close()
    yield harness
    harness.close()


def verdict_of(harness: PostgresHarness, login: tuple[str, str] | None = None) -> Verdict:
    progress, data, dead = harness.creations()
    options = harness._options
    if login is not None:
        as_user = {**options.parameters, "user": login[0], "password": login[1]}
        options = replace(options, parameters=as_user)
    request = StartRequest(SINK, "owner", SOURCE.name, data=data, progress=progress, dead_letter=dead)
    connector = PostgresConnector(harness.sink(), options)
    try:
        return decide(connector.observe(SOURCE), request)
    finally:
        connector.close()


def run(harness: PostgresHarness, statement: str) -> None:
    names = {"schema": harness.schema, "sink": SINK, "progress": harness.sink().target.progress_table}
    harness.direct.execute(statement.format(**names).encode())


def test_something_else_under_the_name_of_the_progress_table_is_refused(made: PostgresHarness) -> None:
    run(made, "DROP TABLE {progress}; CREATE TABLE {progress} (told text)")

    verdict = verdict_of(made)

    assert verdict.kind is VerdictKind.REFUSE
    table = made.sink().target.progress_table
    assert verdict.primary == f'progress table "{table}" has no column sink'
    assert verdict.hint == "Name another table as progress: the sink makes it."


def test_a_progress_table_that_a_crash_empties_is_refused_with_the_sql_that_mends_it(
    made: PostgresHarness,
) -> None:
    run(made, "ALTER TABLE {progress} SET UNLOGGED")
    refused = verdict_of(made)

    assert refused.kind is VerdictKind.REFUSE
    made.direct.execute(refused.hint.encode())
    assert verdict_of(made).goes_on


def test_a_table_of_dead_letters_that_a_crash_empties_is_refused_with_the_sql_that_mends_it(
    made: PostgresHarness,
) -> None:
    run(made, "ALTER TABLE {schema}.{sink}_dead SET UNLOGGED")
    refused = verdict_of(made)

    assert refused.kind is VerdictKind.REFUSE
    assert "nobody sets its rows aside again" in str(refused)
    made.direct.execute(refused.hint.encode())
    assert verdict_of(made).goes_on


def test_a_view_under_the_name_of_the_target_is_refused(made: PostgresHarness) -> None:
    run(made, "DROP TABLE {schema}.{sink}; CREATE VIEW {schema}.{sink} AS SELECT 1 AS part")

    verdict = verdict_of(made)

    assert verdict.kind is VerdictKind.REFUSE
    assert f'data table "{made.schema}.{SINK}" is a view, and no table' in str(verdict)


def test_the_type_behind_a_domain_of_a_domain_is_seen_with_its_digits(made: PostgresHarness) -> None:
    run(made, "CREATE DOMAIN {schema}.cents AS numeric(10,2); CREATE DOMAIN {schema}.price AS {schema}.cents")
    run(made, 'CREATE TABLE {schema}.t (v {schema}.price, w char(3) COLLATE "C", x bit(3)[])')

    seen = layout(made.direct, f"{made.schema}.t")

    assert seen is not None
    found = [(c.base, c.exact, c.plain, c.collation) for c in seen.columns.values()]
    assert found == [
        ("numeric", "numeric(10,2)", "numeric", None),
        ("character", "character(3)", "bpchar", 'pg_catalog."C"'),
        ("bit[]", "bit(3)[]", '"bit"[]', None),
    ]


def test_a_right_that_is_missing_is_waited_for_with_its_grant(made: PostgresHarness) -> None:
    user = f"u{uuid.uuid4().hex[:12]}"
    made.direct.execute(f"CREATE ROLE {user} LOGIN PASSWORD 'secret'".encode())
    run(made, f"GRANT USAGE ON SCHEMA {{schema}} TO {user}")
    run(made, f"GRANT SELECT, INSERT, UPDATE ON {{progress}}, {{schema}}.{{sink}}_dead TO {user}")
    try:
        denied = verdict_of(made, (user, "secret"))
        assert denied.kind is VerdictKind.WAIT
        assert f"permission denied: INSERT on table {made.schema}.{SINK}" in denied.primary

        made.direct.execute(denied.hint.replace("<user of the connection>", user).encode())
        assert verdict_of(made, (user, "secret")).kind is not VerdictKind.WAIT
    finally:
        made.direct.execute(f"DROP OWNED BY {user}; DROP ROLE {user}".encode())


def test_a_login_that_may_make_no_temporary_table_is_told_with_its_grant(
    postgres: Postgres, made: PostgresHarness
) -> None:
    there = copy.copy(postgres)
    there.dbname, user = f"D {uuid.uuid4().hex[:12]}", f"u{uuid.uuid4().hex[:12]}"
    made.direct.execute(f'CREATE DATABASE "{there.dbname}"'.encode())
    harness = PostgresHarness(there)
    try:
        harness.direct.execute(f'REVOKE TEMP ON DATABASE "{there.dbname}" FROM PUBLIC'.encode())
        harness.direct.execute(f"CREATE ROLE {user} LOGIN PASSWORD 'secret'".encode())
        run(harness, f"GRANT ALL ON SCHEMA {{schema}} TO {user}")

        denied = verdict_of(harness, (user, "secret"))
        assert denied.kind is VerdictKind.WAIT
        assert f'permission denied: TEMP on database "{there.dbname}"' in denied.primary
        harness.direct.execute(denied.hint.replace("<user of the connection>", user).encode())
        assert verdict_of(harness, (user, "secret")).goes_on
    finally:
        harness.close()
        made.direct.execute(f'DROP DATABASE "{there.dbname}" WITH (FORCE)'.encode())
        made.direct.execute(f"DROP ROLE {user}".encode())
