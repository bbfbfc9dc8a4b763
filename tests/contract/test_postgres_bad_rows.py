"""Rows that a table does not take: how they are found among many, and for what reasons one is set aside."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from airflow_provider_sinks.connectors.postgres.copying import CopyConnection
from airflow_provider_sinks.core.errors import UnavailableError
from tests.contract.postgres_table import UPSERT, longs, with_coordinates

MANY = 20_000


def test_bad_rows_of_many_are_found_without_reading_all_rows_for_each(tables: Any) -> None:
    table = tables("id bigint PRIMARY KEY CHECK (id % 997 <> 0)", **UPSERT)
    writer = table.open_writer()
    writer.write_batch(with_coordinates({"id": longs(*range(1, MANY + 1))}, 0))
    writer.flush()

    read = "SELECT seq_tup_read FROM pg_stat_xact_all_tables WHERE relname = 'sinks_stage'"
    assert writer._live.ask(read)[0][0] < 5 * MANY
    writer.pre_commit(table.start.record(1, {0: 0, 1: 0}, {0: MANY, 1: 0}, rows=MANY))
    writer.commit_epoch()
    assert writer.last.dead_total == MANY // 997
    assert table.rows("count(*)") == [(MANY - MANY // 997,)]


def test_no_statement_looks_for_all_bad_rows(tables: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table, said = tables("id bigint PRIMARY KEY CHECK (id > 1)", **UPSERT), []
    run = CopyConnection.run
    monkeypatch.setattr(CopyConnection, "run", lambda self, text: (said.append(text), run(self, text))[1])
    table.epoch(1, {"id": longs(*range(MANY))})

    assert sum(text.strip().startswith("DO") for text in said) == 5
    assert [offset for offset, _, _ in table.dead()] == [1000, 1001]


def test_a_statement_that_takes_too_long_names_the_options_that_help(tables: Any) -> None:
    slow = "id bigint PRIMARY KEY CHECK (pg_sleep(60) IS NOT NULL)"
    table = tables(slow, timeout=timedelta(seconds=2), **UPSERT)

    with pytest.raises(UnavailableError, match="statement timeout") as caught:
        table.epoch(1, {"id": longs(1)})
    assert "`transaction_timeout`" in caught.value.hint
    assert "`max_offsets_per_epoch`" in caught.value.hint
