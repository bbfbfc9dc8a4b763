from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_sinks.connectors import rows
from airflow_provider_sinks.connectors.epoch_writer import RejectedRowError
from tests.contract.postgres_table import KEYED, UPSERT, flags, longs, with_coordinates


def test_the_newest_row_of_a_key_wins_within_an_epoch_and_over_epochs(tables: Any) -> None:
    table = tables(KEYED, **UPSERT)
    table.epoch(1, {"id": longs(2, 1, 2), "what": ["a", "b", "c"]}, {"id": longs(1), "what": ["d"]})
    assert table.rows() == [(1, "d"), (2, "c")]
    table.epoch(2, {"id": longs(3, 2), "what": ["e", "f"]})
    assert table.rows() == [(1, "d"), (2, "f"), (3, "e")]


def test_columns_that_are_not_written_keep_their_values(tables: Any) -> None:
    table = tables(f"{KEYED}, note text DEFAULT 'by hand'", columns=("id", "what"), **UPSERT)
    table.execute("INSERT INTO {table} VALUES (1, 'old', 'kept')")
    table.epoch(1, {"id": longs(1, 2), "what": ["new", "added"]})
    assert table.rows() == [(1, "new", "kept"), (2, "added", "by hand")]


@pytest.mark.parametrize(("tombstones", "left"), [("delete", [2, 3]), ("ignore", [1, 2, 3])])
def test_a_row_of_nulls_deletes_its_key_where_that_is_wanted(
    tables: Any, tombstones: str, left: list[int]
) -> None:
    table = tables(KEYED, tombstones=tombstones, **UPSERT)
    table.epoch(1, {"id": longs(1, 2), "what": ["a", "b"]})
    table.epoch(2, {"id": longs(1, 3, 3, 2, 2), "what": [None, None, "back", "x", "y"]})
    assert [row[0] for row in table.rows()] == left
    assert table.rows()[-1] == (3, "back")


def test_a_row_of_nulls_is_a_row_where_deletes_say_so_themselves(tables: Any) -> None:
    table = tables(KEYED, has_deletes=True, tombstones="delete", **UPSERT)
    table.epoch(1, {"id": longs(1, 2, 3), "what": [None, "b", "c"], rows.DELETED: flags(False, False, False)})
    assert table.rows() == [(1, None), (2, "b"), (3, "c")]
    gone = {"id": longs(2, 3, 3, 4), "what": [None] * 4, rows.DELETED: flags(True, True, False, True)}
    taken, _ = table.epoch(2, gone)
    assert table.rows() == [(1, None), (3, None)]
    assert taken.rows == 4


def test_rows_of_a_table_that_is_all_key_are_deleted_where_they_say_so(tables: Any) -> None:
    table = tables("id bigint PRIMARY KEY", has_deletes=True, tombstones="delete", **UPSERT)
    table.epoch(1, {"id": longs(1, 2), rows.DELETED: flags(False, False)})
    table.epoch(2, {"id": longs(1, 3), rows.DELETED: flags(True, False)})
    assert table.rows() == [(2,), (3,)]


def test_a_delete_is_taken_beside_a_row_that_is_set_aside(tables: Any) -> None:
    table = tables(
        "id bigint PRIMARY KEY, n int CHECK (n > 0)", has_deletes=True, tombstones="delete", **UPSERT
    )
    ints = [pa.array(values, pa.int32()) for values in ([1, 2], [None, 0, None])]
    table.epoch(1, {"id": longs(1, 2), "n": ints[0], rows.DELETED: flags(False, False)})
    table.epoch(2, {"id": longs(1, 2, 4), "n": ints[1], rows.DELETED: flags(True, False, True)})
    assert table.rows() == [(2, 2)]
    assert [offset for offset, _, _ in table.dead()] == [2001]


def test_a_table_that_is_all_key_takes_each_key_once(tables: Any) -> None:
    table = tables("id bigint PRIMARY KEY", **UPSERT)
    table.epoch(1, {"id": longs(1, 1, 2)})
    table.epoch(2, {"id": longs(2, 3)})
    assert table.rows() == [(1,), (2,), (3,)]


def test_texts_become_json_uuid_and_whatever_postgres_casts(tables: Any) -> None:
    given = str(uuid.uuid4())
    table = tables("id bigint, doc jsonb, ref uuid, addr inet, tags text[], span interval")
    table.epoch(
        1,
        {
            "id": longs(1),
            "doc": ['{"a": [1, null]}'],
            "ref": [given],
            "addr": ["10.0.0.1"],
            "tags": ['{x,"y z"}'],
            "span": ["3 days"],
        },
    )
    found = table.rows("id, doc, ref::text, host(addr), tags, span::text")
    assert found == [(1, {"a": [1, None]}, given, "10.0.0.1", ["x", "y z"], "3 days")]


@pytest.mark.parametrize(
    ("columns", "good", "bad", "why"),
    [
        ("v text", ["a", "b"], "n\0l", 'invalid byte sequence for encoding "UTF8": 0x00'),
        ("v varchar(3)", ["abc", "d"], "long", "value too long for type character varying(3)"),
        ("v varchar(3)[]", ["{abc}", "{d}"], "{long}", "value too long for type character varying(3)"),
        ("v bit(3)", ["101", "111"], "10101", "bit string length 5 does not match type bit(3)"),
        ("v {schema}.code", ["abc", "d"], "long", "value too long for type character varying(3)"),
        ("v {schema}.code[]", ["{abc}", "{d}"], "{long}", "value too long for type character varying(3)"),
        ("v text CHECK (v <> 'no')", ["a", "b"], "no", 'violates check constraint "orders_v_check"'),
        ("v text NOT NULL", ["a", "b"], None, "violates not-null constraint"),
        ("v text UNIQUE", ["a", "b"], "a", 'duplicate key value violates unique constraint "orders_v_key"'),
        ("v text UNIQUE DEFERRABLE INITIALLY DEFERRED", ["a", "b"], "a", "duplicate key value"),
        ("v jsonb", ["1", "[]"], "{", "invalid input syntax for type json"),
        ("v uuid", [str(uuid.UUID(int=1)), None], "x", "invalid input syntax for type uuid"),
        ("v text PRIMARY KEY", ["a", "b"], "\N{SNOWMAN}".join(map(str, range(4000))), "index row"),
    ],
)
def test_a_bad_row_is_set_aside_and_all_others_are_written(
    tables: Any, columns: str, good: Sequence[str | None], bad: str | None, why: str
) -> None:
    table = tables(f"id bigint, {columns}", before="CREATE DOMAIN {schema}.code AS varchar(3)")
    batches = [
        {"id": longs(1), "v": good[:1]},
        {"id": longs(2, 3, 4), "v": [bad, good[1], bad]},
    ]
    taken, record = table.epoch(1, *batches)
    assert [row[0] for row in table.rows("id")] == [1, 3]
    assert [(offset, value) for offset, _, value in table.dead()] == [(1001, b"raw"), (1003, b"raw")]
    assert all(why in error for _, error, _ in table.dead())
    assert (record.rows, record.rows_total, record.dead_total) == (2, 2, 2)
    assert taken.rows + taken.dead == 4


def test_of_a_key_the_newest_good_row_wins(tables: Any) -> None:
    table = tables("id bigint PRIMARY KEY, what text CHECK (what <> 'no')", **UPSERT)
    _, record = table.epoch(1, {"id": longs(1, 2, 1, 1), "what": ["a", "b", "c", "no"]})
    assert table.rows() == [(1, "c"), (2, "b")]
    assert [offset for offset, _, _ in table.dead()] == [1003]
    assert (record.rows, record.dead_total) == (3, 1)


@pytest.mark.parametrize("target", [{}, UPSERT], ids=["append", "upsert"])
def test_without_dead_letters_a_bad_row_names_its_offset(tables: Any, target: dict[str, Any]) -> None:
    table = tables("id bigint PRIMARY KEY, what text CHECK (what <> 'no')", dead_letters=False, **target)
    with pytest.raises(RejectedRowError) as caught:
        table.epoch(1, {"id": longs(*range(9)), "what": [*"abcdefgh", "no"]})
    at_once = not target
    assert caught.value.row == (8 if at_once else None)
    assert ("Record source/0 at offset 1008: " in caught.value.detail) is not at_once
    assert 'violates check constraint "orders_what_check"' in caught.value.detail
    assert table.rows() == []


def test_an_epoch_of_bad_rows_only_is_known_to_be_done(tables: Any) -> None:
    table = tables("id bigint CHECK (id < 0)")
    _, record = table.epoch(1, {"id": longs(*range(100))})
    assert (len(table.rows()), len(table.dead())) == (0, 100)
    assert (record.rows, record.dead_total) == (0, 100)


def test_what_a_trigger_refuses_is_set_aside(tables: Any) -> None:
    table = tables("id bigint")
    table.execute(
        "CREATE FUNCTION {schema}.no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " IF NEW.id = 3 THEN RAISE EXCEPTION 'not three'; END IF; RETURN NEW; END $$"
    )
    table.execute("CREATE TRIGGER t BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION {schema}.no()")
    table.epoch(1, {"id": longs(1, 2, 3, 4)})
    assert (table.rows(), table.dead()) == ([(1,), (2,), (4,)], [(1002, "not three", b"raw")])


def test_names_that_want_quotes_are_taken(tables: Any) -> None:
    table = tables('"Se""lect" bigint PRIMARY KEY, "a b" text', mode="upsert", key=('Se"lect',))
    table.epoch(1, {'Se"lect': longs(1, 1), "a b": ["x", "$sinks$"]})
    assert table.rows() == [(1, "$sinks$")]


def test_three_bad_rows_of_many_are_found_quickly(tables: Any) -> None:
    table = tables("id bigint CHECK (id NOT IN (17, 60000, 99999))")
    taken, _ = table.epoch(1, {"id": longs(*range(100_000))})
    assert (taken.rows, taken.dead) == (99_997, 3)
    assert [offset - 1000 for offset, _, _ in table.dead()] == [17, 60000, 99999]


def test_rows_set_aside_in_one_step_are_not_counted_in_the_next(tables: Any) -> None:
    table = tables("id bigint PRIMARY KEY, what text CHECK (what <> 'no')", **UPSERT)
    writer = table.open_writer()
    steps = [{"id": longs(1, 2), "what": ["no", "a"]}, {"id": longs(3, 4), "what": ["b", "c"]}]
    for number, step in enumerate(steps):
        taken = writer.write_batch(with_coordinates(step, 1000 + 2 * number))
        writer.flush()
        total, dead = (writer.last.rows_total, writer.last.dead_total) if writer.last else (0, 0)
        ends = {0: 1002 + 2 * number, 1: 0}
        record = table.start.record(
            1, {0: 1000, 1: 0}, ends, rows=taken.rows, rows_total=total + taken.rows, dead_total=dead
        )
        writer.pre_commit(record)
        writer.commit_epoch()
    assert (writer.last.rows, writer.last.rows_total, writer.last.dead_total) == (2, 3, 1)
    assert table.rows("id") == [(2,), (3,), (4,)]
