"""The envelopes of a Kafka target: what a spec may say, what they are made of, two messages of a row."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_sinks import Sink, kafka
from airflow_provider_sinks.connectors.kafka.columns import KEY, TOMBSTONE, VALUE, is_true
from airflow_provider_sinks.connectors.kafka.spec import KafkaSink, kafka_sink
from airflow_provider_sinks.connectors.kafka.tombstones import with_tombstones
from airflow_provider_sinks.connectors.kafka.written_schemas import derived, part_columns
from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.core.schemas.connect_json import connect_schema
from airflow_provider_sinks.core.schemas.derived import columns_of
from airflow_provider_sinks.core.schemas.json_derived import object_of
from airflow_provider_sinks.core.schemas.subjects import Part
from airflow_provider_sinks.core.spec.sink import SinkSpec, Writers

_UPSERT: dict[str, Any] = {"envelope": "upsert", "key": "id"}
_DEBEZIUM: dict[str, Any] = {"envelope": "debezium", "key": "id"}


def _sink(columns: str = "id long, name string", writers: str | None = None, **target: Any) -> KafkaSink:
    given: dict[str, Any] = {} if writers is None else {"writers": writers}
    source, out = kafka("k", "in", schema=columns), kafka("k", "out", **target)
    made = Sink(name="s", source=source, target=out, **given)
    return kafka_sink(made)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ({"envelope": "upsret", "key": "id"}, "'upsret' is none of append, upsert, debezium (did you mean"),
        ({"envelope": "upsert"}, "key: is missing: with envelope upsert a row replaces by it (key: [column]"),
        ({"envelope": "debezium"}, "key: is missing: with envelope debezium a row replaces by it"),
        (_UPSERT | {"tombstones": True}, "tombstones: true is for envelope append (tombstones: delete)"),
        (_UPSERT | {"tombstones": False}, "tombstones: false is for envelope append (tombstones: ignore)"),
        (_UPSERT | {"tombstones": "delte"}, "tombstones: 'delte' is none of true, false, ignore, delete (di"),
        ({"tombstones": "delete"}, "tombstones: delete is for envelope upsert and debezium (tombstones: tru"),
        ({"tombstones": "ignore"}, "tombstones: ignore is for envelope upsert and debezium (tombstones: fal"),
        (_UPSERT | {"format": "text", "tombstones": "ignore"}, "in text a null value is a tombstone (leave"),
        (_UPSERT | {"value": "name", "tombstones": "ignore"}, "does not go with value: a null value is a to"),
        ({"deletes": "rewrite"}, "deletes: is for envelope debezium, and this one is append"),
        (_UPSERT | {"deletes": "rewrite"}, "deletes: is for envelope debezium, and this one is upsert (leav"),
        (_DEBEZIUM | {"deletes": "rewrit"}, "deletes: 'rewrit' is none of with_tombstone, without_tombstone"),
        (_DEBEZIUM | {"tombstones": "ignore", "deletes": "rewrite"}, "what tombstones: ignore never writes"),
        ({"compact_epoch": True}, "compact_epoch: needs rows that replace each other, and envelope append k"),
        (_UPSERT | {"compact_epoch": True, "writers": "per_partition"}, "writers: per_partition does not go"),
        (_UPSERT | {"format": "text", "schemas_enable": True}, "schemas_enable: is for format json, and thi"),
        (_UPSERT | {"value": "name", "schemas_enable": True}, "schemas_enable: does not go with value: a sc"),
        (_DEBEZIUM | {"format": "text"}, "envelope: debezium does not go with format text: its value is a r"),
        (_DEBEZIUM | {"value": "name"}, "value: does not go with envelope debezium: after has every column"),
        (_DEBEZIUM | {"key_in_value": False}, "key_in_value: false does not go with envelope debezium: afte"),
        (_UPSERT | {"partition_by": "name"}, "partition_by: names name beside the key: rows of one key woul"),
        (_UPSERT | {"key": ["id", "name"]}, "key: has every column of the output: each row would be a delet"),
        (
            _DEBEZIUM | {"deletes": "rewrite", "columns": "id long, __deleted string"},
            "deletes: rewrite adds '__deleted', and the output has such a column (name the column otherwise",
        ),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_told_when_it_is_read(target: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError) as wrong:
        _sink(**target)

    assert f"target.kafka.{said}" in str(wrong.value) or said in str(wrong.value)


@pytest.mark.parametrize(
    ("target", "deletes", "adds", "marks"),
    [
        ({}, False, False, False),
        ({"tombstones": True}, True, False, False),
        (_UPSERT, True, False, False),
        (_UPSERT | {"tombstones": "ignore"}, False, False, False),
        (_DEBEZIUM, True, True, False),
        (_DEBEZIUM | {"deletes": "without_tombstone"}, True, False, False),
        (_DEBEZIUM | {"deletes": "rewrite"}, True, False, True),
        (_DEBEZIUM | {"tombstones": "ignore"}, False, False, False),
        ({"envelope": "append"}, False, False, False),
    ],
)
def test_what_a_row_without_values_is(
    target: dict[str, Any], *, deletes: bool, adds: bool, marks: bool
) -> None:
    found = _sink(**target).target.kafka

    assert (found.deletes_rows, found.adds_tombstones, found.marks_deletes) == (deletes, adds, marks)


@pytest.mark.parametrize("target", [{}, _UPSERT, _DEBEZIUM, _UPSERT | {"compact_epoch": True}])
def test_what_was_resolved_is_read_again_as_it_was(target: dict[str, Any]) -> None:
    sink = _sink(**target)

    assert SinkSpec.parse(sink.to_mapping()).to_json() == sink.to_json()


def test_a_sink_without_an_envelope_is_written_as_before() -> None:
    assert _sink(key="id").to_mapping()["target"]["kafka"] == {
        "compression": "lz4", "config": {}, "connection": "k", "format": "json", "key": ["id"],
        "tombstones": False, "topic": "out",
    }  # fmt: skip


@pytest.mark.parametrize(("compacts", "writer"), [(True, Writers.SINGLE), (False, Writers.PER_PARTITION)])
def test_one_writer_writes_where_an_epoch_has_each_key_once(*, compacts: bool, writer: Writers) -> None:
    assert _sink(**_UPSERT, compact_epoch=compacts).writer_mode is writer


@pytest.mark.parametrize(("target", "end"), [({}, "connection `k`"), (_UPSERT, "connection `k`, upsert")])
def test_the_page_of_a_dag_says_what_a_row_does(target: dict[str, Any], end: str) -> None:
    assert next(iter(_sink(**target).told())).endswith(end)


_COLUMNS = {
    "type": "struct",
    "fields": [
        {"name": "id", "type": "long", "nullable": False, "metadata": {}},
        {"name": "at", "type": "timestamp", "nullable": True, "metadata": {}},
    ],
}


@pytest.mark.parametrize(("deletes", "more"), [("with_tombstone", []), ("rewrite", ["__deleted"])])
def test_debeziums_envelope_is_made_of_the_columns_of_the_query(deletes: str, more: list[str]) -> None:
    columns = part_columns(_sink(**_DEBEZIUM, deletes=deletes), Part.VALUE, _COLUMNS)

    kinds = {one.name: one.type for one in columns}
    assert [(one.name, one.nullable) for one in columns] == [
        ("before", True), ("after", True), ("source", False), ("op", False), ("ts_ms", True),
    ]  # fmt: skip
    assert kinds["before"] == kinds["after"]
    assert [field["name"] for field in kinds["after"]["fields"]] == ["id", "at", *more]  # type: ignore[index]


def test_readers_of_debezium_know_its_envelope_by_the_name_of_the_record() -> None:
    sink = _sink(**_DEBEZIUM, format="avro", registry="r", key_format="avro", record="shop.Order")

    def name(part: Part) -> str:
        made = json.loads(derived(sink, part, part_columns(sink, part, _COLUMNS)))
        return f"{made['namespace']}.{made['name']}"

    assert (name(Part.VALUE), name(Part.KEY)) == ("shop.Order.Envelope", "shop.Order_key")


def test_connects_schema_says_of_each_field_what_it_is() -> None:
    struct = {"type": "struct", "fields": [{"name": "n", "type": "byte", "nullable": False, "metadata": {}}]}
    kinds: dict[str, dict[str, Any]] = {
        "long": {"type": "int64"},
        "float": {"type": "float"},
        "decimal(9,2)": {
            "type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "version": 1,
            "parameters": {"scale": "2", "connect.decimal.precision": "9"},
        },
        "date": {"type": "int32", "name": "org.apache.kafka.connect.data.Date", "version": 1},
        "timestamp": {"type": "string", "name": "io.debezium.time.ZonedTimestamp", "version": 1},
        "timestamp_ntz": {"type": "int64", "name": "io.debezium.time.MicroTimestamp", "version": 1},
        "binary": {"type": "bytes"},
    }  # fmt: skip
    whole: dict[str, Any] = {"type": "array", "elementType": struct, "containsNull": False}
    types: list[Any] = [*kinds, whole]
    fields = [
        {"name": f"c{at}", "type": kind, "nullable": True, "metadata": {}} for at, kind in enumerate(types)
    ]

    made = connect_schema(object_of(columns_of({"fields": fields})), {"": "shop.Order.Value"})

    item = {
        "type": "struct", "optional": False,
        "fields": [{"type": "int8", "optional": False, "field": "n"}],
    }  # fmt: skip
    wanted = [*kinds.values(), {"type": "array", "items": item}]
    assert made == {
        "type": "struct",
        "fields": [{**one, "optional": True, "field": f"c{at}"} for at, one in enumerate(wanted)],
        "optional": False,
        "name": "shop.Order.Value",
    }


def _rows(deleted: Sequence[bool | None]) -> pa.RecordBatch:
    numbers = range(len(deleted))
    return pa.record_batch(
        {
            KEY: pa.array([b"k%d" % at for at in numbers], pa.binary()),
            VALUE: pa.array([b"v%d" % at if at != 1 else None for at in numbers], pa.binary()),
            TOMBSTONE: pa.array(deleted, pa.bool_()),
        }
    )


@pytest.mark.parametrize("skipped", [0, 3])
def test_a_tombstone_stands_right_behind_the_message_of_its_delete(skipped: int) -> None:
    rows = _rows([False] * skipped + [False, None, True, True, False]).slice(skipped)

    messages, own = with_tombstones(rows)

    keys, values = rows.column(KEY).to_pylist(), rows.column(VALUE).to_pylist()
    wanted = [
        (keys[0], values[0]), (keys[1], values[1]), (keys[2], values[2]), (keys[2], None),
        (keys[3], values[3]), (keys[3], None), (keys[4], values[4]),
    ]  # fmt: skip
    assert (
        list(zip(messages.column(KEY).to_pylist(), messages.column(VALUE).to_pylist(), strict=True)) == wanted
    )
    assert own.tolist() == [0, 1, 2, 2, 3, 3, 4]


@pytest.mark.parametrize("rows", [_rows([False, None]), _rows([False]).drop_columns([TOMBSTONE])])
def test_rows_without_a_delete_are_handed_over_as_they_are(rows: pa.RecordBatch) -> None:
    messages, own = with_tombstones(rows)

    assert messages is rows
    assert own.tolist() == list(range(rows.num_rows))


def test_a_null_is_not_true() -> None:
    assert is_true(pa.array([True, None, False, True])).tolist() == [True, False, False, True]
