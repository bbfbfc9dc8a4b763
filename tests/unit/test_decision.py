"""The decision: one test per row of the design's table, by the behaviour it promises."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

import pytest

from airflow_provider_sinks.connectors.kafka.creation import progress_topic
from airflow_provider_sinks.core.decision.classify import (
    Fitness,
    ProgressState,
    ResourceState,
    WitnessState,
)
from airflow_provider_sinks.core.decision.decide import decide
from airflow_provider_sinks.core.decision.facts import Observation, ResourceFacts, Role
from airflow_provider_sinks.core.decision.reasons.output import OutputReason
from airflow_provider_sinks.core.decision.reasons.progress import ProgressReason
from airflow_provider_sinks.core.decision.reasons.records import (
    RecordsState,
)
from airflow_provider_sinks.core.decision.reasons.source import Reach
from airflow_provider_sinks.core.decision.ruling import Ruling
from airflow_provider_sinks.core.decision.verdict import Verdict, VerdictKind, render
from airflow_provider_sinks.core.errors import UnavailableError
from airflow_provider_sinks.core.progress.checkpoint import CheckpointFacts
from airflow_provider_sinks.core.progress.history import EARLIEST
from tests.facts import (
    DATA,
    DEAD_LETTER,
    IDENTITIES,
    PROGRESS,
    SOURCE,
    data_topic,
    dead_letter_topic,
    hidden,
    history,
    missing,
    observation,
    present,
    progress_as,
    request,
    unseen,
    witness,
)
from tests.refusal_rows import (
    CUT,
    OTHER_DATA,
    UNWRITTEN,
    reasons,
)

# One test per row. Rows that start or resume.


def test_a_new_sink_creates_both_topics_and_starts() -> None:
    verdict = decide(unseen(), request())

    assert (verdict.kind, verdict.generation, verdict.positions) == (VerdictKind.START, 1, None)
    assert verdict.actions == (progress_topic(PROGRESS.name), data_topic(partitions=SOURCE.partitions))
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


def test_progress_is_lost_though_the_newest_generation_wrote_nothing_yet() -> None:
    """Behind a rewind the rows of the generation before are in the data topic, and its counts begin at 0."""
    before = witness(rows=0, generation=2, rows_before=500)

    verdict = decide(unseen(), request(witness=before))

    assert [refusal.reason for refusal in verdict.refusals] == [ProgressReason.PROGRESS_LOST]
    assert "500 rows through epoch 7 of generation 2" in verdict.detail


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
    named = data_topic(partitions=6, replication_factor=3, config={"retention.ms": "1"})

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
            observation(progress=progress_as(cleanup_policy=None)),
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

    refused = decide(seen, request(witness=witness()))

    assert reasons(refused) == [ProgressReason.PROGRESS_LOST]


# The checkpoint.


def test_a_checkpoint_that_fits_is_continued_and_proves_the_newest_epoch() -> None:
    verdict = decide(observation(checkpoint=CheckpointFacts("/checkpoints/1", 6, 6)), request())

    assert (verdict.continues_checkpoint, verdict.positions) == (True, {0: 50, 1: 50})


@pytest.mark.parametrize(
    ("source", "continues"),
    [
        pytest.param(present(SOURCE, partitions=3), True, id="from-its-first-record"),
        pytest.param(CUT, False, id="its-first-records-are-gone"),
    ],
)
def test_a_partition_that_was_added_goes_on_with_the_checkpoint_if_spark_takes_it_in(
    source: ResourceFacts, continues: bool
) -> None:
    seen = observation(source=source, checkpoint=CheckpointFacts("/checkpoints/1", 6, 6))

    verdict = decide(seen, request())

    assert (verdict.kind, verdict.positions) == (VerdictKind.RESUME, {0: 50, 1: 50, 2: EARLIEST})
    assert verdict.continues_checkpoint is continues


def test_a_stateful_sink_without_a_state_yet_begins_with_what_is_left_of_a_new_partition() -> None:
    begun = history(epoch=0, batch=-1, checkpoint="", from_={0: 0, 1: 0}, to={0: 0, 1: 0})

    assert decide(observation(source=CUT, history=begun), request(stateful=True)).goes_on


def test_a_lost_checkpoint_of_a_stateless_sink_is_renewed() -> None:
    verdict = decide(observation(checkpoint=CheckpointFacts("/checkpoints/1")), request())

    assert (verdict.kind, verdict.continues_checkpoint) == (VerdictKind.RESUME, False)


def test_who_cannot_see_the_checkpoint_offers_the_same_codes_as_who_can() -> None:
    """Or a code that the sensor prints would not fit the job, nor the job's the sensor."""
    lost = observation(data=missing(DATA))
    job = replace(lost, checkpoint=CheckpointFacts("/checkpoints/1", 6, 6))

    assert decide(lost, request()).offers == decide(job, request()).offers


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
    for words in (ProgressState, ResourceState, WitnessState, RecordsState, Reach, Fitness, Ruling):
        assert issubclass(words, Enum)
        assert len({word.value for word in words}) == len(list(words))
