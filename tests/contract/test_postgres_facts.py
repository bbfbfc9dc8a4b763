"""What a start finds in a real database, and what it says of it: in tables, with the SQL that mends it."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Iterator

import pytest

from airflow_provider_sinks.connectors.postgres.connector import PostgresConnector
from airflow_provider_sinks.connectors.postgres.creation import FIRST_DEAD_LETTER_COLUMNS
from airflow_provider_sinks.connectors.postgres.layout import layout
from airflow_provider_sinks.connectors.spark_format.outputs import JdbcOutput
from airflow_provider_sinks.core.decision.facts import Existence, Role
from airflow_provider_sinks.core.decision.verdict import VerdictKind
from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.testing.played_start import SINK
from tests.contract.postgres_harness import PostgresHarness
from tests.contract.postgres_verdicts import dead_letters_of, options_of, run, verdict_of


def test_something_else_under_the_name_of_the_progress_table_is_refused(made: PostgresHarness) -> None:
    run(made, "DROP TABLE {progress}; CREATE TABLE {progress} (told text)")

    verdict = verdict_of(made)

    assert verdict.kind is VerdictKind.REFUSE
    table = made.sink().target.progress_table
    assert verdict.primary == f'progress table "{table}" has no column sink'
    assert verdict.hint == "Name another table as progress: the sink makes it."


def test_rows_never_go_into_a_table_that_holds_progress(made: PostgresHarness) -> None:
    run(made, "DROP TABLE {schema}.{sink}; CREATE TABLE {schema}.{sink} (LIKE {progress} INCLUDING ALL)")

    verdict = verdict_of(made)

    assert verdict.kind is VerdictKind.REFUSE
    assert f'data table "{made.schema}.{SINK}" holds the progress of sinks' in str(verdict)
    assert verdict.hint == "Name another table."


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


@pytest.fixture
def without_temp(postgres: Postgres, made: PostgresHarness) -> Iterator[tuple[PostgresHarness, str]]:
    """A schema in a database without TEMP, and a login that may make tables there."""
    there = copy.copy(postgres)
    there.dbname, user = f"D {uuid.uuid4().hex[:12]}", f"u{uuid.uuid4().hex[:12]}"
    made.direct.execute(f'CREATE DATABASE "{there.dbname}"'.encode())
    harness = PostgresHarness(there)
    try:
        harness.direct.execute(f'REVOKE TEMP ON DATABASE "{there.dbname}" FROM PUBLIC'.encode())
        harness.direct.execute(f"CREATE ROLE {user} LOGIN PASSWORD 'secret'".encode())
        run(harness, f"GRANT ALL ON SCHEMA {{schema}} TO {user}")
        yield harness, user
    finally:
        harness.close()
        made.direct.execute(f'DROP DATABASE "{there.dbname}" WITH (FORCE)'.encode())
        made.direct.execute(f"DROP ROLE {user}".encode())


def test_a_login_that_may_make_no_temporary_table_is_told_with_its_grant(
    without_temp: tuple[PostgresHarness, str],
) -> None:
    harness, user = without_temp

    denied = verdict_of(harness, (user, "secret"))

    assert denied.kind is VerdictKind.WAIT
    assert f'permission denied: TEMP on database "{harness._options.conninfo["dbname"]}"' in denied.primary
    harness.direct.execute(denied.hint.replace("<user of the connection>", user).encode())
    assert verdict_of(harness, (user, "secret")).goes_on


def test_spark_s_jdbc_writer_needs_no_temporary_table_and_ours_does(
    without_temp: tuple[PostgresHarness, str],
) -> None:
    harness, user = without_temp
    run(
        harness,
        f"CREATE TABLE {{schema}}.{{sink}} (id bigint); GRANT INSERT ON {{schema}}.{{sink}} TO {user}",
    )
    options = options_of(harness, (user, "secret"))

    facts = JdbcOutput(options, f"{harness.schema}.{SINK}").facts()
    connector = PostgresConnector(harness.sink(), options)
    ours = connector.identify()[Role.DATA]
    connector.close()

    assert facts.existence is Existence.PRESENT
    assert ours.reason.startswith("permission denied: TEMP on database")


_WITHOUT_RECORD = "sink text, error text, source_topic text, source_partition int, source_offset bigint"
_MISTYPED = """sink varchar, error varchar(3), source_topic text, source_partition bigint,
    source_offset bigint, key text NOT NULL, value text"""
_GENERATED = """sink text, error text, source_topic text, source_partition int, key bytea, value bytea,
    source_offset bigint GENERATED BY DEFAULT AS IDENTITY, id bigint GENERATED ALWAYS AS IDENTITY,
    generation bigint GENERATED ALWAYS AS IDENTITY, epoch bigint GENERATED ALWAYS AS (1) VIRTUAL,
    replays int GENERATED ALWAYS AS (0) STORED"""
_WITH_DEFAULTS = f"""{_WITHOUT_RECORD}, key bytea NOT NULL DEFAULT '', value bytea NOT NULL DEFAULT '',
    note text NOT NULL DEFAULT ''"""


@pytest.mark.parametrize(
    ("table", "told"),
    [
        (_WITHOUT_RECORD, ["key is missing", "value is missing"]),
        (
            'LIKE {schema}.{sink}_dead INCLUDING ALL, "No" bigint NOT NULL',
            ['"No" takes no null, and has no default'],
        ),
        (
            _MISTYPED,
            [
                "error is character varying(3), and not text",
                "source_partition is bigint, and not integer",
                "key is text, and not bytea",
                "value is text, and not bytea",
                "key takes no null",
            ],
        ),
        (_WITH_DEFAULTS, ["key takes no null", "value takes no null"]),
        (
            _GENERATED,
            [
                "epoch is generated by Postgres",
                "replays is generated by Postgres",
                "source_offset is numbered by Postgres, and takes no null",
                "generation is numbered by Postgres, and takes no null",
            ],
        ),
        ("foo text", [f"{name} is missing" for name in FIRST_DEAD_LETTER_COLUMNS]),
    ],
    ids=["without_record", "with_more", "mistyped", "with_defaults", "generated", "another"],
)
def test_a_table_that_takes_no_dead_letters_is_refused_with_the_sql_that_mends_it(
    made: PostgresHarness, table: str, told: list[str]
) -> None:
    run(made, f"CREATE TABLE {{schema}}.other ({table})")
    run(made, "DROP TABLE {schema}.{sink}_dead; ALTER TABLE {schema}.other RENAME TO {sink}_dead")

    unfit = dead_letters_of(made).unfit

    assert unfit is not None
    assert unfit.what == "does not take each dead letter as a whole"
    assert unfit.why == " ".join(f"Column {each}." for each in told)
    made.direct.execute(unfit.repair.encode())
    assert dead_letters_of(made).unfit is None


def test_a_table_of_dead_letters_that_an_earlier_release_made_fits(made: PostgresHarness) -> None:
    newer = ("error_class", "source_timestamp", "headers", "generation", "epoch", "spec_digest", "replays")
    run(made, "ALTER TABLE {schema}.{sink}_dead " + ", ".join(f"DROP {name}" for name in newer))

    assert dead_letters_of(made).unfit is None
