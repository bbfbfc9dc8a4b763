"""Facts become words, and there is a cell for every combination of them."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from airflow_provider_sinks.connectors.kafka.broker_memory import BrokerMemory, TransactionalIdFacts
from airflow_provider_sinks.core.decision.classify import (
    Fitness,
    ProgressState,
    ResourceState,
    WitnessState,
    classify_fitness,
    classify_memory,
    classify_progress,
    classify_resource,
    classify_witness,
)
from airflow_provider_sinks.core.decision.decide import decide
from airflow_provider_sinks.core.decision.facts import Observation, ResourceFacts
from airflow_provider_sinks.core.decision.reasons import output, progress_place
from airflow_provider_sinks.core.decision.reasons.checkpoint import CHECKPOINT_USES
from airflow_provider_sinks.core.decision.reasons.owner import OWNERS
from airflow_provider_sinks.core.decision.reasons.progress_place import (
    PLACES,
)
from airflow_provider_sinks.core.decision.reasons.reason import Reason
from airflow_provider_sinks.core.decision.reasons.records import (
    RECORDS,
    RecordsState,
    classify_records,
)
from airflow_provider_sinks.core.decision.reasons.source import REACHES, SOURCES, Reach
from airflow_provider_sinks.core.decision.reasons.spec import SPECS
from airflow_provider_sinks.core.decision.ruling import Ruling
from airflow_provider_sinks.core.decision.table import DECISIONS
from airflow_provider_sinks.core.decision.verdict import VerdictKind
from airflow_provider_sinks.core.progress.checkpoint import CheckpointUse
from airflow_provider_sinks.core.progress.history import NO_HISTORY, Finding, History
from airflow_provider_sinks.core.progress.record import DRIVER
from airflow_provider_sinks.core.redefinition.compare import RedefinitionState
from tests.facts import (
    DATA,
    PROGRESS,
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
from tests.refusal_rows import (
    FILTERED,
    FORGOTTEN_P0,
    NARROW,
    OTHER_DATA,
    PARTS,
    REPAIRED,
    UNWRITTEN,
    WITHOUT_P0,
    deleted,
    flaws,
)

FITS = (output.FITNESSES, progress_place.FITNESSES)


@pytest.mark.parametrize(
    ("table", "product"),
    [
        (DECISIONS, itertools.product(ProgressState, ResourceState, WitnessState)),
        (SOURCES, itertools.product([False, True], ResourceState)),
        (REACHES, Reach),
        (RECORDS, RecordsState),
        (output.FITNESSES, Fitness),
        (progress_place.FITNESSES, Fitness),
        (PLACES, ResourceState),
        (OWNERS, [False, True]),
        (CHECKPOINT_USES, CheckpointUse),
        (SPECS, RedefinitionState),
    ],
    ids=[
        "decisions",
        "sources",
        "reaches",
        "records",
        "outputs-fit",
        "progress-fits",
        "places",
        "owners",
        "checkpoints",
        "specs",
    ],
)
def test_every_combination_has_its_cell(table: dict[Any, Any], product: Any) -> None:
    assert set(table) == set(product)


def test_every_reason_can_be_the_outcome_of_some_table() -> None:
    tables = (DECISIONS, SOURCES, REACHES, RECORDS, PLACES, OWNERS, CHECKPOINT_USES, SPECS, *FITS)
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
            observation(history=FORGOTTEN_P0),
            ProgressState.IN_PART,
            id="a-writer-is-older-than-another-writer-says",
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
    ("remembered", "word"),
    [
        pytest.param(None, WitnessState.SILENT, id="none"),
        pytest.param(witness(rows=0), WitnessState.AHEAD, id="all-came-back"),
        pytest.param(witness(rows=0, owner="them"), WitnessState.SILENT, id="not-ours"),
        pytest.param(witness(rows=0, generation=0), WitnessState.SILENT, id="never-begun"),
    ],
)
def test_a_replay_without_a_row_has_taken_letters_nevertheless(remembered: Any, word: WitnessState) -> None:
    assert classify_witness(NO_HISTORY, request(witness=remembered, is_replay=True)) is word


@pytest.mark.parametrize(
    ("facts", "word"),
    [
        (missing(PROGRESS), Fitness.FITS),
        (present(PROGRESS), Fitness.FITS),
        (replace(hidden(PROGRESS), unfit=NARROW), Fitness.FITS),
        (present(PROGRESS, unfit=NARROW), Fitness.UNFIT),
        (present(PROGRESS, unfit=NARROW, hidden="cleanup.policy"), Fitness.UNFIT),
        (present(PROGRESS, hidden="cleanup.policy"), Fitness.UNKNOWN),
    ],
)
def test_only_what_is_there_can_be_unfit(facts: ResourceFacts, word: Fitness) -> None:
    assert classify_fitness(facts) is word


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


# What the broker remembers.


@pytest.mark.parametrize(
    ("ids", "records", "word"),
    [
        pytest.param({}, 200, WitnessState.SILENT, id="never-heard-of-it"),
        pytest.param({DRIVER: ("Empty", 0), "p0": ("Empty", 0)}, 200, WitnessState.SILENT, id="one-start"),
        pytest.param({"p0": ("CompleteCommit", 1)}, 0, WitnessState.TARGET, id="a-writer-committed"),
        pytest.param({"p0": ("PrepareCommit", 1)}, 0, WitnessState.TARGET, id="a-writer-commits"),
        pytest.param(
            {DRIVER: ("CompleteCommit", 0), "p0": ("Empty", 0)}, 200, WitnessState.SILENT, id="announced-only"
        ),
        pytest.param(
            {DRIVER: ("CompleteCommit", 1), "p0": ("Empty", 1)},
            0,
            WitnessState.TARGET,
            id="fenced-at-its-end",
        ),
        pytest.param({DRIVER: ("Empty", 1), "p0": ("Empty", 1)}, 1, WitnessState.TARGET, id="used-and-rows"),
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

    assert classify_memory(unseen(data=full, memory=memory), request()) is word
    assert classify_memory(unseen(data=full, memory=memory), request(witness=witness())) is WitnessState.AHEAD
    assert classify_memory(observation(memory=memory), request()) is WitnessState.SILENT


def test_a_broker_that_cannot_be_asked_changes_nothing_but_is_told_of() -> None:
    verdict = decide(unseen(memory=BrokerMemory(reason="it does not offer DescribeTransactions")), request())

    assert verdict.kind is VerdictKind.START
    assert "cannot be told" in verdict.warnings[0]
    assert "it does not offer DescribeTransactions" in verdict.warnings[0]
