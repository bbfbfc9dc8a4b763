"""Triggers that take a change back or write another one, on the tables that are a sink's own."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_sinks.connectors.postgres.writer import PostgresEpochWriter
from airflow_provider_sinks.core.decision.verdict import VerdictKind
from airflow_provider_sinks.core.errors import JobFailedError, UnavailableError
from airflow_provider_sinks.core.progress.record import ProgressRecord
from tests.contract.postgres_harness import PostgresHarness
from tests.contract.postgres_table import Table, longs, with_coordinates
from tests.contract.postgres_verdicts import run, verdict_of

TOLD = r'^table ".*_sinks_progress" got a trigger while sink "orders" ran'
FUNCTION = "CREATE FUNCTION {{schema}}.held() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {does} END $$;"
TRIGGER = "CREATE TRIGGER held {when} ON {on} FOR EACH ROW EXECUTE FUNCTION {{schema}}.held()"
ON_PROGRESS = TRIGGER.format(when="BEFORE UPDATE", on="{schema}._sinks_progress")


@pytest.mark.parametrize(
    ("on", "when"),
    [
        ("{schema}._sinks_progress", "BEFORE INSERT"),
        ("{schema}._sinks_progress", "BEFORE UPDATE OR DELETE"),
        ("{schema}.{sink}_dead", "BEFORE INSERT"),
    ],
)
def test_a_trigger_before_rows_of_the_sink_s_own_tables_is_refused_with_the_sql_that_mends_it(
    made: PostgresHarness, on: str, when: str
) -> None:
    run(made, FUNCTION.format(does="RETURN NULL;") + TRIGGER.format(when=when, on=on))

    refused = verdict_of(made)

    assert refused.kind is VerdictKind.REFUSE
    assert "has trigger held ON" in refused.primary
    made.direct.execute(refused.hint.encode())
    assert verdict_of(made).goes_on


@pytest.mark.parametrize(
    ("on", "when"),
    [("{schema}._sinks_progress", "AFTER INSERT OR UPDATE"), ("{schema}.{sink}_dead", "BEFORE UPDATE")],
)
def test_a_trigger_that_cannot_drop_what_a_sink_writes_is_in_nobody_s_way(
    made: PostgresHarness, on: str, when: str
) -> None:
    run(made, FUNCTION.format(does="RETURN NULL;") + TRIGGER.format(when=when, on=on))

    assert verdict_of(made).goes_on


def test_a_writer_whose_row_cannot_be_taken_any_more_is_no_twin(tables: Any) -> None:
    table = tables("id bigint")
    table.execute(FUNCTION.format(does="RETURN NULL;") + ON_PROGRESS)

    with pytest.raises(JobFailedError, match=TOLD) as caught:
        table.open_writer()

    demand_mended(caught.value, table)


def test_a_commit_that_is_taken_back_is_told_and_nothing_of_it_is_visible(tables: Any) -> None:
    table = tables("id bigint")
    writer, record = written(table)
    table.execute(FUNCTION.format(does="RETURN NULL;") + ON_PROGRESS)

    with pytest.raises(JobFailedError, match=TOLD) as caught:
        writer.pre_commit(record)

    assert table.rows() == []
    demand_mended(caught.value, table)


def test_a_writer_whose_holder_is_written_anew_by_a_trigger_is_no_twin(tables: Any) -> None:
    table = tables("id bigint")
    table.execute(FUNCTION.format(does="NEW.holder := 'somebody'; RETURN NEW;") + ON_PROGRESS)
    writer, record = written(table)

    with pytest.raises(JobFailedError, match=TOLD) as caught:
        writer.pre_commit(record)

    assert table.rows() == []
    demand_mended(caught.value, table)


def test_a_twin_is_told_as_one(tables: Any) -> None:
    table = tables("id bigint")
    writer, record = written(table)
    table.execute("UPDATE {schema}._sinks_progress SET holder = 'another attempt'")

    with pytest.raises(UnavailableError, match="was fenced by another attempt"):
        writer.pre_commit(record)


def written(table: Table) -> tuple[PostgresEpochWriter, ProgressRecord]:
    """Return a writer that has taken a row, and its record."""
    writer = table.open_writer()
    writer.write_batch(with_coordinates({"id": longs(2)}, 2000))
    writer.flush()
    return writer, table.start.record(2, {0: 2000, 1: 0}, {0: 2001, 1: 0}, rows=1, rows_total=2)


def demand_mended(error: JobFailedError, table: Table) -> None:
    """See that the next start refuses what it names, and that what it says mends that."""
    mend, _, _ = error.hint.partition(";")
    assert verdict_of(table).kind is VerdictKind.REFUSE
    table.execute(mend)
    assert verdict_of(table).goes_on
