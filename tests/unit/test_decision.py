"""The decision: one test per row of the design's table, by the behaviour it promises."""

from __future__ import annotations

import itertools
from dataclasses import replace
from enum import Enum
from typing import Any

import pytest

from airflow_provider_sinks.connectors.kafka.creation import CreateTopic, progress_topic
from airflow_provider_sinks.core.decision.classify import (
    ProgressState,
    ResourceState,
    WitnessState,
    classify_memory,
    classify_progress,
    classify_resource,
    classify_witness,
)
from airflow_provider_sinks.core.decision.decide import decide
from airflow_provider_sinks.core.decision.facts import Existence, Observation, ResourceFacts, Role
from airflow_provider_sinks.core.decision.reasons.checkpoint import CHECKPOINT_USES, CheckpointReason
from airflow_provider_sinks.core.decision.reasons.output import OutputReason
from airflow_provider_sinks.core.decision.reasons.owner import OWNERS, OwnerReason
from airflow_provider_sinks.core.decision.reasons.progress import ProgressReason
from airflow_provider_sinks.core.decision.reasons.progress_place import (
    PLACES,
    SHAPES,
    PlaceReason,
    Shape,
    classify_shape,
)
from airflow_provider_sinks.core.decision.reasons.reason import Reason
from airflow_provider_sinks.core.decision.reasons.records import (
    RECORDS,
    RecordsReason,
    RecordsState,
    classify_records,
)
from airflow_provider_sinks.core.decision.reasons.source import REACHES, SOURCES, Reach, SourceReason
from airflow_provider_sinks.core.decision.ruling import Ruling
from airflow_provider_sinks.core.decision.start_request import StartRequest
from airflow_provider_sinks.core.decision.table import DECISIONS
from airflow_provider_sinks.core.decision.verdict import Verdict, VerdictKind, render
from airflow_provider_sinks.core.decision.way_on import WayOn
from airflow_provider_sinks.core.errors import RefusedError, UnavailableError
from airflow_provider_sinks.core.progress.broker_memory import BrokerMemory, TransactionalIdFacts
from airflow_provider_sinks.core.progress.checkpoint import CheckpointFacts, CheckpointUse
from airflow_provider_sinks.core.progress.history import EARLIEST, NO_HISTORY, Finding, Flaw, History
from airflow_provider_sinks.core.progress.record import DRIVER
from tests.facts import (
    DATA,
    DEAD_LETTER,
    IDENTITIES,
    PROGRESS,
    SOURCE,
    dead_letter_topic,
    every_reason,
    hidden,
    history,
    missing,
    observation,
    present,
    record,
    request,
    unseen,
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
        (DECISIONS, itertools.product(ProgressState, ResourceState, WitnessState)),
        (SOURCES, itertools.product([False, True], ResourceState)),
        (REACHES, Reach),
        (RECORDS, RecordsState),
        (SHAPES, Shape),
        (PLACES, ResourceState),
        (OWNERS, [False, True]),
        (CHECKPOINT_USES, CheckpointUse),
    ],
    ids=["decisions", "sources", "reaches", "records", "shapes", "places", "owners", "checkpoints"],
)
def test_every_combination_has_its_cell(table: dict[Any, Any], product: Any) -> None:
    assert set(table) == set(product)


def test_every_reason_can_be_the_outcome_of_some_table() -> None:
    tables = (DECISIONS, SOURCES, REACHES, RECORDS, SHAPES, PLACES, OWNERS, CHECKPOINT_USES)
    reached = {cell for table in tables for cell in table.values() if isinstance(cell, Reason)}

    assert set(every_reason()) == reached


def test_every_reason_has_one_entry_under_a_name_of_its_own() -> None:
    names = [reason.name for reason in every_reason()]

    assert len(names) == len(set(names)) == len({reason.entry.brief for reason in every_reason()})


def test_the_seed_rule_holds_word_for_word() -> None:
    """Without a witness, that is without what we know beyond it."""
    topics = [ResourceState.MISSING, ResourceState.PRESENT]
    cells = {
        (p, t): DECISIONS[p, t, WitnessState.SILENT]
        for p in (ProgressState.NONE, ProgressState.UNWRITTEN, ProgressState.WRITTEN)
        for t in topics
    }

    assert cells[ProgressState.NONE, ResourceState.MISSING] is Ruling.CREATE
    assert cells[ProgressState.NONE, ResourceState.PRESENT] is Ruling.TAKE
    assert cells[ProgressState.UNWRITTEN, ResourceState.MISSING] is Ruling.CREATE
    failing = [key for key, cell in cells.items() if isinstance(cell, Reason)]
    assert failing == [(ProgressState.WRITTEN, ResourceState.MISSING)]


# Facts become words.


@pytest.mark.parametrize(
    ("seen", "word"),
    [
        pytest.param(
            observation(progress=hidden(PROGRESS), history=None), ProgressState.UNKNOWN, id="hidden"
        ),
        pytest.param(observation(history=None), ProgressState.UNKNOWN, id="not-read"),
        pytest.param(unseen(), ProgressState.NONE, id="missing"),
        pytest.param(observation(history=NO_HISTORY), ProgressState.NONE, id="no-record"),
        pytest.param(
            observation(history=NO_HISTORY, progress=present(PROGRESS, low={0: 5})),
            ProgressState.EMPTIED,
            id="low-watermark-moved",
        ),
        pytest.param(
            observation(history=replace(NO_HISTORY, flaws=deleted(1))), ProgressState.EMPTIED, id="deleted"
        ),
        pytest.param(
            observation(history=History({"p1": record(rows_total=300)})),
            ProgressState.IN_PART,
            id="no-driver",
        ),
        pytest.param(
            observation(history=WITHOUT_P0),
            ProgressState.IN_PART,
            id="a-writer-that-the-driver-names-is-gone",
        ),
        pytest.param(
            observation(history=History({**PARTS, "p0": record(rows_total=299)})),
            ProgressState.IN_PART,
            id="a-writer-is-older-than-the-driver-says",
        ),
        pytest.param(
            observation(history=History(PARTS), progress=REPAIRED),
            ProgressState.WRITTEN,
            id="old-records-were-removed-and-everything-needed-is-there",
        ),
        pytest.param(observation(history=UNWRITTEN), ProgressState.UNWRITTEN, id="nothing-written"),
        pytest.param(observation(), ProgressState.WRITTEN, id="written"),
    ],
)
def test_the_progress_topic_is_told_in_one_word(seen: Observation, word: ProgressState) -> None:
    assert classify_progress(seen, request(), seen.history.rows_ever if seen.history else 0) is word


def test_a_shared_progress_topic_that_lost_its_begin_says_nothing_about_this_sink() -> None:
    emptied = observation(history=NO_HISTORY, progress=present(PROGRESS, low={0: 5}))

    assert classify_progress(emptied, request(progress_is_shared=True), 0) is ProgressState.NONE


@pytest.mark.parametrize(
    ("facts", "word"),
    [
        (hidden(DATA), ResourceState.UNKNOWN),
        (missing(DATA), ResourceState.MISSING),
        (present(DATA), ResourceState.PRESENT),
        (present(DATA, partitions=3), ResourceState.GREW),
        (present(DATA, partitions=1), ResourceState.REPLACED),
        (present(DATA, id="id-other"), ResourceState.REPLACED),
        (present(DATA, system="cluster-b"), ResourceState.REPLACED),
        (present(DATA, name="orders-out-2"), ResourceState.REPLACED),
    ],
)
def test_a_topic_is_compared_with_the_recorded_one(facts: ResourceFacts, word: ResourceState) -> None:
    assert classify_resource(facts, DATA) is word


def test_a_topic_that_nobody_recorded_is_just_there() -> None:
    assert classify_resource(OTHER_DATA, None) is ResourceState.PRESENT


@pytest.mark.parametrize(
    ("seen", "remembered", "word"),
    [
        pytest.param(history(), None, WitnessState.SILENT, id="none"),
        pytest.param(history(), witness(), WitnessState.SILENT, id="equal"),
        pytest.param(history(), witness(epoch=6, rows=400, offsets={0: 40}), WitnessState.SILENT, id="older"),
        pytest.param(history(), witness(epoch=6, rows=501), WitnessState.AHEAD, id="more-rows"),
        pytest.param(history(), witness(offsets={0: 50, 1: 51}), WitnessState.AHEAD, id="further"),
        pytest.param(
            history(), witness(epoch=6, offsets={0: 51}), WitnessState.AHEAD, id="older-but-further"
        ),
        pytest.param(history(), witness(offsets={2: 1}), WitnessState.AHEAD, id="a-partition-more"),
        pytest.param(FILTERED, witness(rows=300), WitnessState.SILENT, id="a-writer-had-no-row-in-it"),
        pytest.param(
            FILTERED,
            witness(epoch=6, rows=300, offsets={1: 41}),
            WitnessState.AHEAD,
            id="beyond-its-begin",
        ),
        pytest.param(history(), witness(epoch=8), WitnessState.AHEAD, id="newer-epoch"),
        pytest.param(history(), witness(generation=2, epoch=0), WitnessState.AHEAD, id="newer-generation"),
        pytest.param(history(generation=2), witness(epoch=99), WitnessState.SILENT, id="older-generation"),
        pytest.param(history(), witness(epoch=8, owner="them"), WitnessState.SILENT, id="not-ours"),
        pytest.param(NO_HISTORY, witness(rows=0), WitnessState.SILENT, id="never-wrote"),
        pytest.param(NO_HISTORY, witness(), WitnessState.AHEAD, id="wrote"),
        pytest.param(NO_HISTORY, witness(owner="them"), WitnessState.AHEAD, id="somebody-wrote"),
        pytest.param(None, witness(), WitnessState.SILENT, id="progress-not-read"),
    ],
)
def test_the_witness_is_compared_by_generation_epoch_rows_and_every_position(
    seen: Any, remembered: Any, word: WitnessState
) -> None:
    assert classify_witness(seen, request(witness=remembered)) is word


@pytest.mark.parametrize(
    ("facts", "word"),
    [
        (missing(PROGRESS), Shape.FITS),
        (present(PROGRESS), Shape.FITS),
        (present(PROGRESS, partitions=2), Shape.PARTITIONS),
        (present(PROGRESS, cleanup_policy="delete"), Shape.POLICY),
        (present(PROGRESS, cleanup_policy="compact,delete"), Shape.POLICY),
        (present(PROGRESS, cleanup_policy=None), Shape.UNKNOWN),
    ],
)
def test_a_progress_topic_has_one_partition_and_is_exactly_compacted(
    facts: ResourceFacts, word: Shape
) -> None:
    assert classify_shape(facts) is word


@pytest.mark.parametrize(
    ("seen", "word"),
    [
        (None, RecordsState.FIT),
        (NO_HISTORY, RecordsState.FIT),
        (history(), RecordsState.FIT),
        (history(generation=6), RecordsState.NEWER_GENERATION),
        (history(flaws=flaws(Finding.NEWER_FORMAT)), RecordsState.NEWER_FORMAT),
        (history(flaws=flaws(Finding.GARBAGE)), RecordsState.GARBAGE),
        (history(flaws=flaws(Finding.BACKWARDS)), RecordsState.BACKWARDS),
        (history(flaws=flaws(Finding.DELETED)), RecordsState.BACKWARDS),
        (replace(NO_HISTORY, flaws=flaws(Finding.DELETED)), RecordsState.FIT),
        (history(flaws=flaws(Finding.GARBAGE, Finding.NEWER_FORMAT)), RecordsState.NEWER_FORMAT),
    ],
)
def test_records_can_be_gone_on_from_or_not(seen: Any, word: RecordsState) -> None:
    assert classify_records(seen, request(generation=5)) is word


# One test per row. Rows that start or resume.


def test_a_new_sink_creates_both_topics_and_starts() -> None:
    verdict = decide(unseen(), request())

    assert (verdict.kind, verdict.generation, verdict.positions) == (VerdictKind.START, 1, None)
    data = CreateTopic(Role.DATA, DATA.name, SOURCE.partitions)
    assert verdict.actions == (progress_topic(PROGRESS.name), data)
    assert verdict.error() is None


def test_a_lost_progress_topic_without_a_witness_looks_like_a_new_sink() -> None:
    verdict = decide(unseen(data=present(DATA)), request())

    assert verdict.kind is VerdictKind.START
    assert [action.role for action in verdict.actions] == [Role.PROGRESS]
    assert verdict.warnings == (
        'data topic "orders-out" holds up to 200 records already; this sink has no record of writing them',
    )


def test_a_sink_that_never_wrote_starts_anew_in_the_next_generation() -> None:
    """In the same one its records would look rolled back beside the witness."""
    verdict = decide(unseen(), request(witness=witness(rows=0, generation=4)))

    assert (verdict.kind, verdict.generation) == (VerdictKind.START, 5)


def test_a_data_topic_of_a_sink_that_wrote_nothing_is_created_again() -> None:
    verdict = decide(observation(history=UNWRITTEN, data=missing(DATA)), request())

    assert (verdict.kind, verdict.positions) == (VerdictKind.RESUME, {0: 50, 1: 50})
    assert [action.role for action in verdict.actions] == [Role.DATA]


def test_another_data_topic_is_adopted_by_a_sink_that_wrote_nothing() -> None:
    verdict = decide(observation(history=UNWRITTEN, data=OTHER_DATA), request())

    assert verdict.kind is VerdictKind.RESUME
    assert "is another one than recorded; nothing was written" in verdict.warnings[0]


def test_a_sink_whose_topics_are_as_announced_resumes() -> None:
    verdict = decide(observation(), request(witness=witness()))

    assert (verdict.kind, verdict.generation, verdict.epoch) == (VerdictKind.RESUME, 1, 7)
    assert verdict.positions == {0: 50, 1: 50}
    assert (verdict.actions, verdict.warnings) == ((), ())


def test_more_partitions_are_a_warning_that_keys_move() -> None:
    verdict = decide(observation(data=present(DATA, partitions=3)), request())

    assert verdict.kind is VerdictKind.RESUME
    assert verdict.warnings == (
        'data topic "orders-out" grew from 2 to 3 partitions: keys move, their order ends there',
    )


def test_a_source_partition_that_was_added_later_starts_at_its_first_offset() -> None:
    verdict = decide(observation(source=present(SOURCE, partitions=3)), request())

    assert verdict.positions == {0: 50, 1: 50, 2: EARLIEST}


def test_the_data_topic_gets_the_partitions_that_the_spec_names() -> None:
    named = CreateTopic(Role.DATA, DATA.name, 6, 3, {"retention.ms": "1"})

    assert decide(unseen(), request(data=named)).actions[1] == named


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
    verdict = decide(seen, request())

    assert verdict.kind is VerdictKind.WAIT
    assert str(verdict).count(what) == 1
    assert verdict.actions == ()
    assert isinstance(verdict.error(), UnavailableError)


def test_a_hidden_topic_is_hinted_at_with_the_grant_that_shows_it() -> None:
    verdict = decide(observation(data=hidden(DATA)), request())

    assert verdict.hint == (
        "kafka-acls.sh --bootstrap-server broker:9092 --add --allow-principal User:<user of the connection> "
        "--operation Describe --topic orders-out"
    )


def test_what_the_reader_of_progress_hints_at_is_not_lost() -> None:
    seen = observation(history=None, history_reason="Reached 5", history_hint="kafka-transactions.sh list")

    verdict = decide(seen, request())

    assert verdict.hint == "kafka-transactions.sh list"
    assert verdict.detail == "Nothing was decided or changed."


def test_a_hidden_topic_is_not_waited_for_when_the_verdict_does_not_need_it() -> None:
    lost = decide(unseen(data=hidden(DATA)), request(witness=witness()))

    assert lost.kind is VerdictKind.REFUSE
    assert reasons(lost) == [ProgressReason.PROGRESS_LOST]
    assert lost.offers == ()
    assert 'First make visible what is not: data topic "orders-out"' in lost.hint


# What the broker remembers.


@pytest.mark.parametrize(
    ("ids", "records", "word"),
    [
        pytest.param({}, 200, WitnessState.SILENT, id="never-heard-of-it"),
        pytest.param({DRIVER: ("Empty", 0), "p0": ("Empty", 0)}, 200, WitnessState.SILENT, id="one-start"),
        pytest.param({"p0": ("CompleteCommit", 1)}, 0, WitnessState.BROKER, id="a-writer-committed"),
        pytest.param({"p0": ("PrepareCommit", 1)}, 0, WitnessState.BROKER, id="a-writer-commits"),
        pytest.param(
            {DRIVER: ("CompleteCommit", 0), "p0": ("Empty", 0)}, 200, WitnessState.SILENT, id="announced-only"
        ),
        pytest.param(
            {DRIVER: ("CompleteCommit", 1), "p0": ("Empty", 1)},
            0,
            WitnessState.BROKER,
            id="fenced-at-its-end",
        ),
        pytest.param({DRIVER: ("Empty", 1), "p0": ("Empty", 1)}, 1, WitnessState.BROKER, id="used-and-rows"),
        pytest.param(
            {DRIVER: ("Empty", 1), "p0": ("Empty", 1)}, 0, WitnessState.SILENT, id="used-and-no-row"
        ),
        pytest.param({"p0": ("CompleteAbort", 0)}, 0, WitnessState.SILENT, id="given-up"),
    ],
)
def test_the_broker_remembers_a_sink_that_has_no_record(
    ids: dict[str, tuple[str, int]], records: int, word: WitnessState
) -> None:
    memory = BrokerMemory({writer: TransactionalIdFacts(*facts) for writer, facts in ids.items()})
    full = present(DATA, high={0: records})

    assert classify_memory(unseen(data=full, broker=memory), request()) is word
    assert classify_memory(unseen(data=full, broker=memory), request(witness=witness())) is WitnessState.AHEAD
    assert classify_memory(observation(broker=memory), request()) is WitnessState.SILENT


def test_a_broker_that_cannot_be_asked_changes_nothing_but_is_told_of() -> None:
    verdict = decide(unseen(broker=BrokerMemory(reason="it does not offer DescribeTransactions")), request())

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
        unseen(), request(witness=witness()), ProgressReason.PROGRESS_LOST,
        'progress of sink "orders" is lost',
        ["is missing", "500 rows through epoch 7 of generation 1"], ["start_over"],
    ),
    "no-record-although-rows-were-written": (
        observation(history=NO_HISTORY), request(witness=witness()), ProgressReason.PROGRESS_LOST,
        'progress of sink "orders" is lost',
        ["has no record of this sink", 'Data topic "orders-out" holds up to 200 records'],
        ["resume_from_witness", "start_over"],
    ),
    "emptied-although-rows-were-written": (
        observation(history=NO_HISTORY, progress=present(PROGRESS, low={0: 9})), request(witness=witness()),
        ProgressReason.PROGRESS_LOST, 'progress of sink "orders" is lost',
        ["begins at offset 9 and has no record"], ["resume_from_witness", "start_over"],
    ),
    "emptied-without-a-witness": (
        observation(history=NO_HISTORY, progress=present(PROGRESS, low={0: 9})), request(),
        ProgressReason.PROGRESS_EMPTIED,
        'progress topic "_sinks-progress-orders" of sink "orders" was emptied',
        ["begins at offset 9", "something was here"], ["start_over"],
    ),
    "deleted-by-hand": (
        observation(history=replace(NO_HISTORY, flaws=deleted(2))), request(),
        ProgressReason.PROGRESS_EMPTIED,
        'progress topic "_sinks-progress-orders" of sink "orders" was emptied',
        ["has 2 deletion marks in place of this sink's records"], ["start_over"],
    ),
    "nothing-but-garbage": (
        observation(history=replace(NO_HISTORY, flaws=(Flaw(Finding.GARBAGE, "all", 3, "not JSON"),))),
        request(), RecordsReason.GARBAGE, 'progress of sink "orders" cannot be read',
        ["Offset 3", "not JSON"], ["start_over"],
    ),
    "output-missing": (
        observation(data=missing(DATA)), request(), OutputReason.OUTPUT_LOST,
        'data topic "orders-out" is missing, but sink "orders" has written to it',
        ["500 rows through epoch 7 of generation 1", "id-data", "cluster-a"],
        ["continue_without_output", "start_over"],
    ),
    "output-with-another-id": (
        observation(data=OTHER_DATA), request(), OutputReason.OUTPUT_REPLACED,
        'data topic "orders-out" is not the one that sink "orders" has written to',
        ["Recorded was", "id-data", "Found is", "id-other"], ["adopt", "start_over"],
    ),
    "output-in-another-cluster": (
        observation(data=present(DATA, system="cluster-b")), request(), OutputReason.OUTPUT_REPLACED,
        'data topic "orders-out" is not the one', ["cluster-a", "cluster-b"], ["adopt", "start_over"],
    ),
    "output-with-fewer-partitions": (
        observation(data=present(DATA, partitions=1)), request(), OutputReason.OUTPUT_REPLACED,
        'data topic "orders-out" is not the one', ["2 partitions", "1 partition"], ["adopt", "start_over"],
    ),
    "source-with-another-id": (
        observation(source=present(SOURCE, id="id-other")), request(), SourceReason.SOURCE_REPLACED,
        'source topic "orders-in" is not the one that sink "orders" has read from',
        ["id-source", "id-other", "0: 50, 1: 50", "silently"], ["adopt", "start_over"],
    ),
    "source-in-another-cluster": (
        observation(source=present(SOURCE, system="cluster-b")), request(), SourceReason.SOURCE_REPLACED,
        'source topic "orders-in" is not the one', ["cluster-a", "cluster-b"], ["adopt", "start_over"],
    ),
    "source-with-fewer-partitions": (
        observation(source=present(SOURCE, partitions=1)), request(), SourceReason.SOURCE_REPLACED,
        'source topic "orders-in" is not the one', ["1 partition in cluster"], ["start_over"],
    ),
    "source-missing": (
        observation(source=missing(SOURCE)), request(), SourceReason.SOURCE_LOST,
        'source topic "orders-in" is missing, but sink "orders" has read from it', ["id-source"], [],
    ),
    "source-records-removed": (
        observation(source=present(SOURCE, low={0: 50, 1: 80})), request(), SourceReason.RECORDS_REMOVED,
        'sink "orders" has missed up to 30 records of source topic "orders-in"',
        ["offsets 1: 50 to 79 (by source", "500 rows through epoch 7"], ["skip_lost", "start_over"],
    ),
    "source-records-removed-under-a-stateful-plan": (
        observation(source=present(SOURCE, low={0: 51})), request(stateful=True),
        SourceReason.RECORDS_REMOVED,
        'sink "orders" has missed up to 1 record of', ["0: 50 to 50"], ["start_over"],
    ),
    "emptied-in-part": (
        observation(history=History({"p1": record(rows_total=300)}), progress=REPAIRED),
        request(witness=witness(rows=300)), ProgressReason.PROGRESS_EMPTIED_IN_PART,
        'progress topic "_sinks-progress-orders" of sink "orders" was emptied in part',
        ['["orders","driver"]', "begins at offset 7", "300 rows through epoch 7"],
        ["resume_from_witness", "start_over"],
    ),
    "a-writer-deleted": (
        observation(history=WITHOUT_P0), request(),
        ProgressReason.PROGRESS_EMPTIED_IN_PART,
        'progress topic "_sinks-progress-orders" of sink "orders" was emptied in part',
        ['keys ["orders","p0"]'], ["start_over"],
    ),
    "witness-knows-more-offsets-of-the-same-epoch": (
        observation(history=LAST_WRITER_ONLY), request(witness=FIRST_EPOCH),
        ProgressReason.PROGRESS_ROLLED_BACK, 'progress of sink "orders" was rolled back',
        ["goes on at offsets 0: 0, 1: 300", "witness at 0: 300, 1: 300"],
        ["resume_from_witness", "start_over"],
    ),
    "in-another-cluster": (
        unseen(progress=ELSEWHERE), request(witness=witness()), ProgressReason.PROGRESS_LOST,
        'sink "orders" has written to another cluster',
        ["500 rows", "in cluster cluster-a", "leads to cluster cluster-b"], ["start_over"],
    ),
    "the-broker-knows-commits": (
        unseen(data=present(DATA), broker=COMMITTED), request(), ProgressReason.PROGRESS_LOST,
        'progress of sink "orders" is lost', ["coordinator knows of commits by driver, p0", "200 records"],
        ["start_over"],
    ),
    "the-broker-knows-use-and-the-data-topic-is-full": (
        unseen(data=present(DATA), broker=FENCED_SINCE), request(), ProgressReason.PROGRESS_LOST,
        'progress of sink "orders" is lost', ["coordinator knows of driver, p0"], ["start_over"],
    ),
    "witness-newer": (
        observation(), request(witness=witness(epoch=9, rows=700)), ProgressReason.PROGRESS_ROLLED_BACK,
        'progress of sink "orders" was rolled back',
        ["records 500 rows through epoch 7", "knows 700 rows through epoch 9"],
        ["resume_from_witness", "start_over"],
    ),
    "witness-newer-and-data-missing": (
        observation(data=missing(DATA)), request(witness=witness(epoch=9)),
        ProgressReason.PROGRESS_ROLLED_BACK,
        'progress of sink "orders" was rolled back', ["epoch 9"], ["start_over"],
    ),
    "another-owner": (
        observation(history=history(owner="them")), request(), OwnerReason.OTHER_OWNER,
        'sink "orders" belongs to another Airflow',
        ["owner them", "this Airflow is us", "run-1"], ["take_over"],
    ),
    "newer-format": (
        observation(history=history(flaws=flaws(Finding.NEWER_FORMAT))), request(),
        RecordsReason.NEWER_FORMAT,
        'sink "orders" was taken over by a newer start', ["Offset 17", '["orders","all"]'], [],
    ),
    "newer-generation": (
        observation(history=history(generation=2)), request(generation=1), RecordsReason.NEWER_GENERATION,
        'sink "orders" was taken over by a newer start', ["saw generation 1", "generation 2", "run-1"], [],
    ),
    "garbage": (
        observation(history=history(flaws=flaws(Finding.GARBAGE))), request(), RecordsReason.GARBAGE,
        'progress of sink "orders" cannot be read', ["Offset 17", "what was seen"], ["start_over"],
    ),
    "contradiction": (
        observation(history=history(flaws=flaws(Finding.BACKWARDS))), request(), RecordsReason.BACKWARDS,
        'progress of sink "orders" contradicts itself', ["Offset 17", "what was seen"], ["start_over"],
    ),
    "one-record-deleted": (
        observation(history=history(flaws=flaws(Finding.DELETED))), request(), RecordsReason.BACKWARDS,
        'progress of sink "orders" contradicts itself', ["Offset 17", "deleted"], ["start_over"],
    ),
    "progress-with-two-partitions": (
        observation(progress=present(PROGRESS, partitions=2), history=None), request(),
        PlaceReason.TOO_MANY_PARTITIONS, 'progress topic "_sinks-progress-orders" has 2 partitions',
        ["order"], [],
    ),
    "progress-not-compacted": (
        observation(progress=present(PROGRESS, cleanup_policy="compact,delete")), request(),
        PlaceReason.NOT_COMPACTED, 'progress topic "_sinks-progress-orders" is not exactly compacted',
        ["cleanup.policy=compact,delete"], [],
    ),
    "progress-copied-to-another-topic": (
        observation(progress=present(PROGRESS, id="id-copy")), request(), PlaceReason.PROGRESS_REPLACED,
        'progress topic "_sinks-progress-orders" is not the one', ["id-progress", "id-copy", "copies"],
        ["adopt", "start_over"],
    ),
    "checkpoint-ahead": (
        observation(checkpoint=CheckpointFacts("/checkpoints/1", 7, 7)), request(),
        CheckpointReason.CHECKPOINT_AHEAD,
        'progress of sink "orders" was rolled back', ["committed batch 7", "batch is 6"], ["start_over"],
    ),
    "state-lost": (
        observation(checkpoint=CheckpointFacts("/checkpoints/1")), request(stateful=True),
        CheckpointReason.STATE_LOST,
        'the state of sink "orders" is lost', ["/checkpoints/1", "batch 6", "batch -1"], ["start_over"],
    ),
}  # fmt: skip
"""What was seen and asked for, and what follows: reason, primary, parts of the detail, ways on."""


@pytest.mark.parametrize("row", REFUSALS.values(), ids=REFUSALS)
def test_a_refusal_says_what_was_seen_and_offers_its_ways_on(row: Any) -> None:
    seen, asked, reason, primary, details, ways = row
    verdict = decide(seen, asked)

    assert (verdict.kind, reasons(verdict)) == (VerdictKind.REFUSE, [reason])
    assert verdict.primary.startswith(primary)
    assert [part for part in details if part not in verdict.detail] == []
    assert [offer.name for offer in verdict.offers] == ways
    assert verdict.hint
    assert isinstance(verdict.error(), RefusedError)
    assert (verdict.actions, verdict.generation) == ((), 0)


def test_every_reason_has_its_row() -> None:
    assert {row[2] for row in REFUSALS.values()} == set(every_reason())


@pytest.mark.parametrize("row", REFUSALS.values(), ids=REFUSALS)
def test_the_hint_has_the_exact_argument_of_each_way_on(row: Any) -> None:
    verdict = decide(row[0], row[1])

    for offer in verdict.offers:
        assert f'accept="{offer.code}": {offer.explanation}.' in verdict.hint
        assert offer.code.startswith(f"{offer.name}-")


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


PRINTED = {
    "source-with-another-id": ["adopt-4c34f87365", "start_over-89bd816848"],
    "source-records-removed": ["skip_lost-e8abab31d4", "start_over-f0595ed2d8"],
    "output-missing": ["continue_without_output-d13f08cc8c", "start_over-509a5e3c3b"],
    "output-with-another-id": ["adopt-75de008e47", "start_over-59ed077f4c"],
    "no-record-although-rows-were-written": ["resume_from_witness-ceba2936f1", "start_over-f81e21bde0"],
    "emptied-without-a-witness": ["start_over-8513b98600"],
    "emptied-in-part": ["resume_from_witness-20661e35eb", "start_over-a9cda3b644"],
    "witness-newer": ["resume_from_witness-146876ec9e", "start_over-a37dd66442"],
    "progress-copied-to-another-topic": ["adopt-ae26a2ca61", "start_over-d11cb1454c"],
    "garbage": ["start_over-5121bf3762"],
    "contradiction": ["start_over-1d69d3e371"],
    "another-owner": ["take_over-6f7d945389"],
    "checkpoint-ahead": ["start_over-10fce1eb16"],
    "state-lost": ["start_over-e65fc48235"],
}
"""The codes that the first release printed: somebody may still hold one in hand."""


@pytest.mark.parametrize("row", PRINTED)
def test_a_code_that_was_printed_before_still_fits(row: str) -> None:
    verdict = decide(*REFUSALS[row][:2])

    assert [offer.code for offer in verdict.offers] == PRINTED[row]


def test_a_printed_code_is_known_of_every_reason_that_has_ways_on() -> None:
    assert {REFUSALS[row][2] for row in PRINTED} == {r for r in every_reason() if r.entry.ways}


# Ways on.


def accepted(row: str, way: str, **changes: Any) -> Verdict:
    seen, asked = REFUSALS[row][0], replace(REFUSALS[row][1], **changes)
    code = next(offer.code for offer in decide(seen, asked).offers if offer.name == way)
    return decide(seen, asked, code)


def test_start_over_begins_a_generation_after_all_that_anybody_remembers() -> None:
    verdict = accepted("witness-newer", "start_over", witness=witness(generation=4, epoch=1))

    assert (verdict.kind, verdict.generation, verdict.positions) == (VerdictKind.START, 5, None)
    assert verdict.epoch == 0
    assert verdict.accepted == (WayOn.START_OVER,)


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

    assert reasons(decide(reset, request())) == [OutputReason.OUTPUT_LOST]


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

    assert [offer.name for offer in verdict.offers] == ["start_over"]


def test_adopt_resumes_with_the_topic_that_is_there() -> None:
    verdict = accepted("output-with-another-id", "adopt")

    assert (verdict.kind, verdict.generation, verdict.actions) == (VerdictKind.RESUME, 1, ())
    assert verdict.positions == {0: 50, 1: 50}


def test_a_run_begins_where_its_witness_stands() -> None:
    """Or an older witness would know more than the records of the next epoch, and look like a rollback."""
    filtered = decide(observation(history=FILTERED), request(witness=witness(rows=300)))

    assert decide(observation(history=FILTERED), request()).positions == {0: 50, 1: 40}
    assert filtered.positions == {0: 50, 1: 50}


def test_a_witness_of_another_source_says_nothing_about_where_to_begin() -> None:
    other = replace(IDENTITIES, source=replace(SOURCE, id="x"))

    verdict = decide(observation(history=FILTERED), request(witness=witness(rows=300, identities=other)))

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
    refused = decide(seen, request())

    assert reasons(refused) == [OwnerReason.OTHER_OWNER, OutputReason.OUTPUT_LOST]
    assert refused.primary == 'sink "orders" belongs to another Airflow (and 1 more)'
    assert "Also: data topic" in refused.detail
    names = ["take_over+continue_without_output", "take_over+start_over"]
    assert [offer.name for offer in refused.offers] == names
    assert decide(seen, request(), refused.offers[0].code).kind is VerdictKind.RESUME


def test_one_adopt_takes_every_topic_that_was_replaced() -> None:
    seen = observation(source=present(SOURCE, id="x"), data=OTHER_DATA)

    ways = decide(seen, request()).offers

    assert [offer.name for offer in ways] == ["adopt", "start_over"]
    assert 'source topic "orders-in" and data topic "orders-out"' in ways[0].explanation


def test_a_missing_source_stops_every_way_on_until_it_is_there() -> None:
    assert decide(observation(source=missing(SOURCE), data=missing(DATA)), request()).offers == ()


def test_a_code_that_does_not_fit_is_refused_again_and_said_so() -> None:
    refused = decide(observation(data=missing(DATA)), request(), "start_over-0123456789")

    assert refused.kind is VerdictKind.REFUSE
    assert 'accept="start_over-0123456789" does not fit what is seen now' in refused.detail
    assert refused.offers


CHANGED: dict[str, tuple[Observation, StartRequest]] = {
    "another-sink": (observation(data=missing(DATA)), request(sink="invoices")),
    "a-later-epoch": (observation(data=missing(DATA), history=history(epoch=8)), request()),
    "the-next-run": (observation(data=missing(DATA), history=history(run="run-2")), request()),
    "more-rows": (observation(data=missing(DATA), history=history(rows_total=501)), request()),
    "another-topic-missing": (observation(data=missing(DATA), dead_letter=missing(DEAD_LETTER)), request()),
    "the-topic-is-back-as-another-one": (observation(data=OTHER_DATA), request()),
    "another-start": (observation(data=missing(DATA)), request(start="latest")),
    "one-more-reason": (observation(data=missing(DATA), source=present(SOURCE, id="x")), request()),
}


@pytest.mark.parametrize("change", CHANGED.values(), ids=CHANGED)
def test_a_code_fits_exactly_what_was_seen(change: tuple[Observation, StartRequest]) -> None:
    code = decide(observation(data=missing(DATA)), request()).offers[1].code

    assert code.startswith("start_over-")
    assert decide(*change, code).kind is VerdictKind.REFUSE


def test_a_code_does_not_change_from_one_look_to_the_next() -> None:
    later = observation(data=missing(DATA), at="later", source=present(SOURCE, high={0: 9, 1: 9}))

    assert decide(later, request()).offers == decide(observation(data=missing(DATA)), request()).offers


def test_a_code_of_the_running_job_fits_the_next_start() -> None:
    """Airflow has written a witness since, and somebody may have added partitions."""
    code = decide(observation(data=missing(DATA)), request()).offers[0].code
    later = observation(data=missing(DATA), source=present(SOURCE, partitions=3))

    assert decide(later, request(witness=witness()), code).goes_on


def test_the_code_to_resume_from_the_witness_is_for_the_rows_that_it_knows() -> None:
    seen, asked = REFUSALS["no-record-although-rows-were-written"][:2]
    code = decide(seen, asked).offers[0].code

    assert decide(seen, request(witness=witness(epoch=8, launch=9, at="later")), code).goes_on
    assert not decide(seen, request(witness=witness(rows=501)), code).goes_on


def test_the_code_to_take_over_survives_the_epochs_of_the_other_driver() -> None:
    code = decide(observation(history=history(owner="them")), request()).offers[0].code

    assert decide(observation(history=history(owner="them", epoch=99)), request(), code).goes_on


def test_a_code_that_nothing_asks_for_is_a_warning() -> None:
    verdict = decide(observation(), request(), "adopt-0123456789")

    assert verdict.kind is VerdictKind.RESUME
    assert verdict.warnings == ('accept="adopt-0123456789" was not needed, nothing is refused: take it away',)


# The dead-letter topic is judged like the data topic.


def with_dead_letters(facts: ResourceFacts, dead_total: int) -> Verdict:
    seen = observation(dead_letter=facts, history=history(dead_total=dead_total))
    return decide(seen, request(dead_letter=dead_letter_topic()))


def test_a_dead_letter_topic_that_never_got_a_row_is_created_again() -> None:
    verdict = with_dead_letters(missing(DEAD_LETTER), 0)

    assert [action.role for action in verdict.actions] == [Role.DEAD_LETTER]


def test_a_dead_letter_topic_that_got_rows_is_missed() -> None:
    verdict = with_dead_letters(missing(DEAD_LETTER), 3)

    assert verdict.primary == 'dead-letter topic "orders-dlq" is missing, but sink "orders" has written to it'
    assert "3 dead letters" in verdict.detail
    assert [offer.name for offer in verdict.offers] == ["continue_without_output", "start_over"]


def test_a_replaced_dead_letter_topic_refuses_by_its_dead_letters() -> None:
    other = present(DEAD_LETTER, id="x")

    assert with_dead_letters(other, 0).kind is VerdictKind.RESUME
    assert reasons(with_dead_letters(other, 3)) == [OutputReason.OUTPUT_REPLACED]


def test_a_dead_letter_topic_that_the_spec_names_for_the_first_time_is_created() -> None:
    new = history(identities=replace(IDENTITIES, dead_letter=None))
    seen = observation(dead_letter=missing(DEAD_LETTER), history=new)

    verdict = decide(seen, request(dead_letter=dead_letter_topic()))

    assert [action.role for action in verdict.actions] == [Role.DEAD_LETTER]


def test_lost_progress_is_one_refusal_with_or_without_dead_letters() -> None:
    seen = unseen(dead_letter=present(DEAD_LETTER))

    refused = decide(seen, request(dead_letter=dead_letter_topic(), witness=witness()))

    assert reasons(refused) == [ProgressReason.PROGRESS_LOST]


# The checkpoint.


def test_a_checkpoint_that_fits_is_continued_and_proves_the_newest_epoch() -> None:
    verdict = decide(observation(checkpoint=CheckpointFacts("/checkpoints/1", 6, 6)), request())

    assert (verdict.continues_checkpoint, verdict.positions) == (True, {0: 50, 1: 50})


def test_a_lost_checkpoint_of_a_stateless_sink_is_renewed() -> None:
    verdict = decide(observation(checkpoint=CheckpointFacts("/checkpoints/1")), request())

    assert (verdict.kind, verdict.continues_checkpoint) == (VerdictKind.RESUME, False)


def test_who_cannot_see_the_checkpoint_offers_the_same_codes_as_who_can() -> None:
    """Or a code that the sensor prints would not fit the job, nor the job's the sensor."""
    lost = observation(data=missing(DATA))
    job = replace(lost, checkpoint=CheckpointFacts("/checkpoints/1", 6, 6))

    assert decide(lost, request()).offers == decide(job, request()).offers


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
    text = render(unseen(), decide(unseen(), request()))

    assert 'source topic:      "orders-in" 2 partitions, id id-source, cluster cluster-a' in text
    assert 'data topic:        "orders-out" missing' in text
    assert 'verdict: start: sink "orders" starts generation 1' in text
    assert 'action: create data topic "orders-out": 2 partitions' in text
    assert '"orders-dlq" unknown (TOPIC_AUTHORIZATION_FAILED)' in render(seen, decide(seen, request()))


def test_every_word_is_told_apart() -> None:
    for words in (ProgressState, ResourceState, WitnessState, RecordsState, Reach, Shape, Ruling):
        assert issubclass(words, Enum)
        assert len({word.value for word in words}) == len(list(words))
