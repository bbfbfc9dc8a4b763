"""Tables of an administrator that would lose, double or never take what a sink writes: told before."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from psycopg import sql

from airflow_provider_sinks.connectors.postgres.creation import dead_letter_table
from airflow_provider_sinks.connectors.postgres.kind import PostgresKind
from airflow_provider_sinks.core.checks.check import Outcome
from airflow_provider_sinks.core.decision.verdict import VerdictKind
from airflow_provider_sinks.core.evolution import Compatible, Incompatible
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.testing.played_start import SINK
from tests.contract.evolving_start import EvolvingStart
from tests.contract.postgres_harness import PostgresHarness
from tests.contract.postgres_table import KEYED, UPSERT
from tests.contract.postgres_verdicts import dead_letters_of, run, verdict_of

OUTPUT = {"fields": [{"name": "id", "type": "long"}, {"name": "what", "type": "string"}]}
LATER = "DROP CONSTRAINT _sinks_progress_pkey, ADD PRIMARY KEY (sink, writer) DEFERRABLE"


@pytest.mark.parametrize(
    ("harm", "told"),
    [
        (f"ALTER TABLE {{progress}} {LATER}", "cannot be written by its key"),
        ("CREATE RULE quiet AS ON UPDATE TO {progress} DO INSTEAD NOTHING", "has rule quiet on UPDATE"),
    ],
    ids=["deferrable", "rule"],
)
def test_a_progress_table_whose_rows_cannot_be_changed_is_refused_with_the_sql_that_mends_it(
    made: PostgresHarness, harm: str, told: str
) -> None:
    run(made, harm)
    refused = verdict_of(made)

    assert refused.kind is VerdictKind.REFUSE
    assert told in refused.primary
    made.direct.execute(refused.hint.encode())
    assert verdict_of(made).goes_on


def test_a_progress_table_with_a_column_that_postgres_generates_is_none(made: PostgresHarness) -> None:
    run(made, "ALTER TABLE {progress} DROP epoch, ADD epoch bigint GENERATED ALWAYS AS (1) STORED")

    assert "has a column epoch that Postgres generates" in verdict_of(made).primary


@pytest.mark.parametrize("table", ["{progress}", "{schema}.{sink}_dead"], ids=["progress", "dead letters"])
def test_a_table_whose_policies_bind_the_login_is_refused(made: PostgresHarness, table: str) -> None:
    user = f"u{uuid.uuid4().hex[:12]}"
    made.direct.execute(f"CREATE ROLE {user} LOGIN PASSWORD 'secret'".encode())
    run(made, f"GRANT USAGE ON SCHEMA {{schema}} TO {user}")
    run(made, f"GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA {{schema}} TO {user}")
    run(made, f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
    try:
        bound, owner = verdict_of(made, (user, "secret")), verdict_of(made)
    finally:
        made.direct.execute(f"DROP OWNED BY {user}; DROP ROLE {user}".encode())

    assert bound.kind is VerdictKind.REFUSE
    assert bound.primary.endswith("is under row-level security for this login")
    assert owner.goes_on


def test_a_partition_that_a_crash_empties_keeps_no_dead_letters(made: PostgresHarness) -> None:
    partitioned(made, "CREATE UNLOGGED TABLE {schema}.part PARTITION OF {schema}.{sink}_dead DEFAULT")

    unfit = dead_letters_of(made).unfit

    assert unfit is not None
    assert unfit.what == f"has an unlogged partition, {made.schema}.part"
    made.direct.execute(unfit.repair.encode())
    assert dead_letters_of(made).unfit is None


def test_a_partition_on_another_server_keeps_no_dead_letters(made: PostgresHarness) -> None:
    """That server would commit them by itself, and once more where this one fails behind it."""
    wrapper = f"w{made.schema}"
    run(
        made, f"CREATE FOREIGN DATA WRAPPER {wrapper}; CREATE SERVER {wrapper} FOREIGN DATA WRAPPER {wrapper}"
    )
    far = (
        f"CREATE FOREIGN TABLE {{schema}}.far PARTITION OF {{schema}}.{{sink}}_dead DEFAULT SERVER {wrapper}"
    )
    try:
        partitioned(made, far)
        unfit = dead_letters_of(made).unfit
        assert unfit is not None
        made.direct.execute(unfit.repair.encode())
        mended = dead_letters_of(made).unfit
    finally:
        run(made, f"DROP FOREIGN DATA WRAPPER {wrapper} CASCADE")

    assert unfit.what == f"has a partition on another server, {made.schema}.far"
    assert mended is None


@pytest.mark.parametrize("target", [{}, UPSERT], ids=["append", "upsert"])
def test_a_rule_that_not_every_statement_follows_is_refused(tables: Any, target: dict[str, Any]) -> None:
    """``COPY`` would pass it by, and the search for the bad row of a batch would lose the good ones to it."""
    table = tables(KEYED, **target)
    table.execute("CREATE RULE quiet AS ON INSERT TO {table} DO INSTEAD NOTHING")

    found = EvolvingStart(table).evolvable().diff(OUTPUT)

    assert isinstance(found, Incompatible)
    (problem,) = found.problems
    assert problem.what.startswith("rule quiet acts on INSERT: ")
    table.execute("DROP RULE quiet ON {table}")
    assert EvolvingStart(table).evolvable().diff(OUTPUT) == Compatible()


def test_a_partition_that_a_crash_empties_takes_no_rows(tables: Any) -> None:
    table = tables(KEYED)
    table.execute("DROP TABLE {table}; CREATE TABLE {table} (id bigint, what text) PARTITION BY LIST (id)")
    table.execute("CREATE UNLOGGED TABLE {schema}.part PARTITION OF {table} DEFAULT")

    found = EvolvingStart(table).evolvable().diff(OUTPUT)

    assert isinstance(found, Incompatible)
    (problem,) = found.problems
    assert problem.what.startswith(f"partition {table.schema}.part is unlogged")
    table.execute(problem.hint)
    assert EvolvingStart(table).evolvable().diff(OUTPUT) == Compatible()


def partitioned(harness: PostgresHarness, part: str) -> None:
    """Make the table of dead letters anew, in partitions."""
    run(harness, "DROP TABLE {schema}.{sink}_dead")
    made = dead_letter_table(f"{harness.schema}.{SINK}_dead").statement()
    harness.direct.execute(made + sql.SQL(" PARTITION BY LIST (sink)"))
    run(harness, part)


def test_a_validation_tells_of_a_table_that_a_start_would_refuse(made: PostgresHarness) -> None:
    run(made, "ALTER TABLE {schema}.{sink}_dead DROP replays, ADD replays int GENERATED ALWAYS AS (0) STORED")
    source = {"kafka": {"connection": "kafka", "topic": "orders", "schema": "part int, at long, what string"}}
    target = {"postgres": {"connection": "warehouse", "table": f"{made.schema}.{SINK}"}}
    dead = {"table": f"{made.schema}.{SINK}_dead"}
    whole = {"name": SINK, "source": source, "select": ["part", "at", "what"], "target": target}
    spec = SinkSpec.parse({**whole, "dead_letter": dead})

    checks = PostgresKind().target_checks(spec, made._options)

    (failed,) = [check for check in checks if check.outcome is not Outcome.PASS]
    assert failed.outcome is Outcome.FAIL
    assert "Column replays is generated by Postgres." in failed.detail
    assert "DROP replays, ADD replays integer" in failed.hint
