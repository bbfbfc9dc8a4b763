"""The answers to a refusal: what each does, and that its code fits one situation alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_provider_sinks.core.decision.decide import decide
from airflow_provider_sinks.core.decision.facts import Observation, Role
from airflow_provider_sinks.core.decision.reasons.output import OutputReason
from airflow_provider_sinks.core.decision.reasons.owner import OwnerReason
from airflow_provider_sinks.core.decision.start_request import StartRequest
from airflow_provider_sinks.core.decision.verdict import Verdict, VerdictKind
from airflow_provider_sinks.core.decision.way_on import WayOn
from airflow_provider_sinks.core.progress.checkpoint import CheckpointFacts
from airflow_provider_sinks.core.progress.history import NO_HISTORY, History
from airflow_provider_sinks.core.progress.witness import Witness
from tests.facts import (
    DATA,
    DEAD_LETTER,
    IDENTITIES,
    SOURCE,
    history,
    missing,
    observation,
    present,
    request,
    witness,
)
from tests.refusal_rows import (
    BEFORE,
    FILTERED,
    FORGOTTEN_P0,
    OTHER_DATA,
    REFUSALS,
    TABLES,
    WITHOUT_P0,
    reasons,
)


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
        {"witness": witness(offsets={0: 101, 1: 50})},
        {"witness": witness(identities=replace(witness().identities, data=replace(DATA, id="x")))},
        {"witness": witness(identities=replace(witness().identities, source=replace(SOURCE, id="x")))},
    ],
    ids=["stateful", "not-ours", "no-offsets", "offsets-that-are-not-there", "other-data", "other-source"],
)
def test_resume_from_witness_is_offered_only_where_the_witness_fits(changes: Any) -> None:
    seen, asked = REFUSALS["no-record-although-rows-were-written"][:2]

    verdict = decide(seen, replace(asked, **changes))

    assert [offer.name for offer in verdict.offers] == ["start_over"]


def test_resume_from_records_begins_a_generation_where_what_is_left_ends() -> None:
    verdict = accepted("a-database-restored", "resume_from_records", witness=witness(generation=4))

    assert (verdict.kind, verdict.generation, verdict.epoch) == (VerdictKind.RESUME, 5, 0)
    assert verdict.positions == {0: 40, 1: 40}
    assert not verdict.continues_checkpoint


def test_resume_from_records_believes_only_a_writers_own_record_of_what_it_lost() -> None:
    assert FORGOTTEN_P0.known_positions() == {0: 20, 1: 120}
    assert accepted("a-database-forgot-a-writer", "resume_from_records").positions == {0: 10, 1: 120}


@pytest.mark.parametrize(
    "known", [None, witness(epoch=8)], ids=["nobody-else-knows", "the-witness-knows-more"]
)
def test_what_is_left_is_told_and_counted_by_the_writers_own_records(known: Witness | None) -> None:
    seen, asked = REFUSALS["a-database-forgot-a-writer"][0], request(witness=known)
    refused = decide(seen, asked)
    verdict = decide(seen, asked, refused.offers[0].code)

    assert "130 rows through epoch 7" in refused.detail
    assert known is None or "by the records the source goes on at offsets 0: 10, 1: 120" in refused.detail
    assert "at offsets 0: 10, 1: 120, where the records that are left end: 130 rows" in refused.hint
    assert "140 rows" not in refused.detail + refused.offers[0].explanation
    assert verdict.accepted == (WayOn.RESUME_FROM_RECORDS,)
    assert (verdict.positions, verdict.rows_before) == ({0: 10, 1: 120}, 130)


def test_dead_letters_that_only_the_witness_knows_still_count_where_their_table_is_the_same() -> None:
    seen = observation(history=NO_HISTORY, dead_letter=present(DEAD_LETTER))
    asked = request(witness=witness(rows=0, dead=500))
    anew = replace(seen, dead_letter=present(DEAD_LETTER, id="x"))

    assert decide(seen, asked, decide(seen, asked).offers[0].code).dead_before == 500
    assert decide(anew, asked, decide(anew, asked).offers[0].code).dead_before == 0


def test_resume_from_records_says_what_the_source_has_removed_before_it() -> None:
    seen = replace(REFUSALS["a-database-restored"][0], source=present(SOURCE, low={0: 45, 1: 0}))

    offer = decide(seen, request(witness=witness())).offers[0]

    assert "at offsets 0: 45, 1: 40" in offer.explanation
    assert "5 records of the source before it were removed" in offer.explanation
    assert decide(seen, request(witness=witness()), offer.code).positions == {0: 45, 1: 40}


@pytest.mark.parametrize(
    "changes",
    [
        {"data": present(DATA)},
        {"data": replace(TABLES["data"], id="x")},
        {"source": present(SOURCE, id="x")},
        {"history": History({"all": BEFORE.records["all"]})},
        {"history": WITHOUT_P0},
    ],
    ids=["two-stores", "other-data", "other-source", "no-driver", "no-record-of-a-lost-writer"],
)
def test_resume_from_records_is_offered_only_where_they_can_say_it(changes: Any) -> None:
    verdict = decide(replace(REFUSALS["a-database-restored"][0], **changes), request(witness=witness()))

    assert verdict.offers
    assert not [offer for offer in verdict.offers if WayOn.RESUME_FROM_RECORDS in offer.ways]


def test_a_query_with_state_is_not_offered_to_resume_from_records() -> None:
    verdict = decide(REFUSALS["a-database-restored"][0], request(witness=witness(), stateful=True))

    assert [offer.name for offer in verdict.offers] == ["start_over"]


def test_a_store_that_may_have_lost_rows_too_is_to_be_looked_at_first_once() -> None:
    seen = replace(REFUSALS["a-database-restored"][0], checkpoint=CheckpointFacts("/checkpoints/1", 7, 7))
    hint = decide(seen, request(witness=witness())).hint

    assert hint.count('Look first whether data table "orders-out" still holds') == 1
    assert "from 0: 40, 1: 40 on" in hint
    assert "Look first" not in decide(*REFUSALS["witness-newer"][:2]).hint


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
    later = observation(data=missing(DATA), at="later", source=present(SOURCE, high={0: 900, 1: 900}))

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


def test_a_new_generation_never_continues_a_checkpoint() -> None:
    assert not accepted("checkpoint-ahead", "start_over").continues_checkpoint
