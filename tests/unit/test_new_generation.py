"""Reset and rewind: which steps, at which offsets, and what stands in the way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_provider_sinks.core.decision.decide import decide
from airflow_provider_sinks.core.decision.facts import Observation, Role, Unfit
from airflow_provider_sinks.core.decision.verdict import VerdictKind
from airflow_provider_sinks.core.errors import ConfigurationError, RefusedError, SinkError, UnavailableError
from airflow_provider_sinks.core.lifecycle.new_generation import (
    Output,
    Reset,
    Situation,
    new_announcement,
    plan_reset,
)
from airflow_provider_sinks.core.lifecycle.rewind import (
    LATEST,
    AtEpoch,
    AtOffsets,
    AtTime,
    RewindTo,
    plan_rewind,
)
from airflow_provider_sinks.core.lifecycle.steps import Announce, Create, Fence, Plan
from airflow_provider_sinks.core.progress.history import EARLIEST, NO_HISTORY, Finding, Flaw, fold
from airflow_provider_sinks.core.progress.past_epochs import PastEpoch, decoded, past_epochs
from airflow_provider_sinks.core.progress.record import DRIVER, ProgressKey, ProgressRecord, partition_writer
from airflow_provider_sinks.core.spec.sink import SinkSpec
from tests.facts import (
    DATA,
    DEAD_LETTER,
    SOURCE,
    hidden,
    history,
    missing,
    observation,
    present,
    progress_as,
    record,
    unseen,
    witness,
)
from tests.refusal_rows import CUT

MANY = Flaw(Finding.GARBAGE, "all", 3, "not JSON")
EMPTY, RECREATE = Reset(data=Output.EMPTY), Reset(data=Output.RECREATE)
COMPACTED = Unfit("has cleanup.policy=compact", "records cannot be deleted", "recreate it, or keep it")
DELETABLE = present(DATA)


def situation(seen: Observation | None = None, **options: Any) -> Situation:
    """Return sink "orders", at offset 50 of both source partitions."""
    fields = {"name": "orders", "source": "src/orders-in", "target": "dst/orders-out"}
    known = {name: options.pop(name) for name in ("owner", "witness", "settings") if name in options}
    return Situation(SinkSpec.parse({**fields, **options}), seen or observation(), **{"owner": "us", **known})


def announced(plan: Plan) -> Announce:
    """Return the generation that the plan ends with."""
    last = plan.steps[-1]
    assert isinstance(last, Announce)
    return last


# Reset.


def test_a_reset_fences_first_and_announces_last() -> None:
    plan = plan_reset(situation(), Reset())

    assert plan.steps == (
        Fence((DRIVER, "all", "p0", "p1")),
        Announce(2, {0: 0, 1: 0}, rows_before=500),
    )


def test_a_reset_begins_where_the_spec_says() -> None:
    source = {"kafka": {"connection": "src", "topic": "orders-in", "start": {0: 7}, "format": "bytes"}}

    assert announced(plan_reset(situation(source=source), Reset())).positions == {0: 7, 1: 0}


def test_the_latest_place_to_begin_leaves_an_open_transaction_to_be_read() -> None:
    source = {"kafka": {"connection": "src", "topic": "orders-in", "start": "latest", "format": "bytes"}}
    seen = observation(source=present(SOURCE, stable={0: 90, 1: 100}))

    assert announced(plan_reset(situation(seen, source=source), Reset())).positions == {0: 90, 1: 100}


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (EMPTY, 'empty data topic "orders-out": delete its records before offsets 0: 100, 1: 100'),
        (RECREATE, 'delete data topic "orders-out" with up to 200 records'),
    ],
)
def test_an_output_is_touched_only_between_two_announcements(ask: Reset, words: str) -> None:
    plan = plan_reset(situation(observation(data=DELETABLE)), ask)

    first, *between, last = plan.steps[1:]
    assert first == Announce(2, {0: 0, 1: 0}, unfinished=(Role.DATA,))
    assert str(between[0]) == words
    assert last == Announce(2, {0: 0, 1: 0})


def test_a_topic_made_anew_keeps_what_an_administrator_set_and_the_spec_wins() -> None:
    target = {"connection": "dst", "topic": "orders-out", "config": {"retention.ms": "5"}}
    settings = {Role.DATA: {"retention.ms": "9", "min.insync.replicas": "2"}}

    plan = plan_reset(situation(target={"kafka": target}, settings=settings), RECREATE)

    assert str(plan.steps[3]) == (
        'create data topic "orders-out": 2 partitions, min.insync.replicas=2, retention.ms=5'
    )


def test_dead_letters_are_dealt_with_on_their_own() -> None:
    dead = present(DEAD_LETTER)
    seen = observation(dead_letter=dead, history=history(dead_total=3))

    plan = plan_reset(situation(seen, dead_letter={"topic": "orders-dlq"}), Reset(dead_letter=Output.EMPTY))

    assert announced(plan) == Announce(2, {0: 0, 1: 0}, rows_before=500)
    assert str(plan.steps[2]).startswith("empty dead-letter topic")


def test_the_generation_is_newer_than_anybody_remembers() -> None:
    plan = plan_reset(situation(witness=witness(generation=6)), Reset())

    assert announced(plan).generation == 7


def test_a_sink_that_never_ran_has_nothing_to_reset() -> None:
    assert plan_reset(situation(unseen()), EMPTY).steps == ()


def test_missing_topics_are_made_and_not_emptied() -> None:
    plan = plan_reset(situation(observation(data=missing(DATA))), EMPTY)

    assert [str(step).partition(":")[0] for step in plan.steps] == [
        "fence 4 writers",
        'create data topic "orders-out"',
        "announce generation 2 at source offsets 0",
    ]
    assert announced(plan).rows_before == 0


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param({"data": present(replace(DATA, id="other"))}, id="output-replaced"),
        pytest.param({"source": present(replace(SOURCE, id="other"))}, id="source-replaced"),
        pytest.param({"history": history(flaws=(MANY,))}, id="garbage"),
        pytest.param({"history": NO_HISTORY}, id="progress-lost"),
        pytest.param({"source": present(SOURCE, low={0: 60, 1: 60})}, id="records-removed"),
    ],
)
def test_a_reset_settles_what_starting_over_settles(seen: dict[str, Any]) -> None:
    asked = situation(observation(**seen), witness=witness())
    assert decide(asked.observation, asked.request).kind is VerdictKind.REFUSE

    assert announced(plan_reset(asked, Reset())).generation == 2


@pytest.mark.parametrize(
    ("seen", "error", "said"),
    [
        pytest.param({"history": history(owner="them")}, RefusedError, "another Airflow", id="foreign"),
        pytest.param({"source": missing(SOURCE)}, RefusedError, "source topic", id="source-lost"),
        pytest.param(
            {"progress": progress_as(partitions=3), "history": None},
            RefusedError,
            "partitions",
            id="progress-shape",
        ),
        pytest.param({"data": hidden(DATA)}, UnavailableError, "could not be seen", id="hidden"),
        pytest.param(
            {"data": hidden(DATA), "history": history(flaws=(MANY,))},
            UnavailableError,
            "could not be seen",
            id="hidden-and-refused",
        ),
        pytest.param({"history": None}, UnavailableError, "could not be read", id="progress-hidden"),
        pytest.param(
            {"data": present(DATA, keeps=COMPACTED)}, ConfigurationError, "recreate", id="compacted"
        ),
    ],
)
def test_what_a_reset_does_not_settle_stops_it(
    seen: dict[str, Any], error: type[SinkError], said: str
) -> None:
    with pytest.raises(error, match=said):
        plan_reset(situation(observation(**seen)), EMPTY)


def test_an_output_that_cannot_take_the_rows_may_be_made_anew_and_not_kept() -> None:
    narrow = observation(
        data=present(DATA, unfit=Unfit("has no column region", "It is returned.", "Add it."))
    )

    assert any(isinstance(step, Create) for step in plan_reset(situation(narrow), RECREATE).steps)
    with pytest.raises(RefusedError, match="has no column region"):
        plan_reset(situation(narrow), Reset())


def test_an_output_that_others_use_is_not_deleted_to_make_it_anew() -> None:
    foreign = Unfit('holds the progress of sink "payments"', "It is lost.", "Name another.", is_others=True)

    with pytest.raises(RefusedError, match="holds the progress of"):
        plan_reset(situation(observation(data=present(DATA, unfit=foreign))), RECREATE)


def after(asked: Situation, step: Announce, **seen: Any) -> Situation:
    """Return the situation when a step was announced."""
    written = new_announcement(asked, step, "run-2").encode()
    announced = ProgressRecord.decode(written)
    records = {**history().records, DRIVER: announced}
    return situation(observation(**seen, history=replace(history(), records=records)))


def test_a_start_after_a_reset_goes_on_from_it_alone() -> None:
    now = after(situation(), announced(plan_reset(situation(), Reset())))

    verdict = decide(now.observation, now.request)

    assert (verdict.kind, verdict.generation, verdict.epoch) == (VerdictKind.RESUME, 2, 0)
    assert (verdict.positions, verdict.rows_before) == ({0: 0, 1: 0}, 500)
    assert now.history.rows_total == 0
    assert now.history.writers_ever == ("all", DRIVER, "p0", "p1")


def test_a_start_in_the_middle_of_a_reset_is_refused() -> None:
    plan = plan_reset(situation(observation(data=DELETABLE)), EMPTY)
    assert isinstance(plan.steps[1], Announce)

    half_way = after(situation(), plan.steps[1], data=DELETABLE)

    assert decide(half_way.observation, half_way.request).kind is VerdictKind.REFUSE
    assert announced(plan_reset(half_way, EMPTY)).generation == 3


# Rewind.

EPOCHS = tuple(
    PastEpoch(generation, epoch, {0: 10 * epoch, 1: 5 * epoch}, SOURCE, "")
    for generation, epoch in ((1, 2), (1, 4), (1, 7))
)


@pytest.mark.parametrize(
    ("to", "positions"),
    [
        pytest.param(AtOffsets({0: 12}), {0: 12, 1: 50}, id="one-partition"),
        pytest.param(AtOffsets({0: EARLIEST, 1: 3}), {0: 0, 1: 3}, id="earliest"),
        pytest.param(AtOffsets({0: LATEST, 1: 3}, skip=True), {0: 100, 1: 3}, id="skip-to-the-end"),
        pytest.param(AtTime("10:00", {0: 30, 1: 80}), {0: 30, 1: 50}, id="a-time-never-skips"),
        pytest.param(AtTime("10:00", {1: 20}), {0: 50, 1: 20}, id="nothing-newer-in-a-partition"),
        pytest.param(AtEpoch(4, EPOCHS), {0: 40, 1: 20}, id="an-epoch"),
        pytest.param(AtEpoch(7, EPOCHS), {0: 50, 1: 35}, id="an-epoch-never-skips"),
        pytest.param(AtEpoch(2, EPOCHS, generation=1), {0: 20, 1: 10}, id="of-a-generation"),
    ],
)
def test_a_rewind_begins_a_generation_at_that_place(to: RewindTo, positions: dict[int, int]) -> None:
    plan = plan_rewind(situation(), to)

    assert announced(plan) == Announce(2, positions, rows_before=500)
    assert isinstance(plan.steps[0], Fence)


def test_a_rewind_says_how_much_is_read_again_and_what_is_skipped() -> None:
    warnings = plan_rewind(situation(), AtOffsets({0: 20, 1: 60}, skip=True)).warnings

    assert "30 source records are read again" in warnings[0]
    assert "10 source records are skipped" in warnings[1]


def test_a_rewind_to_where_the_sink_stands_does_nothing() -> None:
    assert plan_rewind(situation(), AtTime("later", {})).steps == ()


def test_a_rewind_to_the_end_leaves_an_open_transaction_to_be_read() -> None:
    seen = observation(source=present(SOURCE, stable={0: 90, 1: 100}))

    plan = plan_rewind(situation(seen), AtOffsets({0: LATEST, 1: LATEST}, skip=True))

    assert announced(plan).positions == {0: 90, 1: 100}


def test_a_rewind_settles_a_source_that_ends_before_the_sink() -> None:
    seen = observation(source=present(SOURCE, high={0: 30, 1: 100}))

    with pytest.raises(ConfigurationError, match=r"offsets\.0: offset 50 is not in \[0, 30\]"):
        plan_rewind(situation(seen), AtOffsets({1: 20}))
    assert announced(plan_rewind(situation(seen), AtOffsets({0: 30}))).positions == {0: 30, 1: 50}


def test_a_rewind_settles_a_partition_that_a_stateful_sink_cannot_take_in() -> None:
    source = {"kafka": {"connection": "src", "topic": "orders-in", "schema": "word string"}}
    target = {"kafka": {"connection": "dst", "topic": "orders-out", "key": "word"}}
    counts = "SELECT word, count(*) AS n FROM source GROUP BY word"
    stateful = situation(observation(source=CUT), source=source, target=target, query=counts)

    plan = plan_rewind(stateful, AtOffsets({0: 40}))

    assert stateful.request.stateful
    assert announced(plan).positions == {0: 40, 1: 50, 2: 500}


def test_a_rewind_settles_records_that_were_removed() -> None:
    seen = observation(source=present(SOURCE, low={0: 60, 1: 60}))

    with pytest.raises(ConfigurationError, match=r"offsets\.1: offset 50 is not in \[60, 100\]"):
        plan_rewind(situation(seen), AtOffsets({0: 60}, skip=True))
    assert announced(plan_rewind(situation(seen), AtOffsets({0: 60, 1: 70}, skip=True))).positions == {
        0: 60,
        1: 70,
    }


@pytest.mark.parametrize(
    ("seen", "to", "error", "said"),
    [
        pytest.param({}, AtOffsets({0: 60}), ConfigurationError, "lies ahead of 50", id="ahead"),
        pytest.param(
            {},
            AtOffsets({0: 101, 5: 1}),
            ConfigurationError,
            r"not in \[0, 100\](.|\n)*no partition 5",
            id="all",
        ),
        pytest.param(
            {}, AtEpoch(3, EPOCHS), ConfigurationError, "known: 1/2, 1/4, 1/7", id="epoch-compacted"
        ),
        pytest.param({}, AtEpoch(3, ()), ConfigurationError, "not known any more", id="no-epoch-known"),
        pytest.param(
            {"source": present(SOURCE, low={0: 30, 1: 30})},
            AtEpoch(2, EPOCHS),
            ConfigurationError,
            "began at offset 20; the source begins at 30",
            id="epoch-removed",
        ),
        pytest.param(
            {},
            AtEpoch(2, (replace(EPOCHS[0], source=replace(SOURCE, id="older")),)),
            RefusedError,
            "read from another topic",
            id="epoch-of-another-source",
        ),
        pytest.param({"history": NO_HISTORY}, AtOffsets({0: 0}), ConfigurationError, "no progress", id="new"),
        pytest.param({"data": missing(DATA)}, AtOffsets({0: 0}), RefusedError, "missing", id="output-lost"),
        pytest.param(
            {"history": history(owner="them")},
            AtOffsets({0: 0}),
            RefusedError,
            "another Airflow",
            id="foreign",
        ),
        pytest.param({"source": hidden(SOURCE)}, AtOffsets({0: 0}), UnavailableError, "seen", id="hidden"),
    ],
)
def test_what_stops_a_rewind(seen: dict[str, Any], to: RewindTo, error: type[SinkError], said: str) -> None:
    with pytest.raises(error, match=said):
        plan_rewind(situation(observation(**seen)), to)


def test_a_rewind_of_a_query_with_state_says_that_it_begins_without_any() -> None:
    target = {"connection": "dst", "topic": "orders-out", "format": "json", "key": ["value"]}
    query = "SELECT value, count(*) AS n FROM source GROUP BY value"

    plan = plan_rewind(situation(query=query, target={"kafka": target}), AtOffsets({0: 0}))

    assert "begins without any" in plan.warnings[-1]


# Which epochs are known.


def test_an_epoch_began_where_any_of_its_writers_says() -> None:
    epochs = past_epochs(
        [
            (DRIVER, record(epoch=2, from_={0: 20, 1: 18}, to={0: 20, 1: 18})),
            (partition_writer(0), record(epoch=3, from_={0: 20, 1: 20}, to={0: 30, 1: 30})),
            (partition_writer(1), record(epoch=5, from_={0: 40, 1: 40}, to={0: 50, 1: 50})),
        ]
    )

    assert [(epoch.epoch, epoch.begin) for epoch in epochs] == [(3, {0: 20, 1: 20}), (5, {0: 40, 1: 40})]


def test_the_single_writer_also_tells_where_the_next_epoch_began() -> None:
    epochs = past_epochs([("all", record(epoch=3, from_={0: 20}, to={0: 30}))])

    assert [(epoch.epoch, epoch.begin) for epoch in epochs] == [(3, {0: 20}), (4, {0: 30})]


def test_the_driver_tells_where_the_first_epoch_of_a_generation_began() -> None:
    epochs = past_epochs([(DRIVER, record(generation=2, epoch=0, from_={0: 9}, to={0: 9}))])

    assert [(epoch.generation, epoch.epoch, epoch.begin) for epoch in epochs] == [(2, 1, {0: 9})]


def test_other_sinks_and_what_cannot_be_read_tell_nothing() -> None:
    messages = [
        (0, ProgressKey("others", "all").encode(), record().encode()),
        (1, ProgressKey("orders", "all").encode(), b"{"),
        (2, ProgressKey("orders", "all").encode(), None),
        (3, None, record().encode()),
    ]

    assert list(decoded(messages, "orders")) == []
    assert not fold(messages[:1], "orders")
