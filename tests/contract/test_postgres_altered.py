"""Tables that somebody swaps or alters while a sink runs: no row of it ends where nobody looks for it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from airflow_provider_sinks.core.errors import JobFailedError
from airflow_provider_sinks.testing.played_start import SINK
from tests.contract.postgres_table import KEYED, UPSERT, Table, longs, with_coordinates

SWAP = "ALTER TABLE {which} RENAME TO was; CREATE TABLE {which} (LIKE {schema}.was INCLUDING ALL)"
SWAP_BACK = "ALTER TABLE {which} RENAME TO was_new; ALTER TABLE {schema}.was RENAME TO {name}"


def swap(table: Table, which: str, *, back: bool = False) -> None:
    name = which.strip("{}")
    names = {"table": SINK, "dead": f"{SINK}_dead", "progress": "_sinks_progress"}
    table.execute(SWAP_BACK if back else SWAP, which=f"{table.schema}.{names[name]}", name=names[name])


@pytest.mark.parametrize("target", [{}, UPSERT], ids=["append", "upsert"])
def test_a_table_swapped_by_rename_takes_nothing_and_goes_on_when_it_is_back(
    tables: Any, target: dict[str, Any]
) -> None:
    table = tables(KEYED, **target)
    table.epoch(1, {"id": longs(1), "what": ["a"]})
    swap(table, "table")

    with pytest.raises(JobFailedError, match="was replaced while sink"):
        table.epoch(2, {"id": longs(2), "what": ["b"]})
    assert table.rows() == []
    swap(table, "table", back=True)
    assert table.start.connector.progress().records["p0"].epoch == 1
    table.epoch(2, {"id": longs(2), "what": ["b"]})
    assert table.rows() == [(1, "a"), (2, "b")]


def test_a_swapped_table_of_dead_letters_takes_none(tables: Any) -> None:
    table = tables("id bigint CHECK (id > 0)")
    table.epoch(1, {"id": longs(-1)})
    swap(table, "dead")

    with pytest.raises(JobFailedError, match=f'table "{table.schema}.{SINK}_dead" was replaced'):
        table.epoch(2, {"id": longs(1, -2)})
    assert (table.rows(), table.dead()) == ([], [])


def test_a_swapped_progress_table_counts_nothing(tables: Any) -> None:
    table = tables("id bigint")
    table.epoch(1, {"id": longs(1)})
    swap(table, "progress")
    table.execute("INSERT INTO {schema}._sinks_progress SELECT * FROM {schema}.was")

    with pytest.raises(JobFailedError, match=r'_sinks_progress" was replaced'):
        table.epoch(2, {"id": longs(2)})
    assert table.rows() == [(1,)]


def test_an_epoch_of_letters_only_is_not_counted_for_another_table(tables: Any) -> None:
    table = tables("id bigint CHECK (id > 0)")
    swap(table, "table")

    with pytest.raises(JobFailedError, match="was replaced while sink"):
        table.epoch(1, {"id": longs(-1)})
    assert table.dead() == []


def test_a_table_that_has_taken_rows_cannot_be_swapped_before_their_commit(tables: Any) -> None:
    table = tables("id bigint CHECK (id > 0)")
    writer = table.open_writer()
    writer.write_batch(with_coordinates({"id": longs(1, -1)}, 0))
    writer.flush()
    table.execute("SET lock_timeout = '100ms'")

    with pytest.raises(psycopg.errors.LockNotAvailable):
        swap(table, "table")


def test_a_table_that_is_gone_ends_the_run(tables: Any) -> None:
    table = tables("id bigint")
    writer = table.open_writer()
    table.execute("ALTER TABLE {table} RENAME TO away")

    with pytest.raises(JobFailedError, match="and now it has none"):
        writer.pre_commit(table.start.record(1, {0: 0, 1: 0}, {0: 5, 1: 0}))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("ALTER id TYPE double precision", "Column 'id' is another one."),
        ("ALTER id TYPE numeric", "Column 'id' is another one."),
        ("ALTER at TYPE timestamptz", "Column 'at' is another one."),
        ("ALTER price TYPE numeric(10,1)", "Column 'price' is another one."),
        ("ALTER what SET NOT NULL, ALTER what DROP DEFAULT", "Column 'what' takes no null"),
        ("ADD due date NOT NULL", "Column 'due' takes no null, has no default, and is not written."),
    ],
)
def test_an_altered_table_takes_no_rows_by_what_it_was(tables: Any, change: str, why: str) -> None:
    columns = "id bigint, at timestamp, price numeric(10,2), what text DEFAULT 'x'"
    table = tables(columns, columns=("id", "at", "price"))
    given = {
        "id": longs(7),
        "at": pa.array([0], pa.timestamp("us")),
        "price": pa.array([Decimal("1.25")], pa.decimal128(10, 2)),
    }
    table.execute("ALTER TABLE {table} {change}", change=change)

    with pytest.raises(JobFailedError, match="was altered while sink") as caught:
        table.epoch(1, given)
    assert why in caught.value.detail
    assert (table.rows(), table.dead()) == ([], [])


def test_a_retyped_column_of_dead_letters_takes_none(tables: Any) -> None:
    table = tables("id bigint CHECK (id > 0)")
    table.execute("ALTER TABLE {dead} ALTER source_offset TYPE double precision")

    with pytest.raises(JobFailedError, match="Column 'source_offset' is another one"):
        table.epoch(1, {"id": longs(-1)})
    assert table.dead() == []


@pytest.mark.parametrize(
    "change",
    ["ADD note text", "ADD note text NOT NULL DEFAULT ''", "ADD CHECK (id > 0)", "SET (fillfactor = 50)"],
)
def test_what_concerns_no_written_column_may_be_altered(tables: Any, change: str) -> None:
    table = tables("id bigint, other text", columns=("id",))
    table.execute("ALTER TABLE {table} {change}", change=change)
    table.epoch(1, {"id": longs(1)})
    assert table.rows("id") == [(1,)]
