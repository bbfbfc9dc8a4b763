"""A reset of a Postgres table is one transaction with the look who holds the sink."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from airflow_provider_sinks.connectors.postgres import resetting
from airflow_provider_sinks.core.decision.facts import Existence, Role
from airflow_provider_sinks.core.errors import FencedError, RefusedError
from airflow_provider_sinks.core.lifecycle.steps import DeleteOutput, EmptyOutput
from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.testing.connector_contract import FIRST, SECOND
from airflow_provider_sinks.testing.played_start import SOURCE, PlayedStart, rows_of
from tests.contract.postgres_harness import PostgresHarness


@pytest.fixture
def harness(postgres: Postgres) -> Iterator[PostgresHarness]:
    made = PostgresHarness(postgres)
    PlayedStart(made).start().epoch(1, FIRST, bad=[3])
    yield made
    for left in made.made:
        left.close()
    made.close()


@pytest.mark.parametrize("act", [EmptyOutput, DeleteOutput])
def test_nobody_takes_the_sink_while_its_table_is_emptied_or_dropped(
    harness: PostgresHarness, act: type[EmptyOutput | DeleteOutput], monkeypatch: pytest.MonkeyPatch
) -> None:
    start = PlayedStart(harness).start()
    progress = harness.sink().target.progress_table
    demand = resetting._demand_looked_at

    def behind_the_look(*given: Any) -> None:
        demand(*given)
        with pytest.raises(psycopg.errors.LockNotAvailable):
            harness.direct.execute(
                f"SELECT FROM {progress} WHERE writer = 'driver' FOR UPDATE NOWAIT".encode()
            )

    monkeypatch.setattr(resetting, "_demand_looked_at", behind_the_look)
    start.connector.reset(act("data table", start.connector.observe(SOURCE).data))

    size = start.connector.observe(SOURCE).data.size_bytes
    assert not size


@pytest.mark.parametrize(
    ("act", "depends"),
    [
        (EmptyOutput, "CREATE TABLE {0}_of (id bigint, FOREIGN KEY (id) REFERENCES {0} (id))"),
        (DeleteOutput, "CREATE VIEW {0}_of AS SELECT * FROM {0}"),
    ],
    ids=["a foreign key", "a view"],
)
def test_what_something_else_depends_on_is_refused_for_good(
    harness: PostgresHarness, act: type[EmptyOutput | DeleteOutput], depends: str
) -> None:
    start, table = PlayedStart(harness).start(), harness.sink().target.table
    harness.direct.execute(f"ALTER TABLE {table} ADD COLUMN id bigint UNIQUE".encode())
    harness.direct.execute(depends.format(table).encode())
    before = harness.visible()

    with pytest.raises(RefusedError, match="something else depends on it") as refused:
        start.connector.reset(act("data table", start.connector.observe(SOURCE).data))

    assert "orders_of" in refused.value.detail
    assert not refused.value.retryable
    assert harness.visible() == before


def test_a_drop_goes_on_behind_the_progress_that_it_has_dropped(harness: PostgresHarness) -> None:
    dropping = PlayedStart(harness).open()
    seen = dropping.connector.observe(SOURCE).resources()

    for role in (Role.DATA, Role.PROGRESS, Role.DEAD_LETTER):
        dropping.connector.reset(DeleteOutput("table", seen[role]))

    left = dropping.connector.observe(SOURCE).resources()
    assert {facts.existence for role, facts in left.items() if role is not Role.SOURCE} == {Existence.MISSING}


def test_a_drop_that_wakes_behind_a_new_beginning_takes_nothing_away(harness: PostgresHarness) -> None:
    """Its progress was dropped by another one, and the sink has begun anew."""
    late = PlayedStart(harness).open()
    step = EmptyOutput("data table", late.connector.observe(SOURCE).data)
    harness.direct.execute(f"DROP TABLE {harness.sink().target.progress_table}".encode())
    PlayedStart(harness).start().epoch(1, SECOND)
    before = harness.visible()

    with pytest.raises(FencedError):
        late.connector.reset(step)

    assert harness.visible() == before
    assert set(rows_of(SECOND)) <= set(before)
