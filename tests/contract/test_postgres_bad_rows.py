"""Rows that a table does not take: how they are found among many, and for what reasons one is set aside."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from airflow_provider_sinks.connectors.epoch_writer import RejectedRowError
from airflow_provider_sinks.connectors.postgres.copying import CopyConnection
from airflow_provider_sinks.connectors.postgres.stage import Stage
from airflow_provider_sinks.core.errors import JobFailedError, UnavailableError
from tests.contract.postgres_table import UPSERT, longs, with_coordinates

MANY = 20_000


def test_bad_rows_of_many_are_found_without_reading_all_rows_for_each(tables: Any) -> None:
    table = tables("id bigint PRIMARY KEY CHECK (id % 997 <> 0)", **UPSERT)
    writer = table.open_writer()
    writer.write_batch(with_coordinates({"id": longs(*range(1, MANY + 1))}, 0))
    writer.flush()

    read = "SELECT seq_tup_read FROM pg_stat_xact_all_tables WHERE relname LIKE 'sinks_stage%'"
    assert sum(count for (count,) in writer._live.ask(read)) < 5 * MANY
    writer.pre_commit(table.start.record(1, {0: 0, 1: 0}, {0: MANY, 1: 0}, rows=MANY))
    writer.commit_epoch()
    assert writer.last.dead_total == MANY // 997
    assert table.rows("count(*)") == [(MANY - MANY // 997,)]


def test_no_statement_looks_for_all_bad_rows(tables: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table, said = tables("id bigint PRIMARY KEY CHECK (id > 1)", **UPSERT), list[str]()
    run = CopyConnection.run

    def listening(self: CopyConnection, text: str) -> int:
        said.append(text)
        return run(self, text)

    monkeypatch.setattr(CopyConnection, "run", listening)
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


@pytest.mark.parametrize(
    ("does", "why"),
    [
        ("RAISE EXCEPTION 'not three'", "not three"),
        ("SELECT 1 INTO STRICT NEW.id WHERE false", "query returned no rows"),
        ("SELECT 1 INTO STRICT NEW.id FROM generate_series(1, 2)", "query returned more than one row"),
        ("ASSERT NEW.id <> 3, 'asserted'", "asserted"),
        ("RAISE EXCEPTION 'of nobody' USING ERRCODE = '45000'", "of nobody"),
        ("RAISE EXCEPTION 'of its own' USING ERRCODE = 'SHOP1'", "of its own"),
    ],
)
def test_whatever_a_trigger_raises_is_of_its_row(tables: Any, does: str, why: str) -> None:
    table = tables("id bigint")
    _before_each_row(table, f"IF NEW.id = 3 THEN {does}; END IF; RETURN NEW;")
    table.epoch(1, {"id": longs(1, 2, 3, 4)})
    assert (table.rows(), table.dead()) == ([(1,), (2,), (4,)], [(1002, why, b"raw")])


def test_what_is_the_server_s_own_in_one_row_sets_nothing_aside(tables: Any) -> None:
    table = tables("id bigint")
    full = "RAISE 'disk full' USING ERRCODE = CASE NEW.id WHEN 1 THEN '45000' ELSE '53100' END;"
    _before_each_row(table, full)
    with pytest.raises(UnavailableError, match="disk full"):
        table.epoch(1, {"id": longs(1, 2)})
    assert table.dead() == []


@pytest.mark.parametrize("kind", ["tsvector", "tsquery"])
def test_a_text_that_a_type_calls_a_syntax_error_is_of_its_row(tables: Any, kind: str) -> None:
    table = tables(f"id bigint, v {kind}")
    table.epoch(1, {"id": longs(1, 2, 3), "v": ["'a'", "':", "'b'"]})
    assert (table.rows("id"), [offset for offset, _, _ in table.dead()]) == ([(1,), (3,)], [1001])


def test_a_syntax_error_that_no_text_is_the_cause_of_sets_nothing_aside(tables: Any) -> None:
    table = tables("id bigint, v uuid")
    _before_each_row(table, "EXECUTE 'SELEC'; RETURN NEW;")
    with pytest.raises(UnavailableError, match="syntax error at or near"):
        table.epoch(1, {"id": longs(1, 2), "v": [None, None]})
    assert (table.rows(), table.dead()) == ([], [])


def test_a_stage_that_another_sink_left_on_the_same_backend_is_left_alone(tables: Any) -> None:
    table, other = (
        tables("id bigint PRIMARY KEY", **UPSERT),
        tables("name text PRIMARY KEY", mode="upsert", key=("name",)),
    )
    writer = table.open_writer()
    of_other = replace(writer._plan, columns=other.start.factory.plan.columns, key=("name",))
    Stage(writer._live, of_other).begin()

    writer.write_batch(with_coordinates({"id": longs(1)}, 0))
    writer.flush()
    writer.pre_commit(table.start.record(1, {0: 0, 1: 0}, {0: 1, 1: 0}, rows=1))
    writer.commit_epoch()
    assert table.rows() == [(1,)]


def _before_each_row(table: Any, does: str) -> None:
    """Have a trigger of the table do something before each row that comes."""
    table.execute(
        f"CREATE FUNCTION {{schema}}.no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {does} END $$"
    )
    table.execute("CREATE TRIGGER t BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION {schema}.no()")


@pytest.mark.parametrize("target", [{}, UPSERT], ids=["append", "upsert"])
@pytest.mark.parametrize(
    ("refuses", "why"),
    [
        ("ADD CONSTRAINT has_key CHECK (key IS NOT NULL)", 'violates check constraint "has_key"'),
        ("ALTER key SET DEFAULT '', ALTER key SET NOT NULL", 'null value in column "key"'),
    ],
    ids=["check", "not_null"],
)
def test_a_table_that_refuses_a_dead_letter_ends_the_sink_for_good(
    tables: Any, target: dict[str, Any], refuses: str, why: str
) -> None:
    table = tables("id bigint PRIMARY KEY CHECK (id > 0)", **target)
    table.execute("ALTER TABLE {dead} {refuses}", refuses=refuses)

    with pytest.raises(RejectedRowError, match="does not take a dead letter of sink") as caught:
        table.epoch(1, {"id": longs(1, -1)})
    assert (caught.value.retryable, caught.value.row) == (False, None)
    assert why in caught.value.detail
    assert "`dead_letter`" in caught.value.hint
    assert (table.rows(), table.dead()) == ([], [])


def test_a_table_of_dead_letters_that_was_altered_and_refuses_one_is_compared_anew(tables: Any) -> None:
    table = tables("id bigint CHECK (id > 0)")
    table.execute("ALTER TABLE {dead} ALTER source_offset TYPE integer")

    with pytest.raises(JobFailedError, match="Column 'source_offset' is another one"):
        table.epoch(1, {"id": longs(-1)})
    assert table.dead() == []
