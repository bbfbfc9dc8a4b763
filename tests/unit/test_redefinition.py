"""What a changed spec means for the sink that runs: the table of options, and the comparison."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from airflow_provider_sinks.core.decision.decide import decide
from airflow_provider_sinks.core.decision.start_request import start_request
from airflow_provider_sinks.core.decision.verdict import VerdictKind, render
from airflow_provider_sinks.core.lifecycle.new_generation import Reset, Situation, plan_reset
from airflow_provider_sinks.core.lifecycle.rewind import AtOffsets, plan_rewind
from airflow_provider_sinks.core.redefinition.bearing import Bearing, When
from airflow_provider_sinks.core.redefinition.compare import (
    Redefinition,
    RedefinitionState,
    WrittenSoFar,
    compare,
)
from airflow_provider_sinks.core.redefinition.options import COMMON, unsaid
from airflow_provider_sinks.core.spec.kinds import load, points
from airflow_provider_sinks.core.spec.sink import SinkSpec
from tests.facts import history, observation

SAME, GOES_ON = RedefinitionState.SAME, RedefinitionState.GOES_ON
ELSEWHERE, NEW_GENERATION = RedefinitionState.ELSEWHERE, RedefinitionState.NEW_GENERATION
NEW_STATE = RedefinitionState.NEW_STATE
SOURCE = {"connection": "k", "topic": "orders-in", "schema": "id int, region string, n int"}
TO_TOPIC = {"connection": "k", "topic": "orders-out"}
UPSERT = {**TO_TOPIC, "key": ["id"], "envelope": "upsert"}
TO_TABLE = {"connection": "p", "table": "shop.orders"}
KEYED = {**TO_TABLE, "mode": "upsert", "key": ["id"]}
BY_REGION = {"target": {"kafka": {**TO_TOPIC, "key": ["region"]}}}
COUNTS = "SELECT region, count(*) AS n FROM source GROUP BY region"


def spec(**options: Any) -> SinkSpec:
    base = {"name": "orders", "source": {"kafka": SOURCE}, "target": {"kafka": TO_TOPIC}}
    return SinkSpec.parse({**base, **options})


def source(**options: Any) -> dict[str, Any]:
    return {"source": {"kafka": {**SOURCE, **options}}}


def topic(before: Any = TO_TOPIC, **options: Any) -> dict[str, Any]:
    return {"target": {"kafka": {**before, **options}}}


def table(before: Any = TO_TABLE, **options: Any) -> dict[str, Any]:
    return {"target": {"postgres": {**before, **options}}}


def compared(before: SinkSpec, now: SinkSpec, **progress: bool) -> Redefinition:
    return compare(before.to_json(), now.to_json(), WrittenSoFar(**progress))


@pytest.mark.parametrize("kind", points())
def test_every_option_says_what_its_change_bears_on(kind: str) -> None:
    """A new option belongs into the table of its connector's spec, or of core/redefinition/options.py."""
    assert unsaid(load(kind).sink) == ()


@pytest.mark.parametrize("kind", points())
def test_no_line_of_the_table_is_about_an_option_that_is_gone(kind: str) -> None:
    class Bare(load(kind).sink):  # type: ignore[misc]
        bearings: ClassVar[dict[str, Bearing]] = {}

    left = set(unsaid(Bare))

    known = {path for path in load(kind).sink.bearings if path not in COMMON}
    assert {path for path in known if not any(f"{one}.".startswith(f"{path}.") for one in left)} == set()


@pytest.mark.parametrize("bearing", Bearing)
def test_a_bearing_says_what_it_means_in_each_case_that_can_be(bearing: Bearing) -> None:
    assert bool(bearing.why) == (bearing.needs is not When.NEVER)
    assert bool(bearing.goes_on) == (bearing.needs is not When.ALWAYS)


CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any], str, RedefinitionState]] = {
    "another-layout": ({"where": "n>1"}, {"query": "SELECT *\n FROM source WHERE n > 1"}, "", SAME),
    "how-it-runs": ({}, {"trigger": {"every": "1s"}}, "trigger", GOES_ON),
    "the-start": ({}, source(start="latest"), "source.kafka.start", GOES_ON),
    "how-a-topic-is-made": ({}, topic(config={"retention.ms": "1"}), "target.kafka.config", GOES_ON),
    "a-lookup-comes": (
        {}, {"lookups": {"u": "p/a.u"}, "query": "SELECT s.id FROM source s JOIN u USING (id)"},
        "query, lookups.u", GOES_ON,
    ),
    "dead-letters-come": ({}, {"dead_letter": "orders-dlq"}, "dead_letter", GOES_ON),
    "another-filter": ({}, {"where": "n > 1"}, "query", GOES_ON),
    "columns-of-a-topic": ({}, {"select": ["id"]}, "query", GOES_ON),
    "the-schema-of-the-source": (
        {}, source(schema="id int, region string"), "source.kafka.schema", GOES_ON,
    ),
    "a-connection": ({}, source(connection="k2"), "source.kafka.connection", GOES_ON),
    "another-source": ({}, source(topic="other"), "source.kafka.topic", ELSEWHERE),
    "another-topic": ({}, topic(topic="other"), "target.kafka.topic", ELSEWHERE),
    "another-kind-of-target": ({}, table(), "target.kafka, target.postgres", ELSEWHERE),
    "key-of-an-append": (topic(key=["id"]), topic(key=["n"]), "target.kafka.key", GOES_ON),
    "key-of-a-compacted-topic": (
        topic(key=["id"], config={"cleanup.policy": "compact"}),
        topic(key=["n"], config={"cleanup.policy": "compact"}),
        "target.kafka.key", NEW_GENERATION,
    ),
    "key-of-an-upsert": (topic(UPSERT), topic(UPSERT, key=["n"]), "target.kafka.key", NEW_GENERATION),
    "partition-of-an-upsert": (
        topic(UPSERT), topic(UPSERT, partition_by=["id"]), "target.kafka.partition_by",
        NEW_GENERATION,
    ),
    "key-of-tombstones": (
        topic(key=["id"], tombstones=True), topic(key=["n"], tombstones=True), "target.kafka.key",
        NEW_GENERATION,
    ),
    "what-a-key-is-made-of": (
        {**topic(UPSERT), "select": ["id", "n"]}, {**topic(UPSERT), "select": ["n AS id", "n"]},
        "key column id of the query", NEW_GENERATION,
    ),
    "a-key-that-is-made-in-another-way": (
        {**table(KEYED), "select": ["id", "n"]}, {**table(KEYED), "select": ["id + 1 AS id", "n"]},
        "key column id of the query", NEW_GENERATION,
    ),
    "another-alias-of-the-source": (
        {**topic(UPSERT), "select": ["ID as id", "n"]},
        {**topic(UPSERT), "query": "SELECT s.id, n FROM source s"}, "query", GOES_ON,
    ),
    "a-star-that-holds-the-key": (topic(UPSERT), {**topic(UPSERT), "select": ["id", "n"]}, "query", GOES_ON),
    "envelope": (topic(key=["id"]), topic(UPSERT), "target.kafka.envelope", NEW_GENERATION),
    "format": ({}, topic(format="text", value="region"), "target.kafka.format", NEW_GENERATION),
    "rows-of-a-table": (table(), {**table(), "where": "n > 1"}, "query", GOES_ON),
    "a-column-more": (
        {**table(), "select": ["id"]}, {**table(), "select": ["id", "n"]}, "columns of the target",
        GOES_ON,
    ),
    "a-column-less": (
        {**table(), "select": ["id", "n"]}, {**table(), "select": ["id"]}, "columns of the target",
        NEW_GENERATION,
    ),
    "a-column-renamed": (
        {**table(), "select": ["id", "n"]}, {**table(), "select": ["id", "n AS m"]}, "columns of the target",
        NEW_GENERATION,
    ),
    "fewer-columns-are-written": (
        table(), table(columns=["id"]), "columns of the target", NEW_GENERATION,
    ),
    "a-field-that-a-star-gave": (
        table(), {**table(), **source(schema="id int, n int")}, "columns of the target",
        NEW_GENERATION,
    ),
    "key-of-a-table": (table(KEYED), table(KEYED, key=["n"]), "target.postgres.key", NEW_GENERATION),
    "mode-of-a-table": (table(), table(KEYED), "target.postgres.mode", NEW_GENERATION),
    "how-a-table-may-change": (
        table(), table(on_schema_change="widen"), "target.postgres.on_schema_change", GOES_ON,
    ),
    "a-stateful-query": (
        {**BY_REGION, "query": COUNTS},
        {**BY_REGION, "query": COUNTS.replace("source", "source WHERE n > 1")},
        "query", NEW_STATE,
    ),
    "a-query-that-becomes-stateful": (
        BY_REGION, {**BY_REGION, "query": COUNTS}, "query", NEW_STATE,
    ),
}  # fmt: skip
"""What was before, what is now, an option that differs, and what all of it comes to."""


@pytest.mark.parametrize("row", CHANGES.values(), ids=CHANGES)
def test_a_change_is_judged_by_what_it_bears_on(row: Any) -> None:
    before, now, options, state = row

    found = compared(spec(**before), spec(**now))

    assert found.state is state, [str(one) for one in found.differences]
    assert set(options.split(", ")) - {""} <= {one.option for one in found.differences}
    assert all(one.why for one in found.differences)


@pytest.mark.parametrize("row", ["key-of-an-upsert", "envelope", "a-column-less", "another-topic"])
def test_what_has_written_nothing_may_become_anything(row: str) -> None:
    before, now, *_ = CHANGES[row]

    assert compared(spec(**before), spec(**now), has_rows=False).state is RedefinitionState.GOES_ON


def test_a_query_with_state_may_change_while_there_is_no_checkpoint() -> None:
    before, now, *_ = CHANGES["a-stateful-query"]

    assert compared(spec(**before), spec(**now), has_checkpoint=False).state is RedefinitionState.GOES_ON


def test_a_table_for_dead_letters_is_another_one_once_it_has_some() -> None:
    before, now = spec(dead_letter="one"), spec(dead_letter="two")

    assert compared(before, now).state is RedefinitionState.ELSEWHERE
    assert compared(before, now, has_letters=False).state is RedefinitionState.GOES_ON


def test_a_spec_of_a_release_that_had_other_options_stops_nothing() -> None:
    old = spec().to_json().replace('"name"', '"colour": "red", "name"')

    found = compare(old, spec(where="n > 1").to_json(), WrittenSoFar())

    assert found.state is RedefinitionState.NOT_COMPARED
    assert "colour" in found.unread


def test_an_option_that_nobody_speaks_for_needs_a_new_generation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(spec()), "bearings", {})

    found = compared(spec(), spec(**topic(compression="gzip")))

    assert found.state is RedefinitionState.NEW_GENERATION
    assert "the connector of the target does not say" in str(found.differences[0])


def test_a_difference_is_told_with_both_values_and_its_reason() -> None:
    (found,) = compared(spec(**topic(UPSERT)), spec(**topic(UPSERT, key=["n"]))).differences

    assert str(found) == (
        'target.kafka.key: ["id"] -> ["n"]: needs a new generation: rows that were written by the old key '
        "are never replaced or deleted again"
    )


# In the decision.


def seen(before: SinkSpec, **changes: Any) -> Any:
    return observation(history=history(spec=before.to_json(), **changes))


def test_a_start_by_the_same_spec_says_so() -> None:
    verdict = decide(seen(spec()), start_request(spec(), "us"))

    assert "  spec:              same as in force\n" in render(seen(spec()), verdict)


def test_a_start_goes_on_by_a_changed_spec_and_says_from_where() -> None:
    verdict = decide(seen(spec()), start_request(spec(where="n > 1"), "us"))

    assert verdict.kind is VerdictKind.RESUME
    assert (
        "  spec:              goes on from source offsets 0: 50, 1: 50 with what has changed:\n"
        "    query: SELECT * FROM source -> SELECT * FROM source WHERE n > 1: rows from here on follow it"
    ) in render(seen(spec()), verdict)


def test_another_topic_is_told_by_its_name_and_refused_by_its_id() -> None:
    verdict = decide(seen(spec()), start_request(spec(**source(topic="other")), "us"))

    assert verdict.kind is VerdictKind.RESUME  # what was seen is the recorded one
    assert verdict.redefinition is not None
    assert verdict.redefinition.state.told == "needs a new generation"


def test_going_on_is_said_once_for_exactly_this_change() -> None:
    before, now = spec(**topic(UPSERT)), spec(**topic(UPSERT, key=["n"]))
    other = spec(**topic(UPSERT, key=["n", "id"]))
    refused = decide(seen(before), start_request(now, "us"))
    code = next(offer.code for offer in refused.offers if offer.name == "go_on_changed")

    assert decide(seen(before), start_request(now, "us"), code).positions == {0: 50, 1: 50}
    assert decide(seen(before), start_request(now, "us"), code).generation == 1
    assert decide(seen(before), start_request(other, "us"), code).kind is VerdictKind.REFUSE


@pytest.mark.parametrize("row", ["key-of-an-upsert", "a-stateful-query"])
def test_a_new_generation_settles_a_changed_spec(row: str) -> None:
    before, now, *_ = CHANGES[row]
    situation = Situation(spec(**now), seen(spec(**before)), "us")

    assert plan_reset(situation, Reset()).steps
    assert plan_rewind(situation, AtOffsets({0: 10})).steps


def test_a_replay_is_not_compared_as_its_launch_must_be_the_announced_one() -> None:
    from airflow_provider_sinks.core.dead_letters.replay import Replay

    replay = spec().with_replay(Replay(sink="orders", topic="orders-in"))

    assert decide(seen(spec(**topic(UPSERT))), start_request(replay, "us")).redefinition is None
