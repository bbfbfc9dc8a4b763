"""Sinks that read and write Avro by a schema registry, on the real broker, Spark and registry."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from decimal import Decimal
from pathlib import Path

import pytest
from confluent_kafka.schema_registry import Schema

from airflow_provider_sinks.clients.schema_registry.options import RegistryOptions
from airflow_provider_sinks.connectors.base import Run
from airflow_provider_sinks.connectors.observer import SinkObserver
from airflow_provider_sinks.core.errors import ExitCode, FencedError
from airflow_provider_sinks.core.progress.record import ProgressRecord, partition_writer
from airflow_provider_sinks.core.schemas.wire import header
from airflow_provider_sinks.local.ports import free_port
from airflow_provider_sinks.streaming.written_schemas import UNKNOWN_MAX
from tests.faults.parts import Part
from tests.faults.topics import Record
from tests.live.registered import KEY, Registered, record
from tests.live.shared_driver import HostedLaunch
from tests.live.stage import WHO_WRITES
from tests.live.tables import KINDS, Table

ORDER = record("Order", id="long", what="string")
AVRO = {"format": "avro", "registry": "registry"}


@pytest.mark.parametrize("stage", WHO_WRITES, indirect=True)
def test_avro_goes_in_and_out(registered: Registered) -> None:
    rows = [{"id": 1, "what": "tea"}, {"id": 2, "what": "süß"}]
    source = registered.source("both", ORDER, rows)
    sink = registered.stage.sink("both", source, from_=AVRO, to={**AVRO, "key": ["id"], "key_format": "avro"})

    status = sink.run()

    assert (status.rows, status.dead_total) == (2, 0)
    assert registered.values(sink) == rows
    assert registered.values(sink, KEY) == [{"id": 1}, {"id": 2}]


def test_every_type_comes_back_as_it_was(registered: Registered) -> None:
    at = dt.datetime(2024, 2, 29, 23, 59, 59, 123000, tzinfo=dt.UTC)
    tree = record(
        "Everything",
        id={"type": "string", "logicalType": "uuid"},
        amount={"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 4},
        day={"type": "int", "logicalType": "date"},
        millis={"type": "long", "logicalType": "timestamp-millis"},
        micros={"type": "long", "logicalType": "timestamp-micros"},
        color={"type": "enum", "name": "Color", "symbols": ["RED", "BLUE"]},
        digest={"type": "fixed", "name": "Digest", "size": 4},
        tags={"type": "array", "items": "string"},
        counts={"type": "map", "values": "long"},
        inner=record("Inner", ratio="double", small="float", flag="boolean", size="int"),
        note=["null", "string"],
        raw="bytes",
    )
    row = {
        "id": uuid.UUID(int=7),
        "amount": Decimal("1234567890123456.7891"),
        "day": dt.date(1969, 7, 20),
        "millis": at,
        "micros": at.replace(microsecond=123456),
        "color": "BLUE",
        "digest": b"\x00\xff\x01\x02",
        "tags": ["a", ""],
        "counts": {"x": 2**62},
        "inner": {"ratio": 0.1, "small": 0.5, "flag": True, "size": -1},
        "note": None,
        "raw": b"\x00",
    }
    source = registered.source("types", tree, [row])
    subject = {"subject": f"{source}-value", "version": 1}
    sink = registered.stage.sink("types", source, from_=AVRO, to={**AVRO, "schema": subject})

    sink.run()

    assert registered.values(sink) == [row]


def test_what_cannot_be_read_is_set_aside_with_its_reason_and_its_place(registered: Registered) -> None:
    stage = registered.stage
    source = registered.source("broken", ORDER, [{"id": 1, "what": "tea"}])
    good = registered.encode(source, ORDER, {"id": 2, "what": "milk"})
    broken = [
        b"\x00\x00\x00",
        b'{"id": 3, "what": "json"}',
        header(2_000_000_000) + good[5:],
        good[:-2],
        good + b"\x00",
        b"",
    ]
    stage.produce(source, ((0, b"k%d" % number, value) for number, value in enumerate(broken)))
    stage.produce(source, [(0, b"last", good)])
    dead = f"{source}-dead"
    sink = stage.sink("broken", source, from_=AVRO, to={"format": "json"}, dead_letter={"topic": dead})

    status = sink.run()

    assert (status.rows, status.dead_total) == (2, 6)
    assert [json.loads(one.value or b"") for one in stage.read(sink.out)] == [
        {"id": 1, "what": "tea"},
        {"id": 2, "what": "milk"},
    ]
    letters = stage.read(dead)
    assert [one.value for one in letters] == broken
    assert [_header(one, "source.offset") for one in letters] == ["1", "2", "3", "4", "5", "6"]
    away = f"which the schema registry at {registered.registry.url} does not know"
    by = f"by schema id {int.from_bytes(good[1:5], 'big')}."
    assert [_header(one, "error") for one in letters] == [
        "The value is cut off: it has 3 bytes, and the header of Confluent's wire format has 5.",
        "The value has no magic byte: it is not in Confluent's wire format, which begins with 0.",
        f"The value has schema id 2000000000, {away}.",
        f"The value does not decode {by}",
        f"The value does not end where it should {by}",
        "The value is cut off: it has 0 bytes, and the header of Confluent's wire format has 5.",
    ]


def _header(one: Record, name: str) -> str:
    found = dict(one.headers)[name]
    return found.decode() if isinstance(found, bytes) else str(found)


_NEWER = record("Order", id="long", what="string", note=["null", "string"])


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_that_the_source_gets_under_a_running_sink_is_in_the_table_of_each_row_that_has_it(
    registered: Registered, kind: str, schema: str, tmp_path: Path
) -> None:
    stage, table = registered.stage, Table(registered.stage, kind, schema, tmp_path)
    source = registered.source("gets", ORDER, [{"id": number, "what": "tea"} for number in range(20)])
    target = {kind: {**table.spec["target"][kind], "on_schema_change": "add_columns"}}
    sink = stage.sink("gets", source, from_=AVRO, target=target, trigger={"every": "200ms"})
    launch = sink.launch()
    launch.wait_until(lambda: launch.has_passed({0: 20}))

    newer = [{"id": number, "what": "tea", "note": f"n{number}"} for number in range(20, 40)]
    stage.produce(source, ((0, None, registered.encode(source, _NEWER, row)) for row in newer))
    code, status = launch.wait(), launch.status
    assert code == ExitCode.FAILED
    assert status is not None
    assert status.error is not None
    assert "has got more columns since the launch began" in status.error.primary
    killed = sink.start()
    killed.wait_epochs(1)
    killed.kill(Part.DRIVER)
    killed.wait()
    sink.spec = {**sink.spec, "trigger": "available_now"}
    sink.run()

    found = {row["id"]: row["note"] for row in table.rows()}
    assert found == {number: f"n{number}" if number >= 20 else None for number in range(40)}
    assert len(table.rows()) == 40


def test_a_column_that_the_source_gets_is_told_where_no_table_is_altered(
    registered: Registered,
) -> None:
    stage, source = registered.stage, registered.source("told", ORDER, [{"id": 1, "what": "tea"}])
    sink = stage.sink("told", source, from_=AVRO, to={"format": "json"}, trigger={"every": "200ms"})
    launch = sink.launch()
    launch.wait_until(lambda: len(stage.read(sink.out)) == 1)

    stage.produce(source, [(0, None, registered.encode(source, _NEWER, {"id": 2, "what": "x", "note": "n"}))])
    launch.wait_until(lambda: len(stage.read(sink.out)) == 2)

    assert launch.stop() == ExitCode.OK
    told = f"version 2 of subject \"{source}-value\" has 'note', which this launch does not read"
    assert isinstance(launch, HostedLaunch)
    assert told in launch.log
    assert json.loads(stage.read(sink.out)[1].value or b"") == {"id": 2, "what": "x"}


@pytest.mark.parametrize("stage", WHO_WRITES, indirect=True)
def test_a_schema_that_turns_up_in_an_epoch_is_asked_for_and_no_row_is_lost_or_doubled(
    registered: Registered,
) -> None:
    newer = record("Order", id="long", what="string", note=["null", "string"])
    source = registered.source("evolved", ORDER, [{"id": 1, "what": "tea"}])
    elsewhere = f"{source}-of-a-producer-with-subjects-of-its-own"
    later = registered.encode(elsewhere, newer, {"id": 2, "what": "milk", "note": "new"})
    key = registered.encode(elsewhere, record("Key", at="long"), {"at": 7}, KEY)
    registered.register(f"{source}-key", record("Key", at="long"))
    registered.stage.produce(source, [(0, key, later)])
    key_as = {"column": "k", "format": "avro"}
    sink = registered.stage.sink(
        "evolved", source, from_={**AVRO, "key_as": key_as}, to=AVRO, select=["id", "what", "k.at AS at"]
    )

    status = sink.run()

    assert (status.rows, status.dead_total) == (2, 0)
    assert registered.values(sink) == [
        {"id": 1, "what": "tea", "at": None},
        {"id": 2, "what": "milk", "at": 7},
    ]


def test_an_incompatible_change_is_refused_by_field_before_anything_is_registered(
    registered: Registered,
) -> None:
    stage = registered.stage
    source = registered.source("change", ORDER, [{"id": 1, "what": "tea"}])
    to = {**AVRO, "topic": f"{source}-out", "key": ["id"], "key_format": "avro", "record": "shop.Out"}
    stage.sink("first", source, from_=AVRO, to=to).run()
    registered.level(f"{source}-out-value", "BACKWARD")

    values_only = {name: option for name, option in to.items() if name not in ("key", "key_format")}
    select = ["CAST(id AS string) AS id", "what", "length(what) AS size"]
    value = stage.sink("value", source, from_=AVRO, to=values_only, select=select)
    refused = value.fail(ExitCode.CONFIGURATION).error
    key = stage.sink("key", source, from_=AVRO, to={**to, "key": ["what"]})
    refused_key = key.fail(ExitCode.CONFIGURATION).error

    assert refused is not None
    assert f'incompatible with version 1 of subject "{source}-out-value" (BACKWARD)' in refused.detail
    assert "because field id is written as long and read as null or string" in refused.detail
    assert refused_key is not None
    assert "field what is new" in refused_key.detail
    assert "every key becomes another one" in refused_key.detail
    assert [registered.versions(f"{source}-out-{part}") for part in ("key", "value")] == [1, 1]
    assert not stage.topics() & {value.progress, key.progress}


def test_a_key_that_avro_lets_change_is_refused_because_each_would_become_another_one(
    registered: Registered,
) -> None:
    stage = registered.stage
    source = registered.source("wider", ORDER, [{"id": 1, "what": "tea"}])
    to = {**AVRO, "topic": f"{source}-out", "key": ["id"], "key_format": "avro", "envelope": "upsert"}
    stage.sink("int", source, from_=AVRO, to=to, select=["CAST(id AS int) AS id", "what"]).run()
    registered.level(f"{source}-out-key", "BACKWARD")
    wider = json.dumps(registered.newest(f"{source}-out-key")).replace('"int"', '"long"')

    refused = stage.sink("long", source, from_=AVRO, to=to, select=["id", "what"])
    error = refused.fail(ExitCode.CONFIGURATION).error

    assert registered.client.test_compatibility(f"{source}-out-key", Schema(wider, "AVRO"))
    assert error is not None
    assert "field id was int and is long, and with it every key becomes another one" in error.detail
    assert registered.versions(f"{source}-out-key") == 1


def test_subjects_follow_the_topic_whatever_the_sink_is_called(registered: Registered) -> None:
    source = registered.source("named", ORDER, [{"id": 1, "what": "tea"}])
    topic = f"pytest.Sales_{uuid.uuid4().hex[:8]}"
    to = {**AVRO, "topic": topic, "key": ["id"], "key_format": "avro"}

    registered.stage.sink("called-otherwise", source, from_=AVRO, to=to).run()

    found = [subject for subject in registered.client.get_subjects() if topic in subject]
    assert sorted(found) == [f"{topic}-key", f"{topic}-value"]


def test_a_compatible_change_is_registered_by_the_start(registered: Registered) -> None:
    stage = registered.stage
    source = registered.source("next", ORDER, [{"id": 1, "what": "tea"}])
    to = {**AVRO, "topic": f"{source}-out", "record": "shop.Out"}
    stage.sink("one", source, from_=AVRO, to=to).run()
    registered.level(f"{source}-out-value", "FULL")

    second = stage.sink("two", source, from_=AVRO, to=to, select=["id", "what", "length(what) AS size"])
    second.run()

    assert registered.versions(f"{source}-out-value") == 2
    assert registered.values(second)[-1] == {"id": 1, "what": "tea", "size": 3}


def test_a_change_that_is_killed_behind_its_registration_goes_on_by_the_same_version(
    registered: Registered,
) -> None:
    stage, rows = registered.stage, [{"id": number, "what": "tea"} for number in range(60)]
    source = registered.source("killed", ORDER, rows[:30])
    read = {**AVRO, "max_offsets_per_epoch": 5}
    sink = stage.sink("killed", source, from_=read, to={**AVRO, "record": "shop.Out"})
    sink.run()
    subject = f"{sink.out}-value"
    registered.level(subject, "FULL")
    stage.produce(source, ((0, None, registered.encode(source, ORDER, row)) for row in rows[30:]))
    sink.spec = {**sink.spec, "select": ["id", "what", "length(what) AS size"]}

    driver = sink.start(conf={"spark.sinks.driverEpochRows": "0"})
    driver.wait_epochs(2)
    driver.kill(Part.DRIVER)
    driver.wait()
    sink.run()

    assert registered.versions(subject) == 2
    added = [{**row, "size": 3} for row in rows[30:]]
    assert registered.values(sink) == [*rows[:30], *added]


def test_a_row_that_its_schema_does_not_take_is_set_aside(registered: Registered) -> None:
    stage = registered.stage
    rows = [{"id": 1, "what": "RED"}, {"id": 2, "what": "PINK"}, {"id": None, "what": "RED"}]
    loose = record("Loose", id=["null", "long"], what="string")
    source = registered.source("strict", loose, rows)
    strict = record("Strict", id="long", what={"type": "enum", "name": "Color", "symbols": ["RED"]})
    dead = f"{source}-dead"
    to = {**AVRO, "schema": json.dumps(strict), "auto_register": "check"}
    sink = stage.sink("strict", source, from_=AVRO, to=to, dead_letter={"topic": dead})

    status = sink.run()

    assert (status.rows, status.dead_total) == (1, 2)
    assert registered.values(sink) == [{"id": 1, "what": "RED"}]
    assert [_header(one, "error") for one in stage.read(dead)] == [
        "The value cannot be written: field what is none of RED.",
        "The value cannot be written: field id is null, and its schema says that it never is.",
    ]


def test_nothing_is_registered_where_the_spec_says_so(registered: Registered) -> None:
    source = registered.source("closed", ORDER, [{"id": 1, "what": "tea"}])
    sink = registered.stage.sink("closed", source, from_=AVRO, to={**AVRO, "auto_register": False})

    error = sink.fail(ExitCode.CONFIGURATION).error

    assert error is not None
    assert f'not registered under subject "{sink.out}-value", and auto_register is false' in error.detail
    assert registered.versions(f"{sink.out}-value") == 0


def test_a_stateful_query_reads_and_writes_avro(registered: Registered) -> None:
    source = registered.source("count", ORDER, [{"id": i, "what": "ab"[i % 2]} for i in range(5)])
    other = f"{source}-elsewhere"
    newer = record("Order", id="long", what="string", note=["null", "string"])
    late = registered.encode(other, newer, {"id": 9, "what": "b", "note": None})
    registered.stage.produce(source, [(0, None, late)])
    sink = registered.stage.sink(
        "count",
        source,
        from_=AVRO,
        to={**AVRO, "key": ["what"], "key_format": "avro"},
        query="SELECT what, count(*) AS n FROM source GROUP BY what",
        output_mode="update",
    )

    sink.run()

    assert sorted(registered.values(sink), key=str) == [{"what": "a", "n": 3}, {"what": "b", "n": 3}]
    assert sorted(registered.values(sink, KEY), key=str) == [{"what": "a"}, {"what": "b"}]


def test_the_columns_of_a_key_may_be_left_out_of_a_value(registered: Registered) -> None:
    source = registered.source("parted", ORDER, [{"id": 1, "what": "tea"}])
    to = {**AVRO, "key": ["id"], "key_format": "avro", "key_in_value": False, "headers": {"what": "what"}}
    sink = registered.stage.sink("parted", source, from_=AVRO, to=to)

    sink.run()

    assert registered.values(sink, KEY) == [{"id": 1}]
    assert registered.values(sink) == [{"what": "tea"}]
    assert [one.headers for one in registered.stage.read(sink.out)] == [(("what", b"tea"),)]


def test_a_registry_that_is_away_is_waited_for_and_then_named(registered: Registered) -> None:
    source = registered.source("away", ORDER, [])
    registered.stage.registry = RegistryOptions("registry", {"url": f"http://127.0.0.1:{free_port()}"})
    sink = registered.stage.sink("away", source, from_=AVRO, to={"format": "json"}, patience="1s")

    error = sink.fail(ExitCode.UNAVAILABLE).error

    assert error is not None
    assert "the schema registry at http://127.0.0.1:" in error.primary
    assert "`patience`" in error.detail


def test_a_schema_with_references_is_registered_by_its_record_and_a_delete_is_a_real_null(
    registered: Registered,
) -> None:
    source = registered.source("refers", ORDER, [{"id": 1, "what": "Bern"}])
    registered.stage.produce(source, [(0, b"gone", None)])
    registered.register(f"{source}-address", record("Address", city="string"))
    basket = record("Basket", id="long", address="shop.Address")
    reference = {"name": "shop.Address", "subject": f"{source}-address", "version": 1}
    schema = {"inline": json.dumps(basket), "references": [reference]}
    to = {**AVRO, "subjects": "topic_record_name", "schema": schema, "tombstones": True}
    select = ["id", "CASE WHEN id IS NOT NULL THEN named_struct('city', what) END AS address"]
    sink = registered.stage.sink("refers", source, from_=AVRO, to=to, select=select)

    sink.run()

    assert registered.values(sink) == [{"id": 1, "address": {"city": "Bern"}}, None]
    assert [one.key for one in registered.stage.read(sink.out)] == [None, b"gone"]
    assert registered.versions(f"{sink.out}-shop.Basket") == 1


def test_what_counts_in_another_unit_is_set_aside_and_never_read_as_if_it_were_the_same(
    registered: Registered,
) -> None:
    def paid(at: str, scale: int) -> dict[str, object]:
        amount = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": scale}
        return record("Paid", id="long", at={"type": "long", "logicalType": at}, amount=amount)

    at = dt.datetime(2024, 2, 29, 23, 59, 59, 123000, tzinfo=dt.UTC)
    row = {"at": at, "amount": Decimal("1.50")}
    source = registered.source("units", paid("timestamp-millis", 2), [{"id": 1, **row}])
    for number, tree in enumerate((paid("timestamp-millis", 3), paid("timestamp-micros", 2)), 2):
        value = registered.encode(source, tree, {"id": number, **row})
        registered.stage.produce(source, [(0, None, value)])
    dead = f"{source}-dead"
    sink = registered.stage.sink("units", source, from_=AVRO, to=AVRO, dead_letter={"topic": dead})

    status = sink.run()

    assert (status.rows, status.dead_total) == (1, 2)
    assert registered.values(sink) == [{"id": 3, **row}]
    millis = "field at is written as long (timestamp-millis) and read as long (timestamp-micros)"
    cents = "field amount is written as decimal(9,3) and read as decimal(9,2)"
    errors = [_header(one, "error").partition(", which ")[2] for one in registered.stage.read(dead)]
    assert errors == [f"cannot be read: {millis}.", f"cannot be read: {millis}; {cents}."]


def test_values_without_a_header_that_look_as_if_they_had_one_hold_no_epoch_up(
    registered: Registered,
) -> None:
    source = registered.source("raw", ORDER, [{"id": 1, "what": "tea"}])
    good = registered.encode(source, ORDER, {"id": 2, "what": "milk"})
    ids = [*range(2_000_000_000, 2_000_000_040), 2**31, 2**32 - 1]
    raw = [b"\x00" + number.to_bytes(4, "big") + good[5:] for number in ids]
    registered.stage.produce(source, ((0, None, value) for value in [*raw, good]))
    dead = f"{source}-dead"
    sink = registered.stage.sink("raw", source, from_=AVRO, to=AVRO, dead_letter={"topic": dead})

    status = sink.run()

    assert (status.rows, status.dead_total) == (2, len(raw))
    assert registered.values(sink) == [{"id": 1, "what": "tea"}, {"id": 2, "what": "milk"}]
    letters = registered.stage.read(dead)
    assert [one.value for one in letters] == raw
    errors = [_header(one, "error") for one in letters]
    assert errors[-2:] == [
        f"The value has schema id {number}, which no schema has: the largest is {2**31 - 1}."
        for number in ids[-2:]
    ]
    away = f"which the schema registry at {registered.registry.url} does not know."
    asked = [error for error in errors if error.endswith(away)]
    assert len(asked) == UNKNOWN_MAX
    assert sum("which was not asked for: " in error for error in errors) == 40 - UNKNOWN_MAX


def test_a_start_that_another_one_has_overtaken_registers_nothing(registered: Registered) -> None:
    source = registered.source("overtaken", ORDER, [])
    sink = registered.stage.sink("overtaken", source, from_=AVRO, to=AVRO)
    spec = sink.parsed
    registered.stage.create_topic(sink.out)
    registered.stage.create_topic(sink.progress, 1, **{"cleanup.policy": "compact"})
    output = {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]}
    with (
        SinkObserver(spec, registered.stage.connections()) as overtaken,
        SinkObserver(spec, registered.stage.connections()) as other,
    ):
        for start in (overtaken, other):
            aware = start.connector.as_schema_registry_aware()
            assert aware is not None
            assert [plan.may_start for plan in aware.plan(output)] == [True]
            start.connector.open(Run.of(spec), [partition_writer(0)], start.observe())
        at = {0: 0}
        announced = ProgressRecord(1, "us", "run", 0, at, at, overtaken.observe().identities())

        with pytest.raises(FencedError, match="another start of sink"):
            overtaken.connector.announce(announced)

    assert registered.versions(f"{sink.out}-value") == 0


def test_a_schema_of_another_kind_sets_its_records_aside(registered: Registered) -> None:
    source = registered.source("kind", ORDER, [{"id": 1, "what": "tea"}])
    draft = {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}
    other = registered.client.register_schema(f"{source}-other", Schema(json.dumps(draft), "JSON"))
    registered.stage.produce(source, [(0, None, header(other) + b"{}")])
    dead = f"{source}-dead"
    sink = registered.stage.sink("kind", source, from_=AVRO, to=AVRO, dead_letter={"topic": dead})

    status = sink.run()

    assert (status.rows, status.dead_total) == (1, 1)
    [letter] = registered.stage.read(dead)
    assert _header(letter, "error") == f"The value has schema id {other}, which is of kind JSON."
