"""Dead letters that stand in a table are replayed by way of a topic that has each of them once."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from psycopg import sql

from airflow_provider_sinks.connectors.kafka.letter_copies import KafkaLetterCopies
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.core.dead_letters.letter import ErrorClass, Letter, Origin
from airflow_provider_sinks.core.errors import FencedError, RefusedError
from tests.faults.parts import Part
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
from tests.live.tables import KINDS, Table

_AS_TEXT = "SELECT CAST(id AS string) AS id, name FROM source"


@pytest.fixture(params=KINDS)
def table(request: pytest.FixtureRequest, stage: Stage, schema: str, tmp_path: Path) -> Table:
    """A table of each kind."""
    return Table(stage, request.param, schema, tmp_path)


@pytest.fixture
def in_postgres(stage: Stage, schema: str, tmp_path: Path) -> Table:
    """A table in Postgres."""
    return Table(stage, "postgres", schema, tmp_path)


def _set_aside(table: Table, *partitions: list[KeyValue], **spec: Any) -> Sink:
    """Run a sink that sets aside what is not of its schema, and mend that."""
    source = table.stage.source(f"{table.kind}-letters", dict(enumerate(partitions)))
    sink = table.stage.sink(
        f"{table.kind}-letters", source, from_=NARROW, **{"query": _AS_TEXT, **table.spec, **spec}
    )
    sink.run()
    options = {**sink.spec["source"]["kafka"], **WIDE, "max_offsets_per_epoch": 50}  # type: ignore[index]  # a mapping
    sink.spec = {**sink.spec, "source": {"kafka": options}}
    return sink


def _copies(sink: Sink) -> str:
    return f"_sinks-letters-{sink.parsed.name}"


def test_letters_of_three_errors_are_replayed_once_behind_a_kill(table: Table) -> None:
    sink = _set_aside(
        table,
        [*good(0, 10), *of_another_type(0, 60), *without_name(1000, 60), *cut_off(2000, 30)],
        [*of_another_type(60, 60), *good(10, 10), *without_name(1060, 60), *cut_off(2030, 30)],
    )
    assert len(letters_of(sink)) == 300

    begun = begin_replay(sink)
    replay = replaying(table.stage, begun.sink)
    driver = replay.start(conf={"spark.sinks.driverEpochRows": "0"})
    driver.wait_epochs(2)
    driver.kill(Part.DRIVER)
    driver.wait()
    before = table.ids().total()
    again = begin_replay(sink)
    status = replay.run()

    assert str(begun.plan.steps[0]).startswith("copy 300 dead letters of dead-letter table")
    assert (again.plan.steps, again.sink) == ((), replay.parsed)
    assert 20 < before < 260
    mended = {f"t{n}" for n in range(120)} | {str(n) for n in range(1000, 1120)}
    assert table.ids() == dict.fromkeys({*map(str, range(20)), *mended}, 1)
    assert (status.rows_total, status.dead_total) == (240, 60)
    back = [letter for letter in letters_of(sink) if letter.origin.replays == 1]
    places = {(0, 130 + n) for n in range(30)} | {(1, 130 + n) for n in range(30)}
    assert Counter((one.origin.partition, one.origin.offset) for one in back) == dict.fromkeys(places, 1)
    assert {(one.sink, one.origin.topic, one.value[:6]) for one in back if one.value} == {
        (sink.parsed.name, sink.source, b'{"id":')
    }
    third = begin_replay(sink)
    assert third.plan.what.endswith(": all: 60 letters (60 parse)"), "those that came back, and no other"
    replaying(table.stage, third.sink).run()
    assert table.ids().total() == 260
    assert Counter(letter.origin.replays for letter in letters_of(sink)) == {0: 300, 1: 60, 2: 60}


def test_a_dry_run_says_what_would_be_copied_and_leaves_no_topic(in_postgres: Table) -> None:
    sink = _set_aside(in_postgres, [*of_another_type(0, 4), *cut_off(9, 2)])

    dry = begin_replay(sink, dry_run=True, error="field id is not int")

    assert dry.plan.what.endswith("'field id is not int': 4 letters (4 parse)")
    copy, fence, announce = map(str, dry.plan.steps)
    dead = f'dead-letter table "{in_postgres.schema}.dead"'
    assert copy == f'copy 4 dead letters of {dead} into topic "{_copies(sink)}"'
    assert (fence, announce) == (
        "fence 2 writers: driver, p0",
        "announce generation 1 at source offsets 0: 0",
    )
    assert _copies(sink) not in in_postgres.stage.topics()
    nothing = begin_replay(sink, error="there is no such error")
    assert nothing.sink is None
    assert _copies(sink) not in in_postgres.stage.topics()


def test_offsets_are_those_of_the_source_and_what_was_taken_is_left_out(in_postgres: Table) -> None:
    sink = _set_aside(in_postgres, of_another_type(0, 6), of_another_type(10, 6))

    for asked in ("1:2-4", "0:5, 1:3-6", None):
        replaying(in_postgres.stage, begin_replay(sink, offsets=asked).sink).run()

    assert in_postgres.ids() == dict.fromkeys((f"t{n}" for n in [*range(6), *range(10, 16)]), 1)


def test_what_the_table_refused_goes_in_once_it_takes_it(in_postgres: Table) -> None:
    sink = _set_aside(in_postgres, good(1, 2))
    constraint = sql.SQL("ALTER TABLE {} ADD CONSTRAINT few CHECK (length(id) < 3)")
    table = sql.Identifier(in_postgres.schema, "orders")
    with in_postgres.stage.postgres.connect() as connection:
        connection.execute(constraint.format(table))
    in_postgres.stage.produce(sink.source, [(0, *one) for one in of_another_type(500, 3)])
    assert sink.run().dead_total == 3
    with in_postgres.stage.postgres.connect() as connection:
        connection.execute(sql.SQL("ALTER TABLE {} DROP CONSTRAINT few").format(table))

    status = replaying(in_postgres.stage, begin_replay(sink, error="refused").sink).run()

    assert (status.rows_total, status.dead_total) == (3, 0)
    assert in_postgres.ids() == dict.fromkeys(("1", "2", "t500", "t501", "t502"), 1)


def test_a_row_beside_others_of_its_record_is_not_replayed(in_postgres: Table) -> None:
    several = "SELECT explode(split(name, ',')) AS id, name FROM source"
    sink = _set_aside(in_postgres, good(1, 1), query=several)
    with in_postgres.stage.postgres.connect() as connection:
        limit = sql.SQL("ALTER TABLE {} ADD CONSTRAINT few CHECK (length(id) < 3)")
        connection.execute(limit.format(sql.Identifier(in_postgres.schema, "orders")))
    in_postgres.stage.produce(sink.source, [(0, "k", '{"id": "x", "name": "a,long,b"}')])
    assert sink.run().dead_total == 1
    sink.spec = {**sink.spec, "query": _AS_TEXT}

    begun = begin_replay(sink)

    assert begun.sink is None
    assert begun.plan.warnings[0].startswith("1 letter left out")
    assert in_postgres.ids() == dict.fromkeys(("n", "a", "b"), 1)


def test_a_letter_that_somebody_deleted_is_not_replayed_though_it_was_copied(in_postgres: Table) -> None:
    sink = _set_aside(in_postgres, of_another_type(0, 6))
    begin_replay(sink)
    dead = sql.Identifier(in_postgres.schema, "dead")
    with in_postgres.stage.postgres.connect() as connection:
        connection.execute(sql.SQL("DELETE FROM {} WHERE source_offset IN (1, 2, 5)").format(dead))

    begun = begin_replay(sink)
    replaying(in_postgres.stage, begun.sink).run()

    assert begun.plan.what.endswith(": all: 3 letters (3 parse)")
    assert in_postgres.ids() == dict.fromkeys(("t0", "t3", "t4"), 1)


def test_copies_that_are_gone_are_a_reason_to_stop_until_somebody_says_to_forget(in_postgres: Table) -> None:
    sink = _set_aside(in_postgres, of_another_type(0, 3))
    replaying(in_postgres.stage, begin_replay(sink).sink).run()
    in_postgres.stage.delete_topic(_copies(sink))

    with pytest.raises(RefusedError, match="source topic") as refused:
        begin_replay(sink)
    replaying(in_postgres.stage, begin_replay(sink, forget=True).sink).run()

    assert refused.value.hint.endswith("where it is not known any more: forget.")
    assert in_postgres.ids() == dict.fromkeys((f"t{n}" for n in range(3)), 2)


def _letter(number: int, value: bytes = b"v") -> Letter:
    origin = Origin("raw", 0, number, 99, (("trace", b"\xff"), ("none", None)))
    return Letter(
        (0, 0),
        1_000 + number,
        "wrong: süß",
        ErrorClass.REFUSED,
        origin,
        b"k",
        value,
        "orders",
        1,
        2,
        "digest",
    )


def _kafka(stage: Stage) -> KafkaOptions:
    return stage.connections().get("kafka", KafkaOptions)


@pytest.fixture
def copies(stage: Stage) -> Iterator[KafkaLetterCopies]:
    """Copies of nothing yet."""
    name = f"orders-{uuid.uuid4().hex[:8]}-replay"
    with KafkaLetterCopies(_kafka(stage), f"_sinks-letters-{name}", name) as made:
        yield made


def test_a_copy_says_what_the_letter_says_and_is_made_once(copies: KafkaLetterCopies) -> None:
    letters = [_letter(number) for number in range(2_500)]

    copies.add(lambda: letters[:2_000])
    copies.add(lambda: letters)

    found = list(copies.all())
    assert [replace(one, place=(0, 0)) for one in found] == letters
    assert {one.place[0] for one in found} == {0}


def test_large_letters_are_copied_whole(copies: KafkaLetterCopies) -> None:
    letters = [_letter(number, bytes(20_000_000)) for number in range(9)]

    copies.add(lambda: letters)

    assert [len(one.value or b"") for one in copies.all()] == [20_000_000] * 9


def test_of_two_who_copy_the_earlier_one_ends_and_nothing_is_there_twice(
    stage: Stage, copies: KafkaLetterCopies
) -> None:
    letters = [_letter(number) for number in range(30)]
    name = copies._topic.removeprefix("_sinks-letters-")

    def overtaken() -> Iterator[Letter]:
        yield from letters[:20]
        with KafkaLetterCopies(_kafka(stage), f"_sinks-letters-{name}", name) as other:
            other.add(lambda: letters)
        yield from letters[20:]

    with pytest.raises(FencedError):
        copies.add(overtaken)

    assert [json.loads(str(one.origin.offset)) for one in copies.all()] == list(range(30))
