"""The server behind a Postgres connection: a standby, a login that only reads, a restored copy."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_provider_sinks.connectors.postgres.connector import PostgresConnector
from airflow_provider_sinks.connectors.postgres.kind import PostgresKind
from airflow_provider_sinks.connectors.postgres.options import PostgresOptions
from airflow_provider_sinks.core.checks.check import Outcome
from airflow_provider_sinks.core.decision.decide import decide
from airflow_provider_sinks.core.decision.facts import Existence, Observation, Role
from airflow_provider_sinks.core.decision.start_request import StartRequest
from airflow_provider_sinks.core.decision.verdict import Verdict, VerdictKind
from airflow_provider_sinks.core.errors import UnavailableError
from airflow_provider_sinks.core.progress.witness import Witness
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.testing.connector_contract import FIRST, SECOND
from airflow_provider_sinks.testing.played_start import SINK, SOURCE, PlayedStart
from tests.contract.postgres_harness import PostgresHarness, options_of
from tests.contract.postgres_verdicts import options_of as login_of
from tests.contract.standby import Standby

WRITTEN = sorted((part, at) for epoch in (FIRST, SECOND) for part, taken in epoch.items() for at in taken)
"""What two epochs wrote."""


@pytest.fixture
def harness(postgres: Postgres) -> Iterator[PostgresHarness]:
    made = PostgresHarness(postgres)
    yield made
    for left in made.made:
        left.close()
    made.close()


def reached(harness: PostgresHarness, options: PostgresOptions) -> PostgresHarness:
    """Return the same names as they are reached by other options."""
    there = copy.copy(harness)
    there._options = options
    return there


def observed(harness: PostgresHarness) -> Observation:
    """Return what a start sees."""
    connector = PostgresConnector(harness.sink(), harness._options)
    try:
        return connector.observe(SOURCE)
    finally:
        connector.close()


def judged(
    harness: PostgresHarness, seen: Observation, accept: str | None = None, witness: Witness | None = None
) -> Verdict:
    progress, data, dead = harness.creations()
    request = StartRequest(SINK, "owner", SOURCE.name, data=data, progress=progress, dead_letter=dead)
    return decide(seen, replace(request, witness=witness), accept)


def spec_of(harness: PostgresHarness) -> SinkSpec:
    source = {"kafka": {"connection": "k", "topic": SOURCE.name, "schema": "part int, at long, what string"}}
    target = {"postgres": {"connection": "warehouse", "table": f"{harness.schema}.{SINK}"}}
    return SinkSpec.parse(
        {"name": SINK, "source": source, "select": ["part", "at", "what"], "target": target}
    )


# ---- a standby


def test_a_standby_is_waited_for_with_the_way_to_the_primary_and_taken_once_it_is_promoted(
    another_postgres: Postgres, tmp_path: Path
) -> None:
    harness = PostgresHarness(another_postgres)
    start = PlayedStart(harness).start()
    start.epoch(1, FIRST)
    start.connector.close()
    standby = Standby.of(another_postgres, tmp_path)
    try:
        assert standby.has_seen(f"{harness.schema}.{SINK}")
        there = reached(harness, options_of(standby))
        behind = observed(there)
        waits = judged(harness, behind)
        checks = [*PostgresKind().target_checks(spec_of(harness), options_of(standby))]
        with pytest.raises(UnavailableError, match="did not do what a sink asked") as caught:
            PlayedStart(there).open()
        standby.promote()
        promoted = judged(harness, observed(there))
        PlayedStart(there).start().epoch(2, SECOND)
        with standby.connect() as there.direct:
            found = there.visible()
    finally:
        for left in harness.made:
            left.close()
        standby.stop()
        harness.close()

    assert {facts.existence for facts in (behind.data, behind.progress)} == {Existence.UNKNOWN}
    assert waits.kind is VerdictKind.WAIT
    assert "could not be seen (the server is a read-only standby)" in waits.primary
    assert waits.hint == (
        "Name the primary as the host of the connection; where this one is promoted, the next try goes on."
    )
    failed = [check for check in checks if check.outcome is Outcome.FAIL]
    assert {(check.detail, check.hint, check.retryable) for check in failed} == {
        ("the server is a read-only standby", waits.hint, True)
    }
    assert "read-only transaction" in caught.value.detail
    assert promoted.goes_on, promoted
    assert found == WRITTEN


# ---- a login


def test_a_login_that_only_reads_is_waited_for_with_the_sql_that_lets_it_write(
    harness: PostgresHarness,
) -> None:
    PlayedStart(harness).start().epoch(1, FIRST)
    user = f"u{uuid.uuid4().hex[:12]}"
    harness.direct.execute(f"CREATE ROLE {user} LOGIN PASSWORD 'secret'".encode())
    harness.direct.execute(f"GRANT ALL ON SCHEMA {harness.schema} TO {user}".encode())
    harness.direct.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA {harness.schema} TO {user}".encode())
    harness.direct.execute(f"ALTER ROLE {user} SET default_transaction_read_only = on".encode())
    reader = reached(harness, login_of(harness, (user, "secret")))
    try:
        waits = judged(harness, observed(reader))
        mend, _, _ = waits.hint.replace("<user of the connection>", user).partition(";")
        harness.direct.execute(mend.encode())
        mended = judged(harness, observed(reader))
    finally:
        harness.direct.execute(f"DROP OWNED BY {user}; DROP ROLE {user}".encode())

    assert waits.kind is VerdictKind.WAIT
    assert "default_transaction_read_only is on for this login or database" in waits.primary
    assert mended.goes_on


# ---- another database system


@pytest.fixture
def copied(
    harness: PostgresHarness, another_postgres: Postgres
) -> Iterator[tuple[PostgresHarness, PostgresHarness]]:
    """A sink that has written an epoch, and a restored backup of its tables on another server."""
    start = PlayedStart(harness).start()
    start.epoch(1, FIRST)
    start.connector.close()
    other = PostgresHarness(another_postgres)
    other.direct.execute(f"ALTER SCHEMA {other.schema} RENAME TO {harness.schema}".encode())
    other.schema = harness.schema
    made = PlayedStart(other).start()
    made.connector.close()
    for table in (SINK, "_sinks_progress"):
        copy_rows(harness, other, f"{harness.schema}.{table}")
    yield harness, other
    for left in other.made:
        left.close()
    other.close()


def copy_rows(source: PostgresHarness, target: PostgresHarness, table: str) -> None:
    target.direct.execute(f"TRUNCATE {table}".encode())
    with (
        source.direct.cursor().copy(f"COPY {table} TO STDOUT".encode()) as rows,
        target.direct.cursor().copy(f"COPY {table} FROM STDIN".encode()) as taken,
    ):
        for row in rows:
            taken.write(row)


def test_a_restored_copy_on_another_server_is_refused_with_both_systems_and_goes_on_when_it_is_adopted(
    copied: tuple[PostgresHarness, PostgresHarness],
) -> None:
    _, other = copied
    seen = observed(other)

    refused = judged(other, seen)
    adopt = next(offer for offer in refused.offers if offer.name == "adopt")
    goes_on = judged(other, seen, adopt.code)
    PlayedStart(other).start().epoch(2, SECOND)

    assert refused.kind is VerdictKind.REFUSE
    recorded, found = seen.recorded[Role.DATA], seen.data.identity
    assert recorded.system != found.system
    assert "is not the one that sink" in refused.primary
    for identity in (recorded, found):
        assert f"with id {identity.id} in database {identity.system}" in refused.detail
    assert {offer.name for offer in refused.offers} == {"adopt", "start_over"}
    assert goes_on.goes_on
    assert other.visible() == WRITTEN


# ---- progress elsewhere


@pytest.fixture
def apart(harness: PostgresHarness) -> Iterator[PostgresHarness]:
    """A sink whose spec names a table of another schema for its progress."""
    harness.direct.execute(f"CREATE SCHEMA {harness.schema}_own".encode())
    harness._target = {"progress": f"{harness.schema}_own.kept"}
    yield harness
    for left in harness.made:
        left.close()
    harness.direct.execute(f"DROP SCHEMA {harness.schema}_own CASCADE".encode())


def test_progress_in_a_table_that_the_spec_names_is_kept_and_judged_there(
    apart: PostgresHarness,
) -> None:
    harness = apart
    start = PlayedStart(harness).start()
    start.epoch(1, FIRST)
    fresh = judged(harness, observed(harness))
    PlayedStart(harness).start().epoch(2, SECOND)
    harness.direct.execute(f"ALTER TABLE {harness.schema}_own.kept SET UNLOGGED".encode())
    unfit = judged(harness, observed(harness))
    harness.direct.execute(unfit.hint.encode())

    assert fresh.goes_on
    assert harness.visible() == WRITTEN
    assert observed(harness).progress.name == f"{harness.schema}_own.kept"
    assert unfit.primary == f'progress table "{harness.schema}_own.kept" is unlogged'
    assert judged(harness, observed(harness)).goes_on


def test_a_spec_that_names_another_table_of_progress_is_refused_with_its_ways_on(
    apart: PostgresHarness,
) -> None:
    """The rows that were written are known to Airflow alone then."""
    harness = apart
    start = PlayedStart(harness).start()
    start.epoch(1, FIRST)
    history = start.connector.progress()
    witness = Witness(1, 1, history.rows_total, history.epoch_ends(), start.identities, "owner", 1)
    harness._target = {}

    refused = judged(harness, observed(harness), witness=witness)

    assert refused.kind is VerdictKind.REFUSE
    assert refused.primary == f'progress of sink "{SINK}" is lost'
    assert {offer.name for offer in refused.offers} == {"resume_from_witness", "start_over"}
    harness._target = {"progress": f"{harness.schema}_own.kept"}
    assert judged(harness, observed(harness), witness=witness).goes_on
