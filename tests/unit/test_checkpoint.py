"""Spark's checkpoint beside the records: c <= r <= t, or something was rolled back."""

from __future__ import annotations

import itertools

import pytest

from airflow_provider_sinks.core.progress.checkpoint import (
    CHECKPOINTS,
    CheckpointFacts,
    CheckpointState,
    CheckpointUse,
    classify_checkpoint,
    judge_checkpoint,
    newest_epoch_is_whole,
)
from airflow_provider_sinks.core.progress.history import History
from tests.facts import history, record

PATH, SINGLE = "/checkpoints/1", "single"
RECORDED = history(checkpoint=PATH, batch=6)


def test_the_table_covers_everything_that_can_be_seen() -> None:
    assert set(CHECKPOINTS) == set(itertools.product(CheckpointState, [False, True]))


@pytest.mark.parametrize(
    ("facts", "seen"),
    [
        pytest.param(CheckpointFacts(PATH, 6, 6), CheckpointState.FITS, id="all-committed"),
        pytest.param(CheckpointFacts(PATH, 5, 6), CheckpointState.FITS, id="crash-before-sparks-commit"),
        pytest.param(CheckpointFacts(PATH, 6, 7), CheckpointState.FITS, id="crash-before-our-commit"),
        pytest.param(CheckpointFacts(PATH, 7, 7), CheckpointState.AHEAD, id="progress-rolled-back"),
        pytest.param(CheckpointFacts(PATH, 4, 5), CheckpointState.BEHIND, id="checkpoint-rolled-back"),
        pytest.param(CheckpointFacts(PATH, -1, -1), CheckpointState.BEHIND, id="checkpoint-deleted"),
        pytest.param(CheckpointFacts("/elsewhere", 6, 6), CheckpointState.OTHER, id="another-checkpoint"),
    ],
)
def test_a_checkpoint_is_compared_by_its_batches(facts: CheckpointFacts, seen: CheckpointState) -> None:
    assert classify_checkpoint(facts, RECORDED, SINGLE) is seen


def test_a_new_checkpoint_without_a_batch_fits() -> None:
    announced = history(checkpoint=PATH, batch=-1)

    assert classify_checkpoint(CheckpointFacts(PATH, -1, -1), announced, SINGLE) is CheckpointState.FITS
    assert classify_checkpoint(CheckpointFacts(PATH, -1, 0), announced, SINGLE) is CheckpointState.FITS


def test_a_stateless_sink_resumes_from_its_record_with_a_new_checkpoint() -> None:
    assert (
        judge_checkpoint(CheckpointFacts(PATH), RECORDED, stateful=False, writer_mode=SINGLE)
        is CheckpointUse.RENEW
    )


def test_a_stateful_sink_refuses_to_lose_its_state() -> None:
    assert (
        judge_checkpoint(CheckpointFacts(PATH), RECORDED, stateful=True, writer_mode=SINGLE)
        is CheckpointUse.STATE_LOST
    )


@pytest.mark.parametrize("stateful", [False, True])
def test_a_checkpoint_ahead_of_the_records_is_never_taken(stateful: bool) -> None:
    ahead = CheckpointFacts(PATH, 7, 7)

    used = judge_checkpoint(ahead, RECORDED, stateful=stateful, writer_mode=SINGLE)

    assert used is CheckpointUse.PROGRESS_ROLLED_BACK


@pytest.mark.parametrize(
    ("stateful", "use"), [(False, CheckpointUse.RENEW), (True, CheckpointUse.STATE_LOST)]
)
def test_other_writers_do_not_go_on_with_an_epoch_that_may_be_committed_in_part(
    stateful: bool, use: CheckpointUse
) -> None:
    recorded = history(checkpoint=PATH, batch=6, writer_mode="per_partition")
    torn = CheckpointFacts(PATH, 5, 6)

    assert judge_checkpoint(torn, recorded, stateful=stateful, writer_mode=SINGLE) is use
    assert judge_checkpoint(torn, recorded, stateful=False, writer_mode="per_partition") is (
        CheckpointUse.CONTINUE
    )


def test_other_writers_go_on_with_a_checkpoint_of_which_nothing_is_committed() -> None:
    announced = history(checkpoint=PATH, batch=-1, writer_mode="per_partition")

    assert classify_checkpoint(CheckpointFacts(PATH, -1, 0), announced, SINGLE) is CheckpointState.FITS


def test_records_that_do_not_say_who_wrote_are_continued() -> None:
    assert RECORDED.writer_mode == ""
    assert classify_checkpoint(CheckpointFacts(PATH, 5, 6), RECORDED, SINGLE) is CheckpointState.FITS


def test_only_sparks_logs_prove_that_the_newest_epoch_is_whole() -> None:
    assert newest_epoch_is_whole(CheckpointFacts(PATH, 6, 6), RECORDED)
    assert newest_epoch_is_whole(CheckpointFacts(PATH, 5, 7), RECORDED), (
        "a plan that follows it proves it too"
    )
    assert not newest_epoch_is_whole(CheckpointFacts(PATH, 5, 6), RECORDED)
    assert not newest_epoch_is_whole(CheckpointFacts("/elsewhere", 6, 6), RECORDED)
    assert not newest_epoch_is_whole(CheckpointFacts(PATH, -1, -1), history(checkpoint=PATH, batch=-1))


def test_an_epoch_of_an_older_checkpoint_is_not_proved_whole_by_the_new_one() -> None:
    renewed = History(
        {"driver": record(checkpoint="/new", batch=-1), "all": record(checkpoint=PATH, batch=6)}
    )

    assert not newest_epoch_is_whole(CheckpointFacts("/new", 6, 6), renewed)
