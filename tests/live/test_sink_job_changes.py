"""Sinks whose source says what became of rows: what is in the table is what the source has in the end."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from psycopg import sql

from airflow_provider_sinks.core.errors import ExitCode
from tests.live.lake_spark import LakeSpark
from tests.live.registered import KEY, Registered, record
from tests.live.stage import WHO_WRITES, Sink, Stage

Row = dict[str, Any]
Message = tuple[int, str, str | None]
"""Of a partition, with key and value."""
_SCHEMA = "id bigint NOT NULL, name string, price decimal(5,2) NOT NULL"
_KEY = {"columns": ["id"]}


class Changes:
    """A table somewhere else, as its changes are written: the oracle."""

    def __init__(self, write: Callable[[int, Row | None, Row | None], list[str | None]]) -> None:
        self.rows: dict[int, Row] = {}
        self._write = write

    def put(self, id_: int, name: str | None, price: float = 1.5) -> list[Message]:
        """Insert a row or update it."""
        before, after = self.rows.get(id_), {"id": id_, "name": name, "price": price}
        self.rows[id_] = after
        return self._messages(id_, before, after)

    def delete(self, id_: int) -> list[Message]:
        """Delete a row, if it is there."""
        return self._messages(id_, self.rows.pop(id_, {"id": id_}), None)

    @property
    def final(self) -> list[tuple[Any, ...]]:
        return [(row["id"], row["name"], f"{row['price']:.2f}") for _, row in sorted(self.rows.items())]

    def _messages(self, id_: int, before: Row | None, after: Row | None) -> list[Message]:
        key = json.dumps({"id": id_})
        return [(id_ % 2, key, value) for value in self._write(id_, before, after)]


def upsert(id_: int, before: Row | None, after: Row | None) -> list[str | None]:
    del id_, before
    return [None if after is None else json.dumps({"name": after["name"], "price": after["price"]})]


def debezium(id_: int, before: Row | None, after: Row | None) -> list[str | None]:
    """Write as Debezium does by itself: only the key of the row before, and a tombstone behind a delete."""
    op = "d" if after is None else "c" if before is None else "u"
    key = {"id": id_, "name": None, "price": None} if before else None
    event = {"before": key, "after": after, "source": {"table": "orders"}, "op": op, "ts_ms": 7}
    return [json.dumps(event), *([None] if after is None else [])]


def in_schemas(id_: int, before: Row | None, after: Row | None) -> list[str | None]:
    """Write as Connect does with its schemas."""
    return [
        None if text is None else json.dumps({"schema": {"type": "struct"}, "payload": json.loads(text)})
        for text in debezium(id_, before, after)
    ]


def rewritten(id_: int, before: Row | None, after: Row | None) -> list[str | None]:
    """Write as Debezium does with deletes rewritten: rows alone."""
    del id_
    return [json.dumps({**(after or before or {}), "__deleted": "true" if after is None else "false"})]


def _source(envelope: str, **source: Any) -> Row:
    return {"schema": _SCHEMA, "envelope": envelope, "key_as": _KEY, **source}


def _target(schema: str) -> Row:
    upserts = {"key": "id", "mode": "upsert", "tombstones": "delete"}
    return {"postgres": {"connection": "pg", "table": f"{schema}.orders", **upserts}}


def _make(stage: Stage, schema: str) -> None:
    statement = "CREATE TABLE {} (id bigint PRIMARY KEY, name text, price numeric(5,2) NOT NULL)"
    with stage.postgres.connect() as connection:
        connection.execute(sql.SQL(statement).format(sql.Identifier(schema, "orders")))


def _sink(stage: Stage, schema: str, messages: Iterable[Message], envelope: str, **parts: Any) -> Sink:
    """Return a sink into a table that is there, from a topic that holds these messages."""
    _make(stage, schema)
    source = stage.topic("changes", 2)
    stage.produce(source, messages)
    return stage.sink("changes", source, from_=_source(envelope), target=_target(schema), **parts)


def _rows(stage: Stage, schema: str) -> list[tuple[Any, ...]]:
    query = sql.SQL("SELECT id, name, price::text FROM {} ORDER BY id").format(
        sql.Identifier(schema, "orders")
    )
    with stage.postgres.connect() as connection:
        return connection.execute(query).fetchall()


FORMS = {
    "upsert": ("upsert", upsert),
    "debezium": ("debezium", debezium),
    "debezium with schemas": ("debezium", in_schemas),
    "debezium with deletes rewritten": ("debezium", rewritten),
}


@pytest.mark.parametrize("stage", WHO_WRITES[:1], indirect=True)
@pytest.mark.parametrize("form", FORMS)
def test_a_table_is_what_the_source_is_within_an_epoch_and_over_epochs(
    stage: Stage, schema: str, form: str
) -> None:
    envelope, write = FORMS[form]
    table = Changes(write)
    begin = [change for id_ in range(1, 7) for change in table.put(id_, f"n{id_}")]
    begin += [*table.put(2, "updated"), *table.delete(3), *table.delete(4), *table.put(4, "back")]
    begin += [*table.put(7, "came"), *table.delete(7), *table.put(8, None)]
    sink = _sink(stage, schema, begin, envelope)

    sink.run()
    first, there = _rows(stage, schema), table.final
    stage.produce(sink.source, [*table.put(3, "again"), *table.delete(1), *table.delete(99)])
    stage.produce(sink.source, [*table.delete(5), *table.put(5, "anew"), *table.put(8, "named", 2.25)])
    sink.run()

    assert first == there
    assert _rows(stage, schema) == table.final


@pytest.mark.parametrize("stage", WHO_WRITES, indirect=True)
def test_a_debezium_delete_is_two_messages_and_the_null_breaks_nothing(stage: Stage, schema: str) -> None:
    table = Changes(debezium)
    changes = [*table.put(1, "ann"), *table.put(2, "bob"), *table.delete(1)]
    assert [value is None for _, _, value in changes] == [False, False, False, True]
    sink = _sink(stage, schema, changes, "debezium")

    status = sink.run()

    assert (_rows(stage, schema), status.dead_total) == ([(2, "bob", "1.50")], 0)


def test_a_delete_that_says_deleted_takes_the_row_away_and_so_does_one_whose_tombstone_is_left_alone(
    stage: Stage, schema: str
) -> None:
    table = Changes(rewritten)
    sink = _sink(
        stage, schema, [*table.put(1, "ann"), *table.put(2, "bob"), *table.put(3, "eve")], "debezium"
    )
    sink.run()
    stage.produce(sink.source, [*table.delete(1), (1, '{"id": 3}', None)])

    sink.run()

    assert _rows(stage, schema) == [(2, "bob", "1.50")]


def test_of_several_updates_of_one_key_in_a_batch_the_last_is_left(stage: Stage, schema: str) -> None:
    table = Changes(upsert)
    changes = [change for number in range(50) for change in table.put(1, f"n{number}")]
    sink = _sink(stage, schema, [*changes, *table.delete(1), *table.put(1, "last")], "upsert")

    status = sink.run()

    assert (_rows(stage, schema), status.rows_total) == ([(1, "last", "1.50")], 52)


def test_a_row_that_the_condition_does_not_take_any_more_leaves_the_table_and_no_delete_is_lost_by_it(
    stage: Stage, schema: str
) -> None:
    table = Changes(debezium)
    begin = [*table.put(1, "in"), *table.put(2, "in"), *table.put(3, "in"), *table.put(4, "out", 9)]
    query = "SELECT upper(name) AS name, o.price, o.id FROM source o WHERE price < 5 AND name IS NOT NULL"
    sink = _sink(stage, schema, begin, "debezium", query=query)

    sink.run()
    first = _rows(stage, schema)
    stage.produce(sink.source, [*table.put(1, "out", 7), *table.delete(2), *table.delete(4)])
    sink.run()

    assert first == [(1, "IN", "1.50"), (2, "IN", "1.50"), (3, "IN", "1.50")]
    assert _rows(stage, schema) == [(3, "IN", "1.50")]


def test_changes_that_no_row_stands_for_are_set_aside_or_stop_the_sink(stage: Stage, schema: str) -> None:
    def event(op: str) -> str:
        return json.dumps({"before": None, "after": None, "op": op})

    good = Changes(debezium).put(1, "ann")
    bad: list[tuple[int, str | None, str]] = [
        (0, '{"id": 2}', event("t")),
        (0, '{"id": 2}', event("x")),
        (0, '{"id": 2}', event("c")),
        (0, None, event("d")),
    ]
    dead = {"table": f"{schema}.dead"}
    sink = _sink(stage, schema, good, "debezium", dead_letter=dead)
    strict = stage.sink("strict", sink.source, from_=_source("debezium"), target=_target(schema))
    stage.produce(sink.source, bad)

    status, error = sink.run(), strict.fail(ExitCode.CONFIGURATION).error

    query = sql.SQL("SELECT source_offset, error FROM {} ORDER BY 1").format(sql.Identifier(schema, "dead"))
    with stage.postgres.connect() as connection:
        letters = connection.execute(query).fetchall()
    assert letters == [
        (0, "The change truncates the table (op t), and no row stands for that."),
        (1, "The change has op x, which is none of c, r, u and d."),
        (2, "The change has op c and no after."),
        (3, "Column id of the key is null or missing."),
    ]
    assert (status.rows_total, status.dead_total) == (1, 4)
    assert error is not None
    assert f"Record {sink.source}/0 at offset 0: The change truncates" in error.detail
    assert _rows(stage, schema) == [(1, "ann", "1.50")]


def _epochs(table: Changes) -> Iterator[list[Message]]:
    """Give the changes of one epoch at a time; the last one has a delete alone, of what never was there."""
    yield [*table.put(1, "ann"), *table.put(2, "bob"), *table.put(3, None), *table.delete(2)]
    yield [*table.put(1, "new"), *table.put(2, "back"), *table.delete(3), *table.delete(99)]
    yield table.delete(1)
    yield table.delete(98)


def test_an_iceberg_table_is_what_the_source_is(stage: Stage, lake_spark: LakeSpark) -> None:
    table, name, source = Changes(debezium), f"shop_{uuid.uuid4().hex[:8]}.orders", stage.topic("changes", 2)
    target = {"iceberg": {"catalog": "lake", "table": name, "create": True, "key": "id", "mode": "upsert"}}
    sink = stage.sink("changes", source, from_=_source("debezium"), target=target)
    for changes in _epochs(table):
        stage.produce(source, changes)

        sink.run()

        found = lake_spark.sql("SELECT id, name, CAST(price AS string) FROM {t} ORDER BY id", name)
        assert found == [list(row) for row in table.final]


def test_a_delta_table_is_what_the_source_is(stage: Stage, tmp_path: Path) -> None:
    table, path, source = Changes(debezium), tmp_path / "orders", stage.topic("changes", 2)
    target = {"delta": {"path": str(path), "create": True, "key": "id", "mode": "upsert"}}
    sink = stage.sink("changes", source, from_=_source("debezium"), target=target)
    for changes in _epochs(table):
        stage.produce(source, changes)

        sink.run()

        found = DeltaTable(path).to_pyarrow_table().to_pylist()
        assert sorted((row["id"], row["name"], str(row["price"])) for row in found) == table.final


_AVRO_ROW = record("Order", id="long", name=["null", "string"], price=["null", "double"])
_AVRO = {
    "debezium": record("Envelope", before=["null", _AVRO_ROW], after=["null", "shop.Order"], op="string"),
    "upsert": record("Order", name=["null", "string"], price=["null", "double"]),
}


@pytest.mark.parametrize("envelope", _AVRO)
def test_changes_in_avro_are_read_by_the_registry(registered: Registered, schema: str, envelope: str) -> None:
    stage, tree, key = registered.stage, _AVRO[envelope], record("Key", id="long")
    table = Changes(FORMS[envelope][1])
    source = stage.topic("changes", 2)
    from_: Row = {"format": "avro", "registry": "registry", "envelope": envelope}
    from_["key_as"] = {"columns": ["id"], "format": "avro"}
    _make(stage, schema)
    select = ["id", "name", "CAST(price AS decimal(5,2)) AS price"]
    sink = stage.sink("changes", source, from_=from_, target=_target(schema), select=select)
    for changes in islice(_epochs(table), 2):
        for partition, id_, text in changes:
            value = None if text is None else registered.encode(source, tree, json.loads(text))
            stage.produce(source, [(partition, registered.encode(source, key, json.loads(id_), KEY), value)])

        status = sink.run()

        assert (_rows(stage, schema), status.dead_total) == (table.final, 0)


def test_in_avro_an_array_that_was_not_sent_leaves_the_right_one_in_the_table(
    registered: Registered, schema: str
) -> None:
    row = record("Order", id="long", tags=["null", {"type": "array", "items": "long"}])
    tree = record("Envelope", before=["null", row], after=["null", "shop.Order"], op="string")
    stage = registered.stage
    source = stage.topic("changes", 1)
    with stage.postgres.connect() as connection:
        statement = "CREATE TABLE {} (id bigint PRIMARY KEY, tags jsonb)"
        connection.execute(sql.SQL(statement).format(sql.Identifier(schema, "orders")))
    from_: Row = {"format": "avro", "registry": "registry", "envelope": "debezium"}
    from_["key_as"] = {"columns": ["id"], "format": "avro"}
    dead = {"table": f"{schema}.dead"}
    sink = stage.sink("changes", source, from_=from_, target=_target(schema), dead_letter=dead)
    key = registered.encode(source, record("Key", id="long"), {"id": 1}, KEY)
    for tags in ([1, 2], [*b"__debezium_unavailable_value"]):
        event = {"before": None, "after": {"id": 1, "tags": tags}, "op": "u"}
        stage.produce(source, [(0, key, registered.encode(source, tree, event))])

    status = sink.run()

    query = sql.SQL("SELECT tags FROM {}").format(sql.Identifier(schema, "orders"))
    with stage.postgres.connect() as connection:
        assert connection.execute(query).fetchall() == [([1, 2],)]
    assert status.dead_total == 1


def test_a_column_that_debezium_adds_under_a_running_sink_is_in_the_table_with_each_value(
    registered: Registered, schema: str
) -> None:
    def envelope(row: Any) -> dict[str, Any]:
        return record("Envelope", before=["null", row], after=["null", "shop.Order"], op="string")

    stage, key = registered.stage, record("Key", id="long")
    source = stage.topic("changes", 1)

    def put(tree: dict[str, Any], **row: Any) -> None:
        value = registered.encode(source, tree, {"before": None, "after": row, "op": "c"})
        stage.produce(source, [(0, registered.encode(source, key, {"id": row["id"]}, KEY), value)])

    from_: Row = {"format": "avro", "registry": "registry", "envelope": "debezium"}
    from_["key_as"] = {"columns": ["id"], "format": "avro"}
    table = {**_target(schema)["postgres"], "create": True, "on_schema_change": "add_columns"}
    put(envelope(record("Order", id="long", name="string")), id=1, name="ann")
    sink = stage.sink("changes", source, from_=from_, target={"postgres": table}, trigger={"every": "200ms"})
    launch = sink.launch()
    launch.wait_until(lambda: launch.has_passed({0: 1}))

    put(
        envelope(record("Order", id="long", name="string", note=["null", "string"])),
        id=2,
        name="bob",
        note="x",
    )
    code = launch.wait()
    sink.spec = {**sink.spec, "trigger": "available_now"}
    sink.run()

    assert code == ExitCode.FAILED
    with stage.postgres.connect() as connection:
        query = sql.SQL("SELECT id, name, note FROM {} ORDER BY id").format(sql.Identifier(schema, "orders"))
        assert connection.execute(query).fetchall() == [(1, "ann", None), (2, "bob", "x")]
