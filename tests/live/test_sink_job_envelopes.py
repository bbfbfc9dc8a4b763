"""What a message says of its row: appended, replacing by its key, or a change as Debezium writes it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from airflow_provider_sinks.core.errors import ExitCode
from airflow_provider_sinks.core.progress.record import SINGLE_WRITER
from tests.faults.topics import Record
from tests.live.registered import KEY, Registered
from tests.live.replaying import replay
from tests.live.stage import WHO_WRITES, KeyValue, Stage

_SCHEMA = {"schema": "id long, name string, day date, at timestamp_ntz"}
_READ = [
    (None, '{"id": 1, "name": "Ann", "day": "2026-02-28", "at": "2026-02-28T01:02:03.000004"}'),
    (None, '{"id": 2, "name": "null"}'),
    (None, '{"id": 1}'),
    (None, '{"name": "nobody"}'),
]
_ANN = {"id": 1, "name": "Ann", "day": "2026-02-28", "at": "2026-02-28T01:02:03.000004"}
_NULL = {"id": 2, "name": "null", "day": None, "at": None}
_GONE = {"id": 1, "name": None, "day": None, "at": None}


def _said(found: list[Record]) -> list[tuple[object, object]]:
    return [(_json(one.key), _json(one.value)) for one in found]


def _json(text: bytes | None) -> Any:
    return None if text is None else json.loads(text)


def _row(number: int, **changes: object) -> KeyValue:
    return None, json.dumps({"id": number, **changes})


@pytest.mark.parametrize("key_in_value", [True, False], ids=["with the key", "without the key"])
@pytest.mark.parametrize("stage", WHO_WRITES, indirect=True)
def test_an_upsert_deletes_by_a_real_null_and_sets_a_null_key_aside(
    stage: Stage, *, key_in_value: bool
) -> None:
    source = stage.source("upsert", {0: _READ})
    to = {"envelope": "upsert", "key": "id", "key_in_value": key_in_value}
    sink = stage.sink("upsert", source, from_=_SCHEMA, to=to, dead_letter=f"{source}-dead")

    status = sink.run()

    ann, null = ({k: v for k, v in one.items() if key_in_value or k != "id"} for one in (_ANN, _NULL))
    found, letters = stage.read(sink.out), stage.read(f"{source}-dead")
    assert _said(found) == [(1, ann), (2, null), (1, None)]
    assert [one.value for one in found if one.value is None or one.value == b"null"] == [None]
    assert [one.value for one in letters] == [b'{"name": "nobody"}']
    told = dict(letters[0].headers)
    assert (told["error"], told["error.class"]) == (b"key column id is null", b"convert")
    assert (status.rows, status.dead_total) == (3, 1)


def test_a_null_key_stops_an_upsert_without_dead_letters(stage: Stage) -> None:
    source = stage.source("stops", {0: _READ})
    sink = stage.sink("stops", source, from_=_SCHEMA, to={"envelope": "upsert", "key": "id"})

    status = sink.fail(ExitCode.CONFIGURATION)

    assert status.error is not None
    assert f"Record {source}/0 at offset 3: key column id is null" in status.error.detail
    assert stage.read(sink.out) == []


@pytest.mark.parametrize("tombstones", ["delete", "ignore"])
def test_what_an_upsert_wrote_is_read_by_a_sink_with_its_key(stage: Stage, tombstones: str) -> None:
    source = stage.source("wrote", {0: _READ[:3]})
    upsert = {"envelope": "upsert", "key": "id", "tombstones": tombstones}
    first = stage.sink("wrote", source, from_=_SCHEMA, to=upsert)
    key_as = {"key_as": {"column": "key_of_it", "format": "text"}}
    second = stage.sink("read-back", first.out, from_={**_SCHEMA, **key_as}, to={"key": "key_of_it"})

    first.run()
    status = second.run()

    nothing = {"id": None if tombstones == "delete" else 1, "name": None, "day": None, "at": None}
    rows = [(1, {**_ANN, "key_of_it": "1"}), (2, {**_NULL, "key_of_it": "2"})]
    assert _said(stage.read(second.out)) == [*rows, (1, {**nothing, "key_of_it": "1"})]
    assert (status.rows, status.dead_total) == (3, 0)


@pytest.mark.parametrize("stage", WHO_WRITES, indirect=True)
def test_several_updates_of_one_key_in_an_epoch_are_one_message_of_the_newest(stage: Stage) -> None:
    rows = [_row(number % 3, name=f"n{number}") for number in range(30)]
    ends = [_row(0), _row(7, name="too late: " + "x" * 600), _row(7, name="once"), _row(7, name="x" * 1200)]
    source = stage.source("newest", {0: [*rows, *ends]})
    to = {"envelope": "upsert", "key": "id", "compact_epoch": True, "compression": "none"}
    to["config"] = {"max.message.bytes": 1000}
    sink = stage.sink("newest", source, from_=_SCHEMA, to=to, dead_letter=f"{source}-dead")

    status = sink.run()

    found = [(one.key, (_json(one.value) or {}).get("name")) for one in stage.read(sink.out)]
    assert found == [(b"1", "n28"), (b"2", "n29"), (b"0", None), (b"7", "once")]
    assert [dict(one.headers)["error.class"] for one in stage.read(f"{source}-dead")] == [b"too_large"]
    assert (status.rows, status.dead_total) == (33, 1)
    assert {writer for writer, _ in stage.progress(sink)} == {"driver", SINGLE_WRITER}


def test_each_epoch_of_a_compacted_upsert_has_its_own_newest_rows(stage: Stage) -> None:
    source = stage.source("epochs", {0: [_row(number % 2, name=f"n{number}") for number in range(8)]})
    from_ = {**_SCHEMA, "max_offsets_per_epoch": 4}
    sink = stage.sink(
        "epochs", source, from_=from_, to={"envelope": "upsert", "key": "id", "compact_epoch": True}
    )

    sink.run()

    assert [(_json(one.value) or {})["name"] for one in stage.read(sink.out)] == ["n2", "n3", "n6", "n7"]


def _changes(found: list[Record]) -> list[tuple[object, object]]:
    """Return keys, and values without what differs from run to run."""
    return [(key, value and _settled(value)) for key, value in _said(found)]


def _settled(value: Any) -> Any:
    payload = value.get("payload", value)
    assert payload.pop("ts_ms") > payload["source"].pop("ts_ms") - 60_000
    return value


def _change(stage: Stage, sink: Any, offset: int, **said: object) -> dict[str, object]:
    del stage
    where = {"topic": sink.source, "partition": 0, "offset": offset}
    source = {"connector": "airflow-provider-sinks", "name": sink.parsed.name, **where}
    return {"before": None, "after": None, "source": source, **said}


_DELETES: dict[str, list[Any]] = {
    "with_tombstone": [{"before": _GONE, "op": "d"}, None],
    "without_tombstone": [{"before": _GONE, "op": "d"}],
    "rewrite": [{"after": {**_GONE, "__deleted": "true"}, "op": "r"}],
}


@pytest.mark.parametrize("deletes", _DELETES)
@pytest.mark.parametrize("stage", WHO_WRITES, indirect=True)
def test_debeziums_envelope_has_a_delete_as_the_spec_says(stage: Stage, deletes: str) -> None:
    source = stage.source("changes", {0: _READ})
    to = {"envelope": "debezium", "key": "id", "deletes": deletes, "headers": {"who": "name"}}
    sink = stage.sink("changes", source, from_=_SCHEMA, to=to, dead_letter=f"{source}-dead")

    status = sink.run()

    mark = {"__deleted": "false"} if deletes == "rewrite" else {}
    found = stage.read(sink.out)
    assert _changes(found) == [
        ({"id": 1}, _change(stage, sink, 0, after={**_ANN, **mark}, op="r")),
        ({"id": 2}, _change(stage, sink, 1, after={**_NULL, **mark}, op="r")),
        *(({"id": 1}, said and _change(stage, sink, 2, **said)) for said in _DELETES[deletes]),
    ]
    assert [dict(one.headers)["who"] for one in found[:2]] == [b"Ann", b"null"]
    assert (status.rows, status.dead_total) == (3, 1)


def test_the_changes_that_a_sink_wrote_are_read_by_another_one(stage: Stage) -> None:
    source = stage.source("as-changes", {0: _READ[:3]})
    first = stage.sink("as-changes", source, from_=_SCHEMA, to={"envelope": "debezium", "key": "id"})
    row = f"struct<{_SCHEMA['schema'].replace(' ', ': ').replace(',:', ',')}>"
    schema = f"before {row}, after {row}, source struct<name: string, offset: long>, op string, ts_ms long"
    query = (
        "SELECT coalesce(after.id, before.id) AS id, after.name AS name, op FROM source WHERE op IS NOT NULL"
    )
    second = stage.sink("read-changes", first.out, from_={"schema": schema}, to={"key": "id"}, query=query)

    first.run()
    status = second.run()

    found = [_json(one.value) for one in stage.read(second.out)]
    assert [(one["id"], one["name"], one["op"]) for one in found] == [
        (1, "Ann", "r"), (2, "null", "r"), (1, None, "d"),
    ]  # fmt: skip
    assert status.dead_total == 0


_TYPES = (
    "id long, small tinyint, part float, exact decimal(20,4), day date, at timestamp, local timestamp_ntz, "
    "raw binary, ok boolean, tags array<date>, counts map<string, int>, "
    "place struct<city: string, since: date>"
)
_WIDE = {
    "id": 7, "small": -1, "part": 0.5, "exact": 1234567890123456.7891, "day": "1970-01-03",
    "at": "2026-02-28T01:02:03.000004Z", "local": "1970-01-01T00:00:01.000002", "raw": "AAE=", "ok": True,
    "tags": ["1970-01-02", None], "counts": {"a": 1}, "place": {"city": "Köln", "since": "1969-12-31"},
}  # fmt: skip
_WIDE_PAYLOAD = {
    **_WIDE, "day": 2, "local": 1_000_002, "tags": [1, None], "place": {"city": "Köln", "since": -1},
}  # fmt: skip


@pytest.mark.parametrize("envelope", ["append", "upsert", "debezium"])
def test_each_message_has_its_schema_where_the_spec_says_so_whatever_the_envelope(
    stage: Stage, envelope: str
) -> None:
    exact = json.dumps(_WIDE).replace("1234567890123456.8", "1234567890123456.7891")
    nan = '{"id": 8, "part": "NaN"}'
    source = stage.source("schemas", {0: [(None, exact), (None, nan)]})
    to = {"envelope": envelope, "key": "id", "schemas_enable": True, "record": "shop.Order"}
    query = "SELECT *, IF(id = 8, double('NaN'), 1D) AS ratio FROM source"
    sink = stage.sink(
        "schemas", source, from_={"schema": _TYPES.replace("part float", "part string")}, to=to, query=query,
        dead_letter=f"{source}-dead",
    )  # fmt: skip

    status = sink.run()

    (written,) = stage.read(sink.out)
    key, value = _json(written.key), json.loads(written.value or b"", parse_float=str)
    name = "shop.Order.Envelope" if envelope == "debezium" else "shop.Order.Value"
    row = value["payload"]["after"] if envelope == "debezium" else value["payload"]
    assert row == {**_WIDE_PAYLOAD, "part": "0.5", "exact": "1234567890123456.7891", "ratio": "1.0"}
    assert key == {
        "schema": {
            "type": "struct",
            "fields": [{"type": "int64", "optional": False, "field": "id"}],
            "optional": False,
            "name": "shop.Order.Key",
        },
        "payload": {"id": 7},
    }
    fields = {one["field"]: one for one in value["schema"]["fields"]}
    of_row = fields["after"] if envelope == "debezium" else value["schema"]
    kinds = {one["field"]: (one["type"], one.get("name")) for one in of_row["fields"]}
    assert value["schema"]["name"] == name
    assert of_row["name"] == ("shop.Order.Value")
    assert kinds["exact"] == ("bytes", "org.apache.kafka.connect.data.Decimal")
    assert kinds["at"] == ("string", "io.debezium.time.ZonedTimestamp")
    assert kinds["local"] == ("int64", "io.debezium.time.MicroTimestamp")
    assert kinds["day"] == ("int32", "org.apache.kafka.connect.data.Date")
    assert (kinds["small"], kinds["counts"], kinds["place"]) == (
        ("int8", None),
        ("map", None),
        ("struct", None),
    )
    (letter,) = stage.read(f"{source}-dead")
    why = dict(letter.headers)["error"]
    assert why == b"The value cannot be written: field ratio is no number in JSON: NaN or infinite."
    assert (status.rows, status.dead_total) == (1, 1)


@pytest.mark.parametrize("format_", ["avro", "json_schema"])
def test_a_registry_has_the_schema_of_debeziums_envelope(registered: Registered, format_: str) -> None:
    stage = registered.stage
    source = stage.source("registered", {0: [_row(1, name="Ann"), _row(1)]})
    to = {"format": format_, "key_format": format_, "registry": "registry", "record": "shop.Order"}
    sink = stage.sink(
        "registered", source, from_={"schema": "id long, name string"},
        to={**to, "envelope": "debezium", "key": "id"}, dead_letter=f"{source}-dead",
    )  # fmt: skip

    status = sink.run()

    def read(*part: Any) -> list[Any]:
        return registered.values(sink, *part) if format_ == "avro" else registered.json_values(sink, *part)

    (ann, gone, tombstone) = read()
    assert (ann["before"], ann["after"], ann["op"]) == (None, {"id": 1, "name": "Ann"}, "r")
    assert (gone["before"], gone["after"], gone["op"]) == ({"id": 1, "name": None}, None, "d")
    assert (gone["source"]["name"], gone["source"]["offset"], tombstone) == (sink.parsed.name, 1, None)
    assert read(KEY) == [{"id": 1}] * 3
    made = registered.newest(f"{sink.out}-value")
    assert (made.get("name") or made["title"]).endswith("Envelope")
    assert (status.rows, status.dead_total) == (2, 0)


@pytest.mark.parametrize("format_", ["avro", "json_schema"])
def test_a_registered_upsert_deletes_by_a_real_null(registered: Registered, format_: str) -> None:
    stage = registered.stage
    source = stage.source("null", {0: [_row(1, name="Ann"), _row(1), (None, '{"name": "nobody"}')]})
    to = {"format": format_, "key_format": format_, "registry": "registry"}
    sink = stage.sink(
        "null", source, from_={"schema": "id long, name string"},
        to={**to, "envelope": "upsert", "key": "id", "compact_epoch": True}, dead_letter=f"{source}-dead",
    )  # fmt: skip

    status = sink.run()

    assert [(one.key is None, one.value) for one in stage.read(sink.out)] == [(False, None)]
    assert [dict(one.headers)["error"] for one in stage.read(f"{source}-dead")] == [b"key column id is null"]
    assert (status.rows, status.dead_total) == (2, 1)


def test_a_replayed_letter_says_where_its_record_came_from_and_a_null_key_comes_back(stage: Stage) -> None:
    source = stage.source("replayed", {0: [_row(1), (None, '{"id": "two", "name": "B"}'), _READ[3]]})
    to = {"envelope": "debezium", "key": "id", "compact_epoch": True}
    sink = stage.sink("replayed", source, from_=_SCHEMA, to=to, dead_letter=f"{source}-dead")
    sink.run()
    sink.spec = {
        **sink.spec,
        "source": {"kafka": {"connection": "kafka", "topic": source, "schema": "id string, name string"}},
    }

    status = replay(stage, sink, overwrite=True).run()

    (_, after) = _said(stage.read(sink.out))[-1]
    assert isinstance(after, Mapping)
    assert (after["after"], after["op"]) == ({"id": "two", "name": "B"}, "r")
    told = after["source"]
    assert (told["name"], told["topic"], told["offset"]) == (sink.parsed.name, source, 1)
    assert (status.rows_total, status.dead_total) == (1, 1)
