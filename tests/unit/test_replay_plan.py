"""What a replay begins, goes on with or refuses, by what is seen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_provider_sinks.connectors.kafka.spec import kafka_sink
from airflow_provider_sinks.core.dead_letters.letter import ErrorClass, Letter, Origin
from airflow_provider_sinks.core.dead_letters.replay import Replay, Selection, Taken, replay_of
from airflow_provider_sinks.core.decision.facts import Observation
from airflow_provider_sinks.core.errors import ConfigurationError, RefusedError, UnavailableError
from airflow_provider_sinks.core.lifecycle.new_generation import Situation, new_announcement
from airflow_provider_sinks.core.lifecycle.replay import ReplayRequest, begun, plan_replay, replaying_sink
from airflow_provider_sinks.core.lifecycle.steps import Announce, Create, Fence, Plan
from airflow_provider_sinks.core.progress.history import NO_HISTORY
from airflow_provider_sinks.core.progress.identity import Identities, Identity
from airflow_provider_sinks.core.schemas.subjects import Part
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.core.spec.source import KafkaSource
from tests.facts import DATA, PROGRESS, SOURCE, history, missing, observation, present, unseen

AVRO = {"format": "avro", "registry": "registry"}
BASE = replaying_sink(
    SinkSpec.parse(
        {"name": "orders", "source": "src/raw", "target": "dst/orders-out", "dead_letter": "orders-in"}
    )
)
IDENTITIES = Identities(SOURCE, DATA, PROGRESS, SOURCE)
ALL = ReplayRequest(Selection())
PARSE = ReplayRequest(Selection(errors=("parse",)))
UNTIL = {0: 100, 1: 100}


def ran(replay: Replay, *, dead_total: int = 0, **changes: Any) -> Observation:
    """Return what is seen behind a replay that has looked at 50 letters of both partitions."""
    spec = BASE.with_replay(replay).to_json()
    known = history(identities=IDENTITIES, spec=spec, dead_total=dead_total)
    return observation(**{"history": known, "dead_letter": present(SOURCE), **changes})


def recorded(ask: ReplayRequest = ALL, until: int = 50, **more: Any) -> Replay:
    return Replay(sink="orders", topic="raw", selection=ask.selection, until={0: until, 1: until}, **more)


def letter(kind: ErrorClass | None, offset: int) -> Letter:
    return Letter((0, offset), 1, "x", kind, Origin("raw", 0, 1), None, b"v")


def taken(selection: Selection, below: int, topic: Identity = SOURCE) -> Taken:
    return Taken(selection=selection, below={0: below, 1: below}, topic=topic.told_apart)


def planned(seen: Observation, ask: ReplayRequest = ALL) -> tuple[Plan, Replay]:
    situation = Situation(BASE, seen, "us")
    plan = plan_replay(situation, ask)
    return plan, begun(plan, situation)


def test_the_first_replay_takes_all_that_is_there_and_says_so_in_its_record() -> None:
    seen = unseen(dead_letter=present(SOURCE), data=present(DATA))

    plan, replay = planned(seen)

    assert replay == Replay(sink="orders", topic="raw", until=UNTIL)
    fence, make, announce = plan.steps
    assert (type(fence), type(make)) == (Fence, Create)
    assert isinstance(announce, Announce)
    assert (announce.generation, announce.positions) == (1, {0: 0, 1: 0})
    there = Situation(BASE, replace(seen, progress=present(PROGRESS)), "us")
    assert replay_of(new_announcement(there, announce, "run").spec) == replay


def replayed(source: dict[str, Any]) -> KafkaSource:
    target = {"kafka": {"connection": "dst", "topic": "orders-out"}}
    given = {"kafka": {"connection": "src", "topic": "raw", **source}}
    spec = {"name": "orders", "source": given, "target": target, "dead_letter": "orders-in"}
    return replaying_sink(SinkSpec.parse(spec)).source.kafka


def test_letters_are_read_as_the_records_that_they_were() -> None:
    given = {
        "schema": "id int",
        "required": ["id"],
        "key_as": {"column": "k", "format": "text"},
        "max_offsets_per_epoch": 7,
        "start": "latest",
        "options": {"kafkaConsumer.pollTimeoutMs": 5000},
    }
    before = KafkaSource.model_validate({"connection": "src", "topic": "raw", **given})

    found = replayed(given)

    own = {"connection": "dst", "topic": "orders-in", "start": "earliest", "watermark": None}
    assert found == before.model_copy(update=own)


@pytest.mark.parametrize(
    ("naming", "pinned"),
    [
        ({}, {"subjects": "raw-{part}"}),
        ({"subjects": "{topic}.{record}", "schema": {"subject": "s"}}, {"subjects": "raw.{record}"}),
        ({"subjects": "{topic}"}, {"schema": {"subject": "raw", "references": []}}),
    ],
)
def test_subjects_of_letters_are_those_of_the_source(naming: dict[str, Any], pinned: dict[str, Any]) -> None:
    found = replayed({**AVRO, **naming}).model_dump(mode="json", by_alias=True, exclude_none=True)

    assert {**found, **pinned} == found


def test_rows_of_a_replay_are_of_the_record_that_the_sink_writes() -> None:
    registered = {"kafka": {"connection": "dst", "topic": "out", **AVRO}}
    sink = SinkSpec.parse(
        {"name": "orders", "source": "src/raw", "target": registered, "dead_letter": "orders-in"}
    )
    again = replaying_sink(sink).with_replay(recorded())

    assert (
        kafka_sink(again).record_name(Part.VALUE)
        == kafka_sink(sink).record_name(Part.VALUE)
        == "sinks.orders"
    )


def test_a_replay_that_is_asked_for_again_goes_on_within_its_bounds() -> None:
    before = recorded(PARSE, until=80)

    plan, replay = planned(ran(before), PARSE)

    assert (plan.steps, replay) == ((), before)
    assert "goes on with the replay that it has begun: error 'parse'" in plan.what


def test_another_one_begins_a_generation_that_leaves_out_what_was_looked_at() -> None:
    plan, replay = planned(ran(recorded(PARSE, until=80)), ALL)

    assert (replay.selection, replay.until) == (ALL.selection, UNTIL)
    assert replay.done == (taken(PARSE.selection, 50),)
    last = plan.steps[-1]
    assert isinstance(last, Announce)
    assert (last.generation, last.replay) == (2, replay)


EXPLODED = replaying_sink(
    SinkSpec.parse(
        {
            "name": "orders",
            "source": {"kafka": {"connection": "src", "topic": "raw", "schema": "items array<int>"}},
            "query": "SELECT explode(items) AS item FROM source",
            "target": "dst/orders-out",
            "dead_letter": "orders-in",
        }
    )
)


def test_where_a_record_may_lead_to_several_rows_only_those_without_any_are_taken() -> None:
    seen = unseen(dead_letter=present(SOURCE), data=present(DATA))
    situation = Situation(EXPLODED, seen, "us")

    plan = plan_replay(situation, ALL)

    replay = begun(plan, situation)
    assert replay.selection == Selection(without_rows=True)
    assert not replay.takes(letter(ErrorClass.TOO_LARGE, 7))
    assert plan.what.endswith(": all, of records that have led to no row")


def test_letters_that_such_a_replay_left_out_can_be_taken_once_the_query_is_another() -> None:
    before = recorded(ReplayRequest(Selection(without_rows=True)))

    _, replay = planned(ran(before))

    assert replay.takes(letter(ErrorClass.TOO_LARGE, 7))
    assert not replay.takes(letter(ErrorClass.PARSE, 7))


def test_letters_at_offsets_that_were_lost_are_taken_again_only_where_a_person_says_so() -> None:
    shorter = ran(recorded(), source=present(SOURCE, high={0: 30, 1: 50}))

    with pytest.raises(RefusedError, match="ends before the place"):
        planned(shorter)
    assert planned(shorter, replace(ALL, forget=True))[1].done == ()


def test_behind_a_whole_replay_the_same_again_takes_what_came_since() -> None:
    before = recorded(done=(taken(PARSE.selection, 9),))

    _, replay = planned(ran(before))

    assert replay.until == UNTIL
    assert replay.done == (*before.done, taken(ALL.selection, 50))


def test_what_a_record_of_the_release_before_says_was_taken_is_of_its_topic() -> None:
    before = recorded(done=(Taken(selection=PARSE.selection, below={0: 9, 1: 9}),))

    _, replay = planned(ran(before))

    assert replay.done == (taken(PARSE.selection, 9), taken(ALL.selection, 50))


def test_another_topic_of_the_name_holds_other_letters() -> None:
    anew = present(replace(SOURCE, id="another"))

    plan, replay = planned(ran(recorded(until=80), dead_total=3, source=anew, dead_letter=anew))

    assert plan.steps
    assert replay.done == ()
    assert replay.elsewhere == (taken(ALL.selection, 50),)


@pytest.mark.parametrize(
    "gone", [present(replace(SOURCE, id="another")), present(SOURCE, low={0: 70, 1: 70})]
)
def test_copies_that_are_gone_stop_a_replay_until_somebody_says_to_forget(gone: Any) -> None:
    before = recorded(until=80)
    base = BASE.with_replay(before.model_copy(update={"copied": True}))
    situation = Situation(base, ran(before, source=gone), "us")

    with pytest.raises(RefusedError) as refused:
        plan_replay(situation, ALL)
    plan = plan_replay(situation, ReplayRequest(Selection(), forget=True))

    assert refused.value.hint.endswith("where it is not known any more: forget.")
    assert begun(plan, situation).copied


def test_a_sink_that_comes_back_to_a_topic_takes_none_of_its_letters_again() -> None:
    other = replace(SOURCE, name="orders-other", id="other")

    _, there = planned(ran(recorded(), source=present(other), dead_letter=present(other)))
    seen = history(identities=replace(IDENTITIES, source=other), spec=BASE.with_replay(there).to_json())
    _, back = planned(ran(recorded(), history=seen))

    assert there.done == ()
    assert back.done == (taken(ALL.selection, 50),)
    assert back.elsewhere == (taken(ALL.selection, 50, other),)
    assert not back.takes(letter(None, 49))
    assert back.takes(letter(None, 50))


def test_a_data_topic_made_anew_does_not_stop_a_replay_and_begins_a_generation() -> None:
    anew = present(replace(DATA, id="another"))

    plan, replay = planned(ran(recorded(until=80), data=anew))

    assert plan.steps
    assert replay.done == (taken(ALL.selection, 50),)


@pytest.mark.parametrize(
    "changed",
    [
        {"data": missing(DATA)},
        {"source": missing(SOURCE), "dead_letter": missing(SOURCE)},
    ],
)
def test_what_is_missing_stops_it(changed: dict[str, Any]) -> None:
    with pytest.raises((RefusedError, UnavailableError)):
        planned(ran(recorded(), **changed))


def test_a_sink_that_has_the_name_of_a_replay_is_left_alone() -> None:
    own = SinkSpec.parse({"name": "orders-replay", "source": "src/orders-in", "target": "dst/orders-out"})
    seen = observation(history=history(spec=own.to_json()))

    with pytest.raises(ConfigurationError, match="is another sink"):
        planned(seen, ReplayRequest(Selection(), overwrite=True, forget=True))


@pytest.mark.parametrize("rows", [0, 500])
def test_a_lost_ledger_is_a_reason_to_stop_until_somebody_says_to_forget(rows: int) -> None:
    from tests.facts import witness

    lost = observation(history=NO_HISTORY, dead_letter=present(SOURCE), progress=missing(PROGRESS))
    situation = Situation(BASE, lost, "us", witness=witness(rows=rows))

    with pytest.raises(RefusedError) as refused:
        plan_replay(situation, ALL)
    plan = plan_replay(situation, ReplayRequest(Selection(), forget=True))

    assert f"Airflow's witness knows {rows} rows through epoch 7" in refused.value.detail
    assert refused.value.hint.endswith("where it is not known any more: forget.")
    assert isinstance(plan.steps[-1], Announce)
    assert plan.steps[-1].generation == 2


def test_newer_rows_are_not_replaced_unless_that_is_said() -> None:
    seen = ran(recorded(), data=present(DATA, newest_of_key_wins=True))

    with pytest.raises(RefusedError, match="keeps the newest row of each key"):
        planned(seen)
    assert planned(seen, ReplayRequest(Selection(), overwrite=True))[0].steps


def test_rows_of_a_table_that_replace_each_other_are_not_replaced_either() -> None:
    table = {"connection": "pg", "table": "a.b", "mode": "upsert", "key": "id"}
    source = {"kafka": {"connection": "src", "topic": "raw", "schema": "id int, name string"}}
    target: dict[str, Any] = {"target": {"postgres": table}, "dead_letter": {"table": "a.c"}}
    sink = replaying_sink(SinkSpec.parse({"name": "orders", "source": source, **target}))
    situation = Situation(sink, unseen(dead_letter=present(SOURCE), data=present(DATA)), "us")

    with pytest.raises(RefusedError, match="keeps the newest row of each key"):
        plan_replay(situation, ALL)
    assert plan_replay(situation, ReplayRequest(Selection(), overwrite=True)).steps


@pytest.mark.parametrize("envelope", ["upsert", "debezium"])
def test_rows_that_replace_each_other_do_so_without_compaction_too(envelope: str) -> None:
    target = {"connection": "dst", "topic": "orders-out", "key": "id", "envelope": envelope}
    spec = {"name": "orders", "source": "src/raw", "target": {"kafka": target}, "dead_letter": "orders-in"}
    source = {"kafka": {"connection": "src", "topic": "raw", "schema": "id int, name string"}}
    sink = replaying_sink(SinkSpec.parse({**spec, "source": source}))
    situation = Situation(sink, unseen(dead_letter=present(SOURCE), data=present(DATA)), "us")

    with pytest.raises(RefusedError, match="keeps the newest row of each key"):
        plan_replay(situation, ALL)
    assert plan_replay(situation, ReplayRequest(Selection(), overwrite=True)).steps
