"""The decision: one test per row of the design's table, by the behaviour it promises."""

from __future__ import annotations

import itertools
from dataclasses import replace
from enum import Enum
from typing import Any

import pytest

from airflow_provider_sinks.core.decision.classify import (
    ProgressSeen,
    ReachSeen,
    RecordsSeen,
    ResourceSeen,
    ShapeSeen,
    WitnessSeen,
    memory_seen,
    progress_seen,
    records_seen,
    resource_seen,
    shape_seen,
    witness_seen,
)
from airflow_provider_sinks.core.decision.decide import decide, render
from airflow_provider_sinks.core.decision.facts import Existence, Observation, ResourceFacts, Role, Wanted
from airflow_provider_sinks.core.decision.table import (
    DECISIONS,
    PLACES,
    REACHES,
    RECORDS,
    SHAPES,
    SOURCES,
    Step,
)
from airflow_provider_sinks.core.decision.verdict import Verdict, VerdictKind
from airflow_provider_sinks.core.decision.ways import WAYS, Reason, Way
from airflow_provider_sinks.core.errors import RefusedError, UnavailableError
from airflow_provider_sinks.core.progress.broker_memory import BrokerMemory, TransactionalIdFacts
from airflow_provider_sinks.core.progress.checkpoint import CheckpointFacts
from airflow_provider_sinks.core.progress.history import EARLIEST, NO_HISTORY, Finding, Flaw, History
from airflow_provider_sinks.core.progress.record import DRIVER
from tests.facts import (
    DATA,
    DEAD_LETTER,
    IDENTITIES,
    PROGRESS,
    SOURCE,
    dead_letter_wanted,
    hidden,
    history,
    missing,
    observation,
    present,
    record,
    unseen,
    wanted,
    witness,
)


def flaws(*findings: Finding) -> tuple[Flaw, ...]:
    return tuple(Flaw(finding, "all", 17, "what was seen") for finding in findings)


def deleted(times: int) -> tuple[Flaw, ...]:
    return flaws(*[Finding.DELETED] * times)


OTHER_DATA = present(DATA, id="id-other")
UNWRITTEN = history(rows_total=0)
ANNOUNCED = record(epoch=6, to={0: 40, 1: 40}, writers=(DRIVER, "p0", "p1"))
FILTERED = History({DRIVER: ANNOUNCED, "p0": record(rows_total=300)})
"""Epoch 7 ran from 40 to 50, and partition 1 had no row in it."""
NAMED = {"p0": (300, 0), "p1": (300, 0)}
PARTS = {DRIVER: record(totals=NAMED), "p0": record(rows_total=300), "p1": record(rows_total=300)}
WITHOUT_P0 = History({DRIVER: record(totals=NAMED), "p1": record(rows_total=300)})
REPAIRED = present(PROGRESS, low={0: 7})


# The tables are complete.


@pytest.mark.parametrize(
    ("table", "product"),
    [
        (DECISIONS, itertools.product(ProgressSeen, ResourceSeen, WitnessSeen)),
        (SOURCES, itertools.product([False, True], ResourceSeen)),
        (REACHES, ReachSeen),
        (RECORDS, RecordsSeen),
        (SHAPES, ShapeSeen),
        (PLACES, ResourceSeen),
        (WAYS, Reason),
    ],
    ids=["decisions", "sources", "reaches", "records", "shapes", "places", "ways"],
)
def test_every_combination_has_its_cell(table: dict[Any, Any], product: Any) -> None:
    assert set(table) == set(product)


def test_every_reason_can_be_the_outcome_of_some_table() -> None:
    tables = (DECISIONS, SOURCES, REACHES, RECORDS, SHAPES, PLACES)
    reached = {cell for table in tables for cell in table.values()}

    assert set(Reason) - reached == {Reason.CHECKPOINT_AHEAD, Reason.STATE_LOST}


def test_the_seed_rule_holds_word_for_word() -> None:
    """Without a witness, that is without what we know beyond it."""
    topics = [ResourceSeen.MISSING, ResourceSeen.PRESENT]
    cells = {
        (p, t): DECISIONS[p, t, WitnessSeen.SILENT]
        for p in (ProgressSeen.NONE, ProgressSeen.UNWRITTEN, ProgressSeen.WRITTEN)
        for t in topics
    }

    assert cells[ProgressSeen.NONE, ResourceSeen.MISSING] is Step.CREATE
    assert cells[ProgressSeen.NONE, ResourceSeen.PRESENT] is Step.TAKE
    assert cells[ProgressSeen.UNWRITTEN, ResourceSeen.MISSING] is Step.CREATE
    failing = [key for key, cell in cells.items() if isinstance(cell, Reason)]
    assert failing == [(ProgressSeen.WRITTEN, ResourceSeen.MISSING)]


# Facts become words.


@pytest.mark.parametrize(
    ("seen", "word"),
    [
        pytest.param(observation(progress=hidden(PROGRESS), history=None), ProgressSeen.UNKNOWN, id="hidden"),
        pytest.param(observation(history=None), ProgressSeen.UNKNOWN, id="not-read"),
        pytest.param(unseen(), ProgressSeen.NONE, id="missing"),
        pytest.param(observation(history=NO_HISTORY), ProgressSeen.NONE, id="no-record"),
        pytest.param(
            observation(history=NO_HISTORY, progress=present(PROGRESS, low={0: 5})),
            ProgressSeen.EMPTIED,
            id="low-watermark-moved",
        ),
        pytest.param(
            observation(history=replace(NO_HISTORY, flaws=deleted(1))), ProgressSeen.EMPTIED, id="deleted"
        ),
        pytest.param(
            observation(history=History({"p1": record(rows_total=300)})), ProgressSeen.IN_PART, id="no-driver"
        ),
        pytest.param(
            observation(history=WITHOUT_P0),
            ProgressSeen.IN_PART,
            id="a-writer-that-the-driver-names-is-gone",
        ),
        pytest.param(
            observation(history=History({**PARTS, "p0": record(rows_total=299)})),
            ProgressSeen.IN_PART,
            id="a-writer-is-older-than-the-driver-says",
        ),
        pytest.param(
            observation(history=History(PARTS), progress=REPAIRED),
            ProgressSeen.WRITTEN,
            id="old-records-were-removed-and-everything-needed-is-there",
        ),
        pytest.param(observation(history=UNWRITTEN), ProgressSeen.UNWRITTEN, id="nothing-written"),
        pytest.param(observation(), ProgressSeen.WRITTEN, id="written"),
    ],
)
def test_the_progress_topic_is_told_in_one_word(seen: Observation, word: ProgressSeen) -> None:
    assert progress_seen(seen, wanted(), seen.history.rows_ever if seen.history else 0) is word


def test_a_shared_progress_topic_that_lost_its_begin_says_nothing_about_this_sink() -> None:
    emptied = observation(history=NO_HISTORY, progress=present(PROGRESS, low={0: 5}))

    assert progress_seen(emptied, wanted(progress_is_shared=True), 0) is ProgressSeen.NONE


@pytest.mark.parametrize(
    ("facts", "word"),
    [
        (hidden(DATA), ResourceSeen.UNKNOWN),
        (missing(DATA), ResourceSeen.MISSING),
        (present(DATA), ResourceSeen.PRESENT),
        (present(DATA, partitions=3), ResourceSeen.GREW),
        (present(DATA, partitions=1), ResourceSeen.REPLACED),
        (present(DATA, id="id-other"), ResourceSeen.REPLACED),
        (present(DATA, system="cluster-b"), ResourceSeen.REPLACED),
        (present(DATA, name="orders-out-2"), ResourceSeen.REPLACED),
    ],
)
def test_a_topic_is_compared_with_the_recorded_one(facts: ResourceFacts, word: ResourceSeen) -> None:
    assert resource_seen(facts, DATA) is word


def test_a_topic_that_nobody_recorded_is_just_there() -> None:
    assert resource_seen(OTHER_DATA, None) is ResourceSeen.PRESENT


@pytest.mark.parametrize(
    ("seen", "remembered", "word"),
    [
        pytest.param(history(), None, WitnessSeen.SILENT, id="none"),
        pytest.param(history(), witness(), WitnessSeen.SILENT, id="equal"),
        pytest.param(history(), witness(epoch=6, rows=400, offsets={0: 40}), WitnessSeen.SILENT, id="older"),
        pytest.param(history(), witness(epoch=6, rows=501), WitnessSeen.AHEAD, id="more-rows"),
        pytest.param(history(), witness(offsets={0: 50, 1: 51}), WitnessSeen.AHEAD, id="further"),
        pytest.param(history(), witness(epoch=6, offsets={0: 51}), WitnessSeen.AHEAD, id="older-but-further"),
        pytest.param(history(), witness(offsets={2: 1}), WitnessSeen.AHEAD, id="a-partition-more"),
        pytest.param(FILTERED, witness(rows=300), WitnessSeen.SILENT, id="a-writer-had-no-row-in-it"),
        pytest.param(
            FILTERED,
            witness(epoch=6, rows=300, offsets={1: 41}),
            WitnessSeen.AHEAD,
            id="beyond-its-begin",
        ),
        pytest.param(history(), witness(epoch=8), WitnessSeen.AHEAD, id="newer-epoch"),
        pytest.param(history(), witness(generation=2, epoch=0), WitnessSeen.AHEAD, id="newer-generation"),
        pytest.param(history(generation=2), witness(epoch=99), WitnessSeen.SILENT, id="older-generation"),
        pytest.param(history(), witness(epoch=8, owner="them"), WitnessSeen.SILENT, id="not-ours"),
        pytest.param(NO_HISTORY, witness(rows=0), WitnessSeen.SILENT, id="never-wrote"),
        pytest.param(NO_HISTORY, witness(), WitnessSeen.AHEAD, id="wrote"),
        pytest.param(NO_HISTORY, witness(owner="them"), WitnessSeen.AHEAD, id="somebody-wrote"),
        pytest.param(None, witness(), WitnessSeen.SILENT, id="progress-not-read"),
    ],
)
def test_the_witness_is_compared_by_generation_epoch_rows_and_every_position(
    seen: Any, remembered: Any, word: WitnessSeen
) -> None:
    assert witness_seen(seen, wanted(witness=remembered)) is word


@pytest.mark.parametrize(
    ("facts", "word"),
    [
        (missing(PROGRESS), ShapeSeen.FITS),
        (present(PROGRESS), ShapeSeen.FITS),
        (present(PROGRESS, partitions=2), ShapeSeen.PARTITIONS),
        (present(PROGRESS, cleanup_policy="delete"), ShapeSeen.POLICY),
        (present(PROGRESS, cleanup_policy="compact,delete"), ShapeSeen.POLICY),
        (present(PROGRESS, cleanup_policy=None), ShapeSeen.UNKNOWN),
    ],
)
def test_a_progress_topic_has_one_partition_and_is_exactly_compacted(
    facts: ResourceFacts, word: ShapeSeen
) -> None:
    assert shape_seen(facts) is word


@pytest.mark.parametrize(
    ("seen", "word"),
    [
        (None, RecordsSeen.OURS),
        (NO_HISTORY, RecordsSeen.OURS),
        (history(), RecordsSeen.OURS),
        (history(owner="them"), RecordsSeen.OTHER_OWNER),
        (history(generation=6), RecordsSeen.NEWER_GENERATION),
        (history(flaws=flaws(Finding.NEWER_FORMAT)), RecordsSeen.NEWER_FORMAT),
        (history(flaws=flaws(Finding.GARBAGE)), RecordsSeen.GARBAGE),
        (history(flaws=flaws(Finding.BACKWARDS)), RecordsSeen.BACKWARDS),
        (history(flaws=flaws(Finding.DELETED)), RecordsSeen.BACKWARDS),
        (replace(NO_HISTORY, flaws=flaws(Finding.DELETED)), RecordsSeen.OURS),
        (history(flaws=flaws(Finding.GARBAGE, Finding.NEWER_FORMAT)), RecordsSeen.NEWER_FORMAT),
    ],
)
def test_records_are_ours_to_go_on_from_or_not(seen: Any, word: RecordsSeen) -> None:
    assert records_seen(seen, wanted(generation=5)) is word


# One test per row. Rows that start or resume.


def test_a_new_sink_creates_both_topics_and_starts() -> None:
    verdict = decide(unseen(), wanted())

    assert (verdict.kind, verdict.generation, verdict.positions) == (VerdictKind.START, 1, None)
    created = [(action.role, action.partitions) for action in verdict.actions]
    assert created == [(Role.PROGRESS, 1), (Role.DATA, SOURCE.partitions)]
    assert dict(verdict.actions[0].config)["cleanup.policy"] == "compact"
    assert verdict.error() is None


def test_a_lost_progress_topic_without_a_witness_looks_like_a_new_sink() -> None:
    verdict = decide(unseen(data=present(DATA)), wanted())

    assert verdict.kind is VerdictKind.START
    assert [action.role for action in verdict.actions] == [Role.PROGRESS]
    assert verdict.warnings == (
        'data topic "orders-out" holds up to 200 records already; this sink has no record of writing them',
    )


def test_a_sink_that_never_wrote_starts_anew_in_the_next_generation() -> None:
    """In the same one its records would look rolled back beside the witness."""
    verdict = decide(unseen(), wanted(witness=witness(rows=0, generation=4)))

    assert (verdict.kind, verdict.generation) == (VerdictKind.START, 5)


def test_a_data_topic_of_a_sink_that_wrote_nothing_is_created_again() -> None:
    verdict = decide(observation(history=UNWRITTEN, data=missing(DATA)), wanted())

    assert (verdict.kind, verdict.positions) == (VerdictKind.RESUME, {0: 50, 1: 50})
    assert [action.role for action in verdict.actions] == [Role.DATA]


def test_another_data_topic_is_adopted_by_a_sink_that_wrote_nothing() -> None:
    verdict = decide(observation(history=UNWRITTEN, data=OTHER_DATA), wanted())

    assert verdict.kind is VerdictKind.RESUME
    assert "is another one than recorded; nothing was written" in verdict.warnings[0]


def test_a_sink_whose_topics_are_as_announced_resumes() -> None:
    verdict = decide(observation(), wanted(witness=witness()))

    assert (verdict.kind, verdict.generation, verdict.epoch) == (VerdictKind.RESUME, 1, 7)
    assert verdict.positions == {0: 50, 1: 50}
    assert (verdict.actions, verdict.warnings) == ((), ())


def test_more_partitions_are_a_warning_that_keys_move() -> None:
    verdict = decide(observation(data=present(DATA, partitions=3)), wanted())

    assert verdict.kind is VerdictKind.RESUME
    assert verdict.warnings == (
        'data topic "orders-out" grew from 2 to 3 partitions: keys move, their order ends there',
    )


def test_a_source_partition_that_was_added_later_starts_at_its_first_offset() -> None:
    verdict = decide(observation(source=present(SOURCE, partitions=3)), wanted())

    assert verdict.positions == {0: 50, 1: 50, 2: EARLIEST}


def test_the_data_topic_gets_the_partitions_that_the_spec_names() -> None:
    named = replace(wanted().data, partitions=6, replication_factor=3, config={"retention.ms": "1"})

    action = decide(unseen(), wanted(data=named)).actions[1]

    assert (action.partitions, action.replication_factor, action.config) == (6, 3, {"retention.ms": "1"})


# Rows that wait.


@pytest.mark.parametrize(
    ("seen", "what"),
    [
        pytest.param(unseen(progress=hidden(PROGRESS), history=None), "progress topic", id="progress-hidden"),
        pytest.param(
            observation(history=None, history_reason="timed out"), "timed out", id="progress-not-read"
        ),
        pytest.param(unseen(data=hidden(DATA)), "data topic", id="data-hidden-new"),
        pytest.param(observation(data=hidden(DATA)), "data topic", id="data-hidden-written"),
        pytest.param(observation(source=hidden(SOURCE)), "source topic", id="source-hidden"),
        pytest.param(unseen(source=missing(SOURCE)), "does not exist", id="source-of-a-new-sink-missing"),
        pytest.param(
            observation(progress=present(PROGRESS, cleanup_policy=None, denied="DescribeConfigs")),
            "cleanup.policy",
            id="policy-hidden",
        ),
    ],
)
def test_what_cannot_be_seen_is_waited_for_and_never_guessed(seen: Observation, what: str) -> None:
    verdict = decide(seen, wanted())

    assert verdict.kind is VerdictKind.WAIT
    assert str(verdict).count(what) == 1
    assert verdict.actions == ()
    assert isinstance(verdict.error(), UnavailableError)


def test_a_hidden_topic_is_hinted_at_with_the_grant_that_shows_it() -> None:
    verdict = decide(observation(data=hidden(DATA)), wanted())

    assert verdict.hint == (
        "kafka-acls.sh --bootstrap-server broker:9092 --add --allow-principal User:<user of the connection> "
        "--operation Describe --topic orders-out"
    )


def test_what_the_reader_of_progress_hints_at_is_not_lost() -> None:
    seen = observation(history=None, history_reason="Reached 5", history_hint="kafka-transactions.sh list")

    verdict = decide(seen, wanted())

    assert verdict.hint == "kafka-transactions.sh list"
    assert verdict.detail == "Nothing was decided or changed."


def test_a_hidden_topic_is_not_waited_for_when_the_verdict_does_not_need_it() -> None:
    lost = decide(unseen(data=hidden(DATA)), wanted(witness=witness()))

    assert lost.kind is VerdictKind.REFUSE
    assert reasons(lost) == [Reason.PROGRESS_LOST]
    assert lost.ways == ()
    assert 'First make visible what is not: data topic "orders-out"' in lost.hint


# What the broker remembers.


@pytest.mark.parametrize(
    ("ids", "records", "word"),
    [
        pytest.param({}, 200, WitnessSeen.SILENT, id="never-heard-of-it"),
        pytest.param({DRIVER: ("Empty", 0), "p0": ("Empty", 0)}, 200, WitnessSeen.SILENT, id="one-start"),
        pytest.param({"p0": ("CompleteCommit", 1)}, 0, WitnessSeen.BROKER, id="a-writer-committed"),
        pytest.param({"p0": ("PrepareCommit", 1)}, 0, WitnessSeen.BROKER, id="a-writer-commits"),
        pytest.param(
            {DRIVER: ("CompleteCommit", 0), "p0": ("Empty", 0)}, 200, WitnessSeen.SILENT, id="announced-only"
        ),
        pytest.param(
            {DRIVER: ("CompleteCommit", 1), "p0": ("Empty", 1)}, 0, WitnessSeen.BROKER, id="fenced-at-its-end"
        ),
        pytest.param({DRIVER: ("Empty", 1), "p0": ("Empty", 1)}, 1, WitnessSeen.BROKER, id="used-and-rows"),
        pytest.param({DRIVER: ("Empty", 1), "p0": ("Empty", 1)}, 0, WitnessSeen.SILENT, id="used-and-no-row"),
        pytest.param({"p0": ("CompleteAbort", 0)}, 0, WitnessSeen.SILENT, id="given-up"),
    ],
)
def test_the_broker_remembers_a_sink_that_has_no_record(
    ids: dict[str, tuple[str, int]], records: int, word: WitnessSeen
) -> None:
    memory = BrokerMemory({writer: TransactionalIdFacts(*facts) for writer, facts in ids.items()})
    full = present(DATA, high={0: records})

    assert memory_seen(unseen(data=full, broker=memory), wanted()) is word
    assert memory_seen(unseen(data=full, broker=memory), wanted(witness=witness())) is WitnessSeen.AHEAD
    assert memory_seen(observation(broker=memory), wanted()) is WitnessSeen.SILENT


def test_a_broker_that_cannot_be_asked_changes_nothing_but_is_told_of() -> None:
    verdict = decide(unseen(broker=BrokerMemory(reason="it does not offer DescribeTransactions")), wanted())

    assert verdict.kind is VerdictKind.START
    assert "cannot be told" in verdict.warnings[0]
    assert "it does not offer DescribeTransactions" in verdict.warnings[0]


# Rows that refuse.


def reasons(verdict: Verdict) -> list[Reason]:
    return [refusal.reason for refusal in verdict.refusals]


LAST_WRITER_ONLY = History({"p1": record(epoch=1, from_={0: 0, 1: 0}, to={0: 300, 1: 300}, rows_total=300)})
ELSEWHERE = ResourceFacts(PROGRESS.name, Existence.MISSING, "cluster-b")
FIRST_EPOCH = witness(epoch=1, rows=600, offsets={0: 300, 1: 300})
COMMIT, FENCE = TransactionalIdFacts("CompleteCommit", 3), TransactionalIdFacts("Empty", 4)
COMMITTED = BrokerMemory({DRIVER: COMMIT, "p0": COMMIT})
FENCED_SINCE = BrokerMemory({DRIVER: FENCE, "p0": FENCE})

REFUSALS = {
    "progress-missing-although-rows-were-written": (
        unseen(), wanted(witness=witness()), Reason.PROGRESS_LOST,
        'progress of sink "orders" is lost',
        ["is missing", "500 rows through epoch 7 of generation 1"], ["start_over"],
    ),
    "no-record-although-rows-were-written": (
        observation(history=NO_HISTORY), wanted(witness=witness()), Reason.PROGRESS_LOST,
        'progress of sink "orders" is lost',
        ["has no record of this sink", 'Data topic "orders-out" holds up to 200 records'],
        ["resume_from_witness", "start_over"],
    ),
    "emptied-although-rows-were-written": (
        observation(history=NO_HISTORY, progress=present(PROGRESS, low={0: 9})), wanted(witness=witness()),
        Reason.PROGRESS_LOST, 'progress of sink "orders" is lost',
        ["begins at offset 9 and has no record"], ["resume_from_witness", "start_over"],
    ),
    "emptied-without-a-witness": (
        observation(history=NO_HISTORY, progress=present(PROGRESS, low={0: 9})), wanted(),
        Reason.PROGRESS_EMPTIED, 'progress topic "_sinks-progress-orders" of sink "orders" was emptied',
        ["begins at offset 9", "something was here"], ["start_over"],
    ),
    "deleted-by-hand": (
        observation(history=replace(NO_HISTORY, flaws=deleted(2))), wanted(), Reason.PROGRESS_EMPTIED,
        'progress topic "_sinks-progress-orders" of sink "orders" was emptied',
        ["has 2 deletion marks in place of this sink's records"], ["start_over"],
    ),
    "nothing-but-garbage": (
        observation(history=replace(NO_HISTORY, flaws=(Flaw(Finding.GARBAGE, "all", 3, "not JSON"),))),
        wanted(), Reason.GARBAGE, 'progress of sink "orders" cannot be read',
        ["Offset 3", "not JSON"], ["start_over"],
    ),
    "output-missing": (
        observation(data=missing(DATA)), wanted(), Reason.OUTPUT_LOST,
        'data topic "orders-out" is missing, but sink "orders" has written to it',
        ["500 rows through epoch 7 of generation 1", "id-data", "cluster-a"],
        ["continue_without_output", "start_over"],
    ),
    "output-with-another-id": (
        observation(data=OTHER_DATA), wanted(), Reason.OUTPUT_REPLACED,
        'data topic "orders-out" is not the one that sink "orders" has written to',
        ["Recorded was", "id-data", "Found is", "id-other"], ["adopt", "start_over"],
    ),
    "output-in-another-cluster": (
        observation(data=present(DATA, system="cluster-b")), wanted(), Reason.OUTPUT_REPLACED,
        'data topic "orders-out" is not the one', ["cluster-a", "cluster-b"], ["adopt", "start_over"],
    ),
    "output-with-fewer-partitions": (
        observation(data=present(DATA, partitions=1)), wanted(), Reason.OUTPUT_REPLACED,
        'data topic "orders-out" is not the one', ["2 partitions", "1 partition"], ["adopt", "start_over"],
    ),
    "source-with-another-id": (
        observation(source=present(SOURCE, id="id-other")), wanted(), Reason.SOURCE_REPLACED,
        'source topic "orders-in" is not the one that sink "orders" has read from',
        ["id-source", "id-other", "0: 50, 1: 50", "silently"], ["adopt", "start_over"],
    ),
    "source-in-another-cluster": (
        observation(source=present(SOURCE, system="cluster-b")), wanted(), Reason.SOURCE_REPLACED,
        'source topic "orders-in" is not the one', ["cluster-a", "cluster-b"], ["adopt", "start_over"],
    ),
    "source-with-fewer-partitions": (
        observation(source=present(SOURCE, partitions=1)), wanted(), Reason.SOURCE_REPLACED,
        'source topic "orders-in" is not the one', ["1 partition in cluster"], ["start_over"],
    ),
    "source-missing": (
        observation(source=missing(SOURCE)), wanted(), Reason.SOURCE_LOST,
        'source topic "orders-in" is missing, but sink "orders" has read from it', ["id-source"], [],
    ),
    "source-records-removed": (
        observation(source=present(SOURCE, low={0: 50, 1: 80})), wanted(), Reason.RECORDS_REMOVED,
        'sink "orders" has missed up to 30 records of source topic "orders-in"',
        ["offsets 1: 50 to 79 (by source", "500 rows through epoch 7"], ["skip_lost", "start_over"],
    ),
    "source-records-removed-under-a-stateful-plan": (
        observation(source=present(SOURCE, low={0: 51})), wanted(stateful=True), Reason.RECORDS_REMOVED,
        'sink "orders" has missed up to 1 record of', ["0: 50 to 50"], ["start_over"],
    ),
    "emptied-in-part": (
        observation(history=History({"p1": record(rows_total=300)}), progress=REPAIRED),
        wanted(witness=witness(rows=300)), Reason.PROGRESS_EMPTIED_IN_PART,
        'progress topic "_sinks-progress-orders" of sink "orders" was emptied in part',
        ['["orders","driver"]', "begins at offset 7", "300 rows through epoch 7"],
        ["resume_from_witness", "start_over"],
    ),
    "a-writer-deleted": (
        observation(history=WITHOUT_P0), wanted(),
        Reason.PROGRESS_EMPTIED_IN_PART,
        'progress topic "_sinks-progress-orders" of sink "orders" was emptied in part',
        ['keys ["orders","p0"]'], ["start_over"],
    ),
    "witness-knows-more-offsets-of-the-same-epoch": (
        observation(history=LAST_WRITER_ONLY), wanted(witness=FIRST_EPOCH),
        Reason.PROGRESS_ROLLED_BACK, 'progress of sink "orders" was rolled back',
        ["goes on at offsets 0: 0, 1: 300", "witness at 0: 300, 1: 300"],
        ["resume_from_witness", "start_over"],
    ),
    "in-another-cluster": (
        unseen(progress=ELSEWHERE), wanted(witness=witness()), Reason.PROGRESS_LOST,
        'sink "orders" has written to another cluster',
        ["500 rows", "in cluster cluster-a", "leads to cluster cluster-b"], ["start_over"],
    ),
    "the-broker-knows-commits": (
        unseen(data=present(DATA), broker=COMMITTED), wanted(), Reason.PROGRESS_LOST,
        'progress of sink "orders" is lost', ["coordinator knows of commits by driver, p0", "200 records"],
        ["start_over"],
    ),
    "the-broker-knows-use-and-the-data-topic-is-full": (
        unseen(data=present(DATA), broker=FENCED_SINCE), wanted(), Reason.PROGRESS_LOST,
        'progress of sink "orders" is lost', ["coordinator knows of driver, p0"], ["start_over"],
    ),
    "witness-newer": (
        observation(), wanted(witness=witness(epoch=9, rows=700)), Reason.PROGRESS_ROLLED_BACK,
        'progress of sink "orders" was rolled back',
        ["records 500 rows through epoch 7", "knows 700 rows through epoch 9"],
        ["resume_from_witness", "start_over"],
    ),
    "witness-newer-and-data-missing": (
        observation(data=missing(DATA)), wanted(witness=witness(epoch=9)), Reason.PROGRESS_ROLLED_BACK,
        'progress of sink "orders" was rolled back', ["epoch 9"], ["start_over"],
    ),
    "another-owner": (
        observation(history=history(owner="them")), wanted(), Reason.OTHER_OWNER,
        'sink "orders" belongs to another Airflow',
        ["owner them", "this Airflow is us", "run-1"], ["take_over"],
    ),
    "newer-format": (
        observation(history=history(flaws=flaws(Finding.NEWER_FORMAT))), wanted(), Reason.NEWER_FORMAT,
        'sink "orders" was taken over by a newer start', ["Offset 17", '["orders","all"]'], [],
    ),
    "newer-generation": (
        observation(history=history(generation=2)), wanted(generation=1), Reason.NEWER_GENERATION,
        'sink "orders" was taken over by a newer start', ["saw generation 1", "generation 2", "run-1"], [],
    ),
    "garbage": (
        observation(history=history(flaws=flaws(Finding.GARBAGE))), wanted(), Reason.GARBAGE,
        'progress of sink "orders" cannot be read', ["Offset 17", "what was seen"], ["start_over"],
    ),
    "contradiction": (
        observation(history=history(flaws=flaws(Finding.BACKWARDS))), wanted(), Reason.BACKWARDS,
        'progress of sink "orders" contradicts itself', ["Offset 17", "what was seen"], ["start_over"],
    ),
    "one-record-deleted": (
        observation(history=history(flaws=flaws(Finding.DELETED))), wanted(), Reason.BACKWARDS,
        'progress of sink "orders" contradicts itself', ["Offset 17", "deleted"], ["start_over"],
    ),
    "progress-with-two-partitions": (
        observation(progress=present(PROGRESS, partitions=2), history=None), wanted(),
        Reason.TOO_MANY_PARTITIONS, 'progress topic "_sinks-progress-orders" has 2 partitions', ["order"], [],
    ),
    "progress-not-compacted": (
        observation(progress=present(PROGRESS, cleanup_policy="compact,delete")), wanted(),
        Reason.NOT_COMPACTED, 'progress topic "_sinks-progress-orders" is not exactly compacted',
        ["cleanup.policy=compact,delete"], [],
    ),
    "progress-copied-to-another-topic": (
        observation(progress=present(PROGRESS, id="id-copy")), wanted(), Reason.PROGRESS_REPLACED,
        'progress topic "_sinks-progress-orders" is not the one', ["id-progress", "id-copy", "copies"],
        ["adopt", "start_over"],
    ),
    "checkpoint-ahead": (
        observation(checkpoint=CheckpointFacts("/checkpoints/1", 7, 7)), wanted(), Reason.CHECKPOINT_AHEAD,
        'progress of sink "orders" was rolled back', ["committed batch 7", "batch is 6"], ["start_over"],
    ),
    "state-lost": (
        observation(checkpoint=CheckpointFacts("/checkpoints/1")), wanted(stateful=True), Reason.STATE_LOST,
        'the state of sink "orders" is lost', ["/checkpoints/1", "batch 6", "batch -1"], ["start_over"],
    ),
}  # fmt: skip
"""Seen, wanted, and what follows: reason, primary, parts of the detail, names of the ways on."""


@pytest.mark.parametrize("row", REFUSALS.values(), ids=REFUSALS)
def test_a_refusal_says_what_was_seen_and_offers_its_ways_on(row: Any) -> None:
    seen, asked, reason, primary, details, ways = row
    verdict = decide(seen, asked)

    assert (verdict.kind, reasons(verdict)) == (VerdictKind.REFUSE, [reason])
    assert verdict.primary.startswith(primary)
    assert [part for part in details if part not in verdict.detail] == []
    assert [way.name for way in verdict.ways] == ways
    assert verdict.hint
    assert isinstance(verdict.error(), RefusedError)
    assert (verdict.actions, verdict.generation) == ((), 0)


def test_every_reason_has_its_row() -> None:
    assert {row[2] for row in REFUSALS.values()} == set(Reason)


@pytest.mark.parametrize("row", REFUSALS.values(), ids=REFUSALS)
def test_the_hint_has_the_exact_argument_of_each_way_on(row: Any) -> None:
    verdict = decide(row[0], row[1])

    for way in verdict.ways:
        assert f'accept="{way.code}": {way.explanation}.' in verdict.hint
        assert way.code.startswith(f"{way.name}-")


@pytest.mark.parametrize(
    ("row", "command"),
    [
        (
            "progress-not-compacted",
            (
                "kafka-configs.sh --bootstrap-server broker:9092 --alter --entity-type topics --entity-name "
                "_sinks-progress-orders --add-config cleanup.policy=compact"
            ),
        ),
        (
            "progress-with-two-partitions",
            "kafka-topics.sh --bootstrap-server broker:9092 --delete --topic _sinks-progress-orders;",
        ),
        ("newer-format", "pip install --upgrade airflow-provider-sinks"),
    ],
)
def test_what_no_way_settles_is_hinted_at_with_the_repair(row: str, command: str) -> None:
    assert command in decide(REFUSALS[row][0], REFUSALS[row][1]).hint


# Ways on.


def accepted(row: str, way: str, **changes: Any) -> Verdict:
    seen, asked = REFUSALS[row][0], replace(REFUSALS[row][1], **changes)
    code = next(offer.code for offer in decide(seen, asked).ways if offer.name == way)
    return decide(seen, asked, code)


def test_start_over_begins_a_generation_after_all_that_anybody_remembers() -> None:
    verdict = accepted("witness-newer", "start_over", witness=witness(generation=4, epoch=1))

    assert (verdict.kind, verdict.generation, verdict.positions) == (VerdictKind.START, 5, None)
    assert verdict.epoch == 0
    assert verdict.accepted == (Way.START_OVER,)


def test_start_over_counts_the_rows_that_stay() -> None:
    seen, asked = REFUSALS["source-with-another-id"][:2]
    verdict = accepted("source-with-another-id", "start_over")

    assert "up to 200 records; this sink wrote 500 rows" in decide(seen, asked).hint
    assert verdict.rows_before == 500


def test_how_much_was_written_is_unknown_where_the_progress_is_lost() -> None:
    nobody_knows = decide(*REFUSALS["the-broker-knows-commits"][:2]).hint
    one_writer_knows = decide(*REFUSALS["a-writer-deleted"][:2]).hint

    assert "(up to 200 records; how many it wrote is unknown)" in nobody_knows
    assert "this sink wrote at least 600 rows" in one_writer_knows


def test_start_over_without_the_old_output_counts_no_rows_before() -> None:
    assert accepted("output-missing", "start_over").rows_before == 0
    assert accepted("output-with-another-id", "start_over").rows_before == 0


def test_rows_that_a_reset_left_still_count_when_the_data_topic_goes_missing() -> None:
    reset = observation(history=history(rows_total=0, generation=2, rows_before=500), data=missing(DATA))

    assert reasons(decide(reset, wanted())) == [Reason.OUTPUT_LOST]


def test_resume_from_witness_begins_a_generation_at_its_offsets() -> None:
    verdict = accepted("no-record-although-rows-were-written", "resume_from_witness")

    assert (verdict.kind, verdict.generation) == (VerdictKind.RESUME, 2)
    assert verdict.positions == {0: 50, 1: 50}
    assert verdict.rows_before == 500


@pytest.mark.parametrize(
    "changes",
    [
        {"stateful": True},
        {"owner": "somebody-else"},
        {"witness": witness(offsets={})},
        {"witness": witness(identities=replace(witness().identities, data=replace(DATA, id="x")))},
        {"witness": witness(identities=replace(witness().identities, source=replace(SOURCE, id="x")))},
    ],
    ids=["stateful", "not-ours", "no-offsets", "other-data", "other-source"],
)
def test_resume_from_witness_is_offered_only_where_the_witness_fits(changes: Any) -> None:
    seen, asked = REFUSALS["no-record-although-rows-were-written"][:2]

    verdict = decide(seen, replace(asked, **changes))

    assert [way.name for way in verdict.ways] == ["start_over"]


def test_adopt_resumes_with_the_topic_that_is_there() -> None:
    verdict = accepted("output-with-another-id", "adopt")

    assert (verdict.kind, verdict.generation, verdict.actions) == (VerdictKind.RESUME, 1, ())
    assert verdict.positions == {0: 50, 1: 50}


def test_a_run_begins_where_its_witness_stands() -> None:
    """Or an older witness would know more than the records of the next epoch, and look like a rollback."""
    filtered = decide(observation(history=FILTERED), wanted(witness=witness(rows=300)))

    assert decide(observation(history=FILTERED), wanted()).positions == {0: 50, 1: 40}
    assert filtered.positions == {0: 50, 1: 50}


def test_a_witness_of_another_source_says_nothing_about_where_to_begin() -> None:
    other = replace(IDENTITIES, source=replace(SOURCE, id="x"))

    verdict = decide(observation(history=FILTERED), wanted(witness=witness(rows=300, identities=other)))

    assert verdict.positions == {0: 50, 1: 40}


def test_skip_lost_resumes_where_the_source_begins_with_another_checkpoint() -> None:
    verdict = accepted("source-records-removed", "skip_lost")

    assert (verdict.kind, verdict.positions) == (VerdictKind.RESUME, {0: 50, 1: 80})
    assert not verdict.continues_checkpoint


def test_continue_without_output_makes_the_topic_anew_and_resumes() -> None:
    verdict = accepted("output-missing", "continue_without_output")

    assert (verdict.kind, verdict.generation) == (VerdictKind.RESUME, 1)
    assert [action.role for action in verdict.actions] == [Role.DATA]
    assert verdict.positions == {0: 50, 1: 50}


def test_take_over_resumes_under_the_new_owner() -> None:
    verdict = accepted("another-owner", "take_over")

    assert (verdict.kind, verdict.generation, verdict.epoch) == (VerdictKind.RESUME, 1, 7)
    assert verdict.warnings[0].startswith('accepted "take_over-')


def test_several_reasons_are_settled_by_one_answer() -> None:
    seen = observation(history=history(owner="them"), data=missing(DATA))
    refused = decide(seen, wanted())

    assert reasons(refused) == [Reason.OTHER_OWNER, Reason.OUTPUT_LOST]
    assert refused.primary == 'sink "orders" belongs to another Airflow (and 1 more)'
    assert "Also: data topic" in refused.detail
    names = ["take_over+continue_without_output", "take_over+start_over"]
    assert [way.name for way in refused.ways] == names
    assert decide(seen, wanted(), refused.ways[0].code).kind is VerdictKind.RESUME


def test_one_adopt_takes_every_topic_that_was_replaced() -> None:
    seen = observation(source=present(SOURCE, id="x"), data=OTHER_DATA)

    ways = decide(seen, wanted()).ways

    assert [way.name for way in ways] == ["adopt", "start_over"]
    assert 'source topic "orders-in" and data topic "orders-out"' in ways[0].explanation


def test_a_missing_source_stops_every_way_on_until_it_is_there() -> None:
    assert decide(observation(source=missing(SOURCE), data=missing(DATA)), wanted()).ways == ()


def test_a_code_that_does_not_fit_is_refused_again_and_said_so() -> None:
    refused = decide(observation(data=missing(DATA)), wanted(), "start_over-0123456789")

    assert refused.kind is VerdictKind.REFUSE
    assert 'accept="start_over-0123456789" does not fit what is seen now' in refused.detail
    assert refused.ways


CHANGED: dict[str, tuple[Observation, Wanted]] = {
    "another-sink": (observation(data=missing(DATA)), wanted(sink="invoices")),
    "a-later-epoch": (observation(data=missing(DATA), history=history(epoch=8)), wanted()),
    "the-next-run": (observation(data=missing(DATA), history=history(run="run-2")), wanted()),
    "more-rows": (observation(data=missing(DATA), history=history(rows_total=501)), wanted()),
    "another-topic-missing": (observation(data=missing(DATA), dead_letter=missing(DEAD_LETTER)), wanted()),
    "the-topic-is-back-as-another-one": (observation(data=OTHER_DATA), wanted()),
    "another-start": (observation(data=missing(DATA)), wanted(start="latest")),
    "one-more-reason": (observation(data=missing(DATA), source=present(SOURCE, id="x")), wanted()),
}


@pytest.mark.parametrize("change", CHANGED.values(), ids=CHANGED)
def test_a_code_fits_exactly_what_was_seen(change: tuple[Observation, Wanted]) -> None:
    code = decide(observation(data=missing(DATA)), wanted()).ways[1].code

    assert code.startswith("start_over-")
    assert decide(*change, code).kind is VerdictKind.REFUSE


def test_a_code_does_not_change_from_one_look_to_the_next() -> None:
    later = observation(data=missing(DATA), at="later", source=present(SOURCE, high={0: 9, 1: 9}))

    assert decide(later, wanted()).ways == decide(observation(data=missing(DATA)), wanted()).ways


def test_a_code_of_the_running_job_fits_the_next_start() -> None:
    """Airflow has written a witness since, and somebody may have added partitions."""
    code = decide(observation(data=missing(DATA)), wanted()).ways[0].code
    later = observation(data=missing(DATA), source=present(SOURCE, partitions=3))

    assert decide(later, wanted(witness=witness()), code).goes_on


def test_the_code_to_resume_from_the_witness_is_for_the_rows_that_it_knows() -> None:
    seen, asked = REFUSALS["no-record-although-rows-were-written"][:2]
    code = decide(seen, asked).ways[0].code

    assert decide(seen, wanted(witness=witness(epoch=8, launch=9, at="later")), code).goes_on
    assert not decide(seen, wanted(witness=witness(rows=501)), code).goes_on


def test_the_code_to_take_over_survives_the_epochs_of_the_other_driver() -> None:
    code = decide(observation(history=history(owner="them")), wanted()).ways[0].code

    assert decide(observation(history=history(owner="them", epoch=99)), wanted(), code).goes_on


def test_a_code_that_nothing_asks_for_is_a_warning() -> None:
    verdict = decide(observation(), wanted(), "adopt-0123456789")

    assert verdict.kind is VerdictKind.RESUME
    assert verdict.warnings == ('accept="adopt-0123456789" was not needed, nothing is refused: take it away',)


# The dead-letter topic is judged like the data topic.


def with_dead_letters(facts: ResourceFacts, dead_total: int) -> Verdict:
    seen = observation(dead_letter=facts, history=history(dead_total=dead_total))
    return decide(seen, wanted(dead_letter=dead_letter_wanted()))


def test_a_dead_letter_topic_that_never_got_a_row_is_created_again() -> None:
    verdict = with_dead_letters(missing(DEAD_LETTER), 0)

    assert [action.role for action in verdict.actions] == [Role.DEAD_LETTER]


def test_a_dead_letter_topic_that_got_rows_is_missed() -> None:
    verdict = with_dead_letters(missing(DEAD_LETTER), 3)

    assert verdict.primary == 'dead-letter topic "orders-dlq" is missing, but sink "orders" has written to it'
    assert "3 dead letters" in verdict.detail
    assert [way.name for way in verdict.ways] == ["continue_without_output", "start_over"]


def test_a_replaced_dead_letter_topic_refuses_by_its_dead_letters() -> None:
    other = present(DEAD_LETTER, id="x")

    assert with_dead_letters(other, 0).kind is VerdictKind.RESUME
    assert reasons(with_dead_letters(other, 3)) == [Reason.OUTPUT_REPLACED]


def test_a_dead_letter_topic_that_the_spec_names_for_the_first_time_is_created() -> None:
    new = history(identities=replace(IDENTITIES, dead_letter=None))
    seen = observation(dead_letter=missing(DEAD_LETTER), history=new)

    verdict = decide(seen, wanted(dead_letter=dead_letter_wanted()))

    assert [action.role for action in verdict.actions] == [Role.DEAD_LETTER]


def test_lost_progress_is_one_refusal_with_or_without_dead_letters() -> None:
    seen = unseen(dead_letter=present(DEAD_LETTER))

    refused = decide(seen, wanted(dead_letter=dead_letter_wanted(), witness=witness()))

    assert reasons(refused) == [Reason.PROGRESS_LOST]


# The checkpoint.


def test_a_checkpoint_that_fits_is_continued_and_proves_the_newest_epoch() -> None:
    verdict = decide(observation(checkpoint=CheckpointFacts("/checkpoints/1", 6, 6)), wanted())

    assert (verdict.continues_checkpoint, verdict.positions) == (True, {0: 50, 1: 50})


def test_a_lost_checkpoint_of_a_stateless_sink_is_renewed() -> None:
    verdict = decide(observation(checkpoint=CheckpointFacts("/checkpoints/1")), wanted())

    assert (verdict.kind, verdict.continues_checkpoint) == (VerdictKind.RESUME, False)


def test_who_cannot_see_the_checkpoint_offers_the_same_codes_as_who_can() -> None:
    """Or a code that the sensor prints would not fit the job, nor the job's the sensor."""
    lost = observation(data=missing(DATA))
    job = replace(lost, checkpoint=CheckpointFacts("/checkpoints/1", 6, 6))

    assert decide(lost, wanted()).ways == decide(job, wanted()).ways


def test_a_new_generation_never_continues_a_checkpoint() -> None:
    assert not accepted("checkpoint-ahead", "start_over").continues_checkpoint


def test_no_run_is_announced_for_a_topic_that_is_not_there() -> None:
    with pytest.raises(
        UnavailableError, match='data topic "orders-out" is missing although it should be there'
    ):
        unseen(progress=present(PROGRESS)).identities()


# The report.


def test_a_report_has_facts_verdict_and_actions() -> None:
    seen = unseen(dead_letter=hidden(DEAD_LETTER))
    text = render(unseen(), decide(unseen(), wanted()))

    assert 'source topic:      "orders-in" 2 partitions, id id-source, cluster cluster-a' in text
    assert 'data topic:        "orders-out" missing' in text
    assert 'verdict: start: sink "orders" starts generation 1' in text
    assert 'action: create data topic "orders-out": 2 partitions' in text
    assert '"orders-dlq" unknown (TOPIC_AUTHORIZATION_FAILED)' in render(seen, decide(seen, wanted()))


def test_every_word_is_told_apart() -> None:
    for words in (ProgressSeen, ResourceSeen, WitnessSeen, RecordsSeen, ShapeSeen, Step, Reason):
        assert issubclass(words, Enum)
        assert len({word.value for word in words}) == len(list(words))
