"""What a refusal says and offers, and what mends it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_provider_sinks.core.decision.decide import decide
from airflow_provider_sinks.core.decision.verdict import VerdictKind
from airflow_provider_sinks.core.errors import RefusedError
from tests.facts import (
    every_reason,
)
from tests.refusal_rows import (
    REFUSALS,
    reasons,
)


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
        ("output-that-cannot-take-the-rows", "ALTER TABLE … ADD COLUMN"),
        ("newer-format", "pip install --upgrade airflow-provider-sinks"),
    ],
)
def test_what_no_way_settles_is_hinted_at_with_the_repair(row: str, command: str) -> None:
    assert command in decide(REFUSALS[row][0], REFUSALS[row][1]).hint


def test_a_copy_is_restored_only_where_the_rows_are_still_there() -> None:
    """Else records, witness and totals agree again, and what is lost is never written."""
    seen, asked = REFUSALS["a-database-forgot-a-writer"][:2]
    hint, stateful = decide(seen, asked).hint, decide(seen, replace(asked, stateful=True)).hint

    assert 0 < hint.find("still holds") < hint.find("restore a newer copy of the progress table")
    assert 0 < stateful.find("still holds") < stateful.find("restore a copy of the progress table")
    assert "of the progress topic, restore it" in decide(*REFUSALS["a-writer-deleted"][:2]).hint


PRINTED = {
    "source-with-another-id": ["adopt-4c34f87365", "start_over-89bd816848"],
    "source-records-removed": ["skip_lost-e8abab31d4", "start_over-f0595ed2d8"],
    "source-shorter-than-what-was-read": ["start_over-01e5483cea"],
    "source-partition-added-and-cut-under-a-stateful-plan": ["start_over-495aa134b4"],
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
    "spec-with-another-key": ["go_on_changed-242536dbcf", "start_over-7d387f9fad"],
    "spec-with-another-stateful-query": ["start_over-e8fa5ff9ff"],
}
"""The codes that the first release printed: somebody may still hold one in hand."""


@pytest.mark.parametrize("row", PRINTED)
def test_a_code_that_was_printed_before_still_fits(row: str) -> None:
    verdict = decide(*REFUSALS[row][:2])

    assert [offer.code for offer in verdict.offers] == PRINTED[row]


def test_a_printed_code_is_known_of_every_reason_that_has_ways_on() -> None:
    assert {REFUSALS[row][2] for row in PRINTED} == {r for r in every_reason() if r.entry.ways}
