"""A database that is put back to before the run that writes to it: that is no newer start."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from airflow_provider_sinks.core.decision.decide import decide
from airflow_provider_sinks.core.decision.start_request import StartRequest
from airflow_provider_sinks.core.errors import FencedError, RefusedError
from airflow_provider_sinks.core.progress.witness import Witness
from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.testing.played_start import SINK, SOURCE, PlayedStart
from tests.contract.postgres_harness import PostgresHarness
from tests.contract.postgres_table import Table, longs, with_coordinates

ROLLED_BACK = r'^progress of sink "\w+" was rolled back while the sink ran'
EMPTIED = "TRUNCATE {schema}._sinks_progress;"
PUT_BACK = "INSERT INTO {schema}._sinks_progress SELECT * FROM {schema}.saved"
RESTORED = EMPTIED + PUT_BACK


@pytest.fixture(params=[1, 2], ids=["the-run-before", "the-one-before-that"])
def table(tables: Any, request: pytest.FixtureRequest) -> Table:
    """Further runs have taken the sink; the table of progress before them was kept aside."""
    made: Table = tables("id bigint")
    made.epoch(1, {"id": longs(1)})
    made.execute("CREATE TABLE {schema}.saved AS TABLE {schema}._sinks_progress")
    for _ in range(request.param):
        made.start = PlayedStart(made).start()
    return made


@pytest.fixture
def harness(postgres: Postgres) -> Iterator[PostgresHarness]:
    made = PostgresHarness(postgres)
    yield made
    for left in made.made:
        left.close()
    made.close()


def look(table: Table) -> None:
    table.start.connector.demand_in_force()


def announce(table: Table) -> None:
    table.start.connector.announce(table.start.announcement)


def open_writer(table: Table) -> None:
    table.open_writer()


@pytest.mark.parametrize("act", [look, announce, open_writer])
def test_a_run_whose_predecessor_is_in_force_again_was_rolled_back(
    act: Callable[[Table], None], table: Table
) -> None:
    table.execute(RESTORED)

    with pytest.raises(RefusedError, match=ROLLED_BACK):
        act(table)


@pytest.mark.parametrize("act", [look, open_writer])
def test_a_run_that_nobody_knows_any_more_was_rolled_back(act: Callable[[Table], None], table: Table) -> None:
    table.execute(EMPTIED)

    with pytest.raises(RefusedError, match=ROLLED_BACK) as caught:
        act(table)
    assert caught.value.detail.endswith("the progress table knows of none.")


def test_no_run_is_announced_over_progress_that_is_gone(table: Table) -> None:
    table.execute(EMPTIED)

    with pytest.raises(RefusedError, match=ROLLED_BACK):
        announce(table)
    assert table.execute("SELECT writer FROM {schema}._sinks_progress") == []


@pytest.mark.parametrize("act", [look, announce])
def test_a_driver_whose_own_commits_are_forgotten_was_rolled_back(
    act: Callable[[Table], None], table: Table
) -> None:
    table.execute("CREATE TABLE {schema}.own AS TABLE {schema}._sinks_progress")
    table.epoch(2, {"id": longs(2)})
    look(table)
    table.execute(EMPTIED + PUT_BACK.replace("saved", "own"))

    with pytest.raises(RefusedError, match=ROLLED_BACK):
        act(table)


@pytest.mark.parametrize("harm", [RESTORED, EMPTIED], ids=["restored", "emptied"])
def test_a_writer_commits_nothing_over_what_was_rolled_back(harm: str, table: Table) -> None:
    writer = table.open_writer()
    writer.write_batch(with_coordinates({"id": longs(2)}, 2000))
    writer.flush()
    table.execute(harm)

    with pytest.raises(RefusedError, match=ROLLED_BACK):
        writer.pre_commit(table.start.record(2, {0: 2000, 1: 0}, {0: 2001, 1: 0}, rows=1, rows_total=2))
    assert table.rows() == [(1,)]


def test_rows_lost_with_their_records_are_written_once_by_going_on_from_the_records(
    harness: PostgresHarness,
) -> None:
    start = PlayedStart(harness).start()
    start.epoch(1, {0: range(10), 1: range(10)})
    names = [f"{harness.schema}.{table}" for table in (SINK, "_sinks_progress")]
    for name in names:
        harness.direct.execute(f"CREATE TABLE {name}_saved AS TABLE {name}".encode())
    start.epoch(2, {0: range(10, 20), 1: range(10, 10)})
    asked = request_of(harness, witness_of(start))
    for name in names:
        back = f"TRUNCATE {name}; INSERT INTO {name} SELECT * FROM {name}_saved"  # noqa: S608
        harness.direct.execute(back.encode())

    seen = start.connector.observe(SOURCE)
    offer = decide(seen, asked).offers[0]
    verdict = decide(seen, asked, offer.code)

    assert (offer.name, verdict.generation) == ("resume_from_records", 2)
    assert verdict.positions == {0: 10, 1: 10}
    PlayedStart(harness, generation=verdict.generation).start().epoch(1, {0: range(10, 20), 1: range(10, 10)})
    assert harness.visible() == [*((0, at) for at in range(20)), *((1, at) for at in range(10))]


def witness_of(start: PlayedStart) -> Witness:
    """Return what Airflow knows while the records are whole."""
    history = start.connector.progress()
    rows, offsets = history.rows_total, history.epoch_ends()
    return Witness(1, history.epoch, rows, offsets, start.identities, "owner", 1)


def request_of(harness: PostgresHarness, witness: Witness) -> StartRequest:
    progress, data, dead = harness.creations()
    return StartRequest(
        SINK, "owner", SOURCE.name, data=data, progress=progress, dead_letter=dead, witness=witness
    )


@pytest.mark.parametrize("act", [look, announce])
def test_who_was_seen_to_commit_more_than_a_newer_start_knows_was_rolled_back(
    act: Callable[[Table], None], table: Table
) -> None:
    """Nobody keeps the witness of a driver that was fenced, and what is lost would be forgotten."""
    table.epoch(2, {"id": longs(2)})
    look(table)
    table.execute(RESTORED)
    PlayedStart(table).start()

    with pytest.raises(RefusedError, match=ROLLED_BACK):
        act(table)


def test_who_is_overtaken_after_it_was_rolled_back_is_left_to_the_newer_start(table: Table) -> None:
    overtaken = table.start.connector
    table.execute(RESTORED)
    PlayedStart(table).start()

    with pytest.raises(FencedError, match="a newer start"):
        overtaken.demand_in_force()


@pytest.fixture
def ahead(tables: Any) -> Table:
    """The clock of the server was a day ahead when the first run was announced, and went back since."""
    made: Table = tables("id bigint")
    made.execute(
        "UPDATE {schema}._sinks_progress SET changed_at = now() + interval '1 day' WHERE writer = 'driver'"
    )
    look(made)
    return made


def test_a_newer_start_is_told_as_one_by_a_clock_that_went_back(ahead: Table) -> None:
    older = ahead.start.connector
    PlayedStart(ahead).start()

    with pytest.raises(FencedError, match="a newer start"):
        older.demand_in_force()


def test_a_predecessor_that_is_in_force_again_is_told_as_one_by_a_clock_that_went_back(ahead: Table) -> None:
    """Else the run would leave the sink to a newer start that nobody made."""
    ahead.execute("CREATE TABLE {schema}.saved AS TABLE {schema}._sinks_progress")
    ahead.start = PlayedStart(ahead).start()
    ahead.execute(RESTORED)

    with pytest.raises(RefusedError, match=ROLLED_BACK):
        look(ahead)
