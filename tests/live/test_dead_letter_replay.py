"""Dead letters of a Kafka sink are replayed by a sink of their own: each leads to its row once."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_sinks.core.dead_letters.letter import ErrorClass
from airflow_provider_sinks.core.errors import ExitCode, RefusedError
from tests.faults.parts import Part
from tests.live.registered import KEY, Registered, record
from tests.live.replaying import (
    NARROW,
    WIDE,
    begin_replay,
    cut_off,
    good,
    letters_of,
    of_another_type,
    replaying,
    without_name,
)
from tests.live.stage import KeyValue, Sink, Stage

_AVRO = {"format": "avro", "registry": "registry"}
_LETTERS = 1000


def _ids(stage: Stage, topic: str) -> Counter[str]:
    return Counter(str(json.loads(record.value or b"{}")["id"]) for record in stage.read(topic))


@pytest.fixture
def set_aside(stage: Stage) -> Callable[..., Sink]:
    """Make a sink that has set these records aside, and mend its spec."""

    def run(suffix: str, *partitions: list[KeyValue], **spec: Any) -> Sink:
        source = stage.source(suffix, dict(enumerate(partitions)))
        sink = stage.sink(
            suffix, source, from_=NARROW, dead_letter={"topic": f"{source}-dead", "partitions": 2}, **spec
        )
        sink.run()
        options = {**sink.spec["source"]["kafka"], **WIDE}  # type: ignore[index]  # a mapping
        sink.spec = {**sink.spec, "source": {"kafka": options}}
        return sink

    return run


def test_a_thousand_letters_of_three_errors_are_replayed_once_behind_a_kill(
    stage: Stage, set_aside: Callable[..., Sink]
) -> None:
    sink = set_aside(
        "thousand",
        [*good(0, 50), *of_another_type(0, 200), *without_name(1000, 200), *cut_off(2000, 100)],
        [*of_another_type(200, 200), *good(50, 50), *without_name(1200, 200), *cut_off(2100, 100)],
    )
    assert Counter(letter.error_class for letter in letters_of(sink)) == {ErrorClass.PARSE: _LETTERS}
    small = {**sink.spec["source"]["kafka"], "max_offsets_per_epoch": 100}  # type: ignore[index]  # a mapping
    sink.spec = {**sink.spec, "source": {"kafka": small}}

    replay = replaying(stage, begin_replay(sink).sink)
    driver = replay.start(conf={"spark.sinks.driverEpochRows": "0"})
    driver.wait_epochs(3)
    driver.kill(Part.DRIVER)
    driver.wait()
    before = sum(_ids(stage, sink.out).values())
    again = begin_replay(sink)
    assert (again.plan.steps, again.sink) == ((), replay.parsed)
    status = replay.run()

    mended = {f"t{n}" for n in range(400)} | {str(n) for n in range(1000, 1400)}
    assert 100 < before < 900
    assert _ids(stage, sink.out) == dict.fromkeys({*map(str, range(100)), *mended}, 1)
    assert (status.rows_total, status.dead_total) == (800, 200)
    letters = letters_of(sink)
    back = [letter for letter in letters if letter.origin.replays == 1]
    assert len(letters) == _LETTERS + 200
    broken = [(partition, offset) for partition in (0, 1) for offset in range(450, 550)]
    assert Counter((one.origin.partition, one.origin.offset) for one in back) == dict.fromkeys(broken, 1)
    assert {(one.sink, one.origin.topic) for one in back} == {(sink.parsed.name, sink.source)}


def test_what_was_replayed_is_left_out_of_later_replays_whatever_they_ask_for(
    stage: Stage, set_aside: Callable[..., Sink]
) -> None:
    sink = set_aside("ledger", [*of_another_type(0, 20), *without_name(100, 20), *cut_off(200, 5)])

    first = begin_replay(sink, error="field id is not int")
    replaying(stage, first.sink).run()
    after_first = _ids(stage, sink.out)
    second = begin_replay(sink)
    replaying(stage, second.sink).run()
    third = begin_replay(sink, error=["parse"])

    assert first.plan.what.endswith("'field id is not int': 20 letters (20 parse)")
    assert after_first == dict.fromkeys((f"t{n}" for n in range(20)), 1)
    assert second.plan.what.endswith(": all: 25 letters (25 parse)")
    assert _ids(stage, sink.out) == after_first + Counter({str(n): 1 for n in range(100, 120)})
    assert third.plan.what.endswith(": 5 letters (5 parse)"), "those that came back, and no other"
    replaying(stage, third.sink).run()
    assert Counter(letter.origin.replays for letter in letters_of(sink)) == {0: 45, 1: 5, 2: 5}


def test_rows_beside_one_that_was_set_aside_are_not_written_again(stage: Stage) -> None:
    whole, other = "2023-11-14T22:13:20Z", "2023-11-14T22:13:21Z"
    records = [
        json.dumps({"id": 1, "items": [whole, None, other]}),
        json.dumps({"id": "two", "items": [whole]}),
    ]
    source = stage.source("several", {0: [("k", record) for record in records]})
    sink = stage.sink(
        "several",
        source,
        from_={"schema": "id int, items array<timestamp>"},
        to={"timestamp": {"column": "at"}},
        query="SELECT id, explode(items) AS at FROM source",
        dead_letter={"topic": f"{source}-dead"},
    )
    sink.run()
    assert [letter.error_class for letter in letters_of(sink)] == [ErrorClass.CONVERT, ErrorClass.PARSE]
    options = {**sink.spec["source"]["kafka"], "schema": "id string, items array<timestamp>"}  # type: ignore[index]  # a mapping
    sink.spec = {**sink.spec, "source": {"kafka": options}}

    begun = begin_replay(sink)
    status = replaying(stage, begun.sink).run()

    assert _ids(stage, sink.out) == {"1": 2, "two": 1}
    assert (status.rows_total, status.dead_total) == (1, 0)
    assert begun.plan.warnings[0].startswith("1 letter left out")
    assert [letter.can_be_replayed for letter in letters_of(sink)] == [False, True]


def test_a_replay_and_the_running_sink_do_not_disturb_each_other(
    stage: Stage, set_aside: Callable[..., Sink]
) -> None:
    sink = set_aside("beside", of_another_type(0, 30))
    sink.spec = {**sink.spec, "trigger": {"every": "200ms"}}
    running = sink.launch()
    running.wait_until(lambda: running.status is not None and bool(running.status.run))

    replay = replaying(stage, begin_replay(sink).sink)
    status = replay.run()
    stage.produce(sink.source, [(0, "k", '{"id": 7, "name": "later"}')])
    running.wait_until(lambda: "7" in _ids(stage, sink.out))

    assert running.stop() == ExitCode.OK
    assert (status.rows_total, status.dead_total) == (30, 0)
    assert _ids(stage, sink.out) == dict.fromkeys(["7", *(f"t{n}" for n in range(30))], 1)
    assert len({record.run for _, record in stage.progress(sink)}) == 2, "nobody had to start it again"
    assert max(record.rows_total for _, record in stage.progress(replay)) == 30


def test_a_replay_that_is_started_twice_takes_each_letter_once(
    stage: Stage, set_aside: Callable[..., Sink]
) -> None:
    sink = set_aside("twice", [*of_another_type(0, 280), *cut_off(1000, 20)])
    small = {**sink.spec["source"]["kafka"], "max_offsets_per_epoch": 20}  # type: ignore[index]  # a mapping
    sink.spec = {**sink.spec, "source": {"kafka": small}}

    replay = replaying(stage, begin_replay(sink).sink)
    first = replay.start()
    first.wait_epochs(2)
    first.signal(signal.SIGSTOP)  # it could be through before the second has begun
    second = replay.run()
    first.signal(signal.SIGCONT)

    assert first.wait() == ExitCode.FENCED
    assert (second.rows_total, second.dead_total) == (280, 20)
    assert _ids(stage, sink.out) == dict.fromkeys((f"t{n}" for n in range(280)), 1)
    assert Counter(letter.origin.replays for letter in letters_of(sink)) == {0: 300, 1: 20}


def test_a_launch_of_a_replay_that_was_followed_by_another_is_refused(
    stage: Stage, set_aside: Callable[..., Sink]
) -> None:
    sink = set_aside("followed", of_another_type(0, 4))
    first = begin_replay(sink, error="parse")
    second = begin_replay(sink)

    refused = replaying(stage, first.sink).fail(ExitCode.REFUSED)
    replaying(stage, second.sink).run()

    assert refused.error is not None
    assert "is not in force" in refused.error.primary
    assert _ids(stage, sink.out) == dict.fromkeys((f"t{n}" for n in range(4)), 1)


def test_older_rows_replace_newer_ones_only_where_that_is_said(set_aside: Callable[..., Sink]) -> None:
    target = {"key": "name", "config": {"cleanup.policy": "compact"}}
    sink = set_aside("older", of_another_type(0, 2), to=target)

    with pytest.raises(RefusedError, match="keeps the newest row of each key") as refused:
        begin_replay(sink)
    said = begin_replay(sink, overwrite=True)

    assert "overwrite" in refused.value.hint
    assert "replayed rows come behind rows of the same key" in said.plan.warnings[0]


def test_letters_of_the_release_before_are_read_and_replayed(
    stage: Stage, set_aside: Callable[..., Sink]
) -> None:
    sink = set_aside("before", of_another_type(0, 1))
    dead = f"{sink.source}-dead"
    told = [
        ("error", b"The value does not fit the schema: field id is not int."),
        ("source.topic", sink.source.encode()),
        ("source.partition", b"0"),
        ("source.offset", b"77"),
    ]
    digested = [*told, ("value.bytes", b"9"), ("value.sha256", b"0" * 64)]
    others = [("error", b"x"), ("source.topic", b"another"), ("source.offset", b"1")]
    _produce(stage, dead, b'{"id": "old", "name": "n"}', told)
    _produce(stage, dead, None, digested)
    _produce(stage, dead, b'{"id": "not ours", "name": "n"}', others)

    replaying(stage, begin_replay(sink, error="parse").sink).run()

    old = next(letter for letter in letters_of(sink) if letter.origin.offset == 77)
    assert (old.error_class, old.told_class, old.sink) == (ErrorClass.PARSE, None, "")
    assert _ids(stage, sink.out) == {"t0": 1, "old": 1}


def test_letters_of_an_avro_sink_are_read_by_the_schemas_of_its_source(registered: Registered) -> None:
    stage, order = registered.stage, record("Order", id="long", what="string")
    source = registered.source("avro", order, [{"id": 1, "what": "RED"}, {"id": 2, "what": "PINK"}])
    key = registered.encode(source, record("Key", at="long"), {"at": 7}, KEY)
    blue = registered.encode(source, order, {"id": 3, "what": "BLUE"})
    stage.produce(source, [(0, key, blue), (0, key, b"no Avro")])
    read = {**_AVRO, "key_as": {"column": "k", "format": "avro"}}
    red = {"type": "enum", "name": "Color", "symbols": ["RED"]}
    strict = record("Strict", id="long", what=red, at=["null", "long"])
    sink = stage.sink(
        "avro",
        source,
        from_=read,
        to={**_AVRO, "schema": json.dumps(strict)},
        select=["id", "what", "k.at AS at"],
        dead_letter={"topic": f"{source}-dead"},
    )
    assert (sink.run().rows, len(letters_of(sink))) == (1, 3)
    target = dict(sink.spec["target"]["kafka"])  # type: ignore[index]  # a mapping
    del target["schema"]
    sink.spec = {**sink.spec, "target": {"kafka": target}}

    status = replaying(stage, begin_replay(sink).sink).run()

    assert (status.rows_total, status.dead_total) == (2, 1)
    assert registered.values(sink) == [
        {"id": 1, "what": "RED", "at": None},
        {"id": 2, "what": "PINK", "at": None},
        {"id": 3, "what": "BLUE", "at": 7},
    ]
    assert registered.versions(f"{source}-dead-value") == 0
    [back] = [letter for letter in letters_of(sink) if letter.origin.replays == 1]
    assert (back.origin.topic, back.origin.offset) == (source, 3)
    assert (
        back.error
        == "The value has no magic byte: it is not in Confluent's wire format, which begins with 0."
    )


def _produce(stage: Stage, topic: str, value: bytes | None, headers: list[tuple[str, bytes]]) -> None:
    from confluent_kafka import Producer

    producer = Producer(stage.client)
    producer.produce(topic, key=b"k", value=value, headers=[*headers], partition=0)
    assert producer.flush(30) == 0
