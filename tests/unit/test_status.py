"""The status of a launch, and the witness that is made from it."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import pytest

from airflow_provider_sinks.core.errors import (
    AuthenticationError,
    FencedError,
    JobFailedError,
    RefusedError,
    UnavailableError,
)
from airflow_provider_sinks.core.launch.status import ALLOWED, SinkState, SinkStatus, StatusError
from airflow_provider_sinks.core.progress.witness import Witness
from tests.facts import IDENTITIES, witness

RUNNING = SinkStatus(
    sink="orders",
    launch=3,
    state=SinkState.RUNNING,
    run="run-1",
    owner="us",
    generation=1,
    epoch=12,
    rows=50_000,
    rows_total=70_000,
    rows_per_second=41_200.4,
    lag={0: 0, 1: 0},
    positions={0: 5, 1: 6},
    identities=IDENTITIES,
)


def test_every_state_says_which_may_follow() -> None:
    assert set(ALLOWED) == set(SinkState)


@pytest.mark.parametrize(("state", "following"), list(itertools.product(SinkState, SinkState)))
def test_a_final_state_never_changes(state: SinkState, following: SinkState) -> None:
    status = replace(RUNNING, state=state)
    if following in ALLOWED[state]:
        assert status.transition(following).state is following
    else:
        with pytest.raises(ValueError, match=f"launch 3 of sink 'orders' is {state}, not to be {following}"):
            status.transition(following)


def test_a_running_sink_does_not_go_back_to_starting() -> None:
    with pytest.raises(ValueError, match="not to be starting"):
        RUNNING.transition(SinkState.STARTING)


def test_a_transition_takes_changes_and_a_new_time() -> None:
    old = replace(RUNNING, at="then")

    assert old.transition(SinkState.RUNNING, epoch=13).epoch == 13
    assert old.transition(SinkState.RUNNING).at != "then"


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (None, SinkState.STOPPED),
        (RefusedError("no"), SinkState.REFUSED),
        (FencedError("no"), SinkState.FENCED),
        (JobFailedError("no"), SinkState.FAILED),
        (UnavailableError("no"), SinkState.FAILED),
        (RuntimeError("no"), SinkState.FAILED),
    ],
)
def test_a_launch_ends_in_the_state_of_its_error(error: Exception | None, state: SinkState) -> None:
    assert RUNNING.ended(error).state is state


def test_the_first_reason_stays() -> None:
    ended = RUNNING.ended(RefusedError("data topic is missing")).ended(RuntimeError("py4j"))

    assert ended.state is SinkState.REFUSED
    assert ended.error == StatusError("RefusedError", "data topic is missing")


def test_an_error_keeps_its_detail_and_hint() -> None:
    ended = RUNNING.ended(RefusedError("no output", "it was deleted", "restore it"))

    assert str(ended.error) == "no output\nDetail: it was deleted\nHint: restore it"


def test_a_status_comes_back_as_it_was_written() -> None:
    ended = RUNNING.ended(RefusedError("no", "because", "do"))

    assert SinkStatus.from_json(ended.to_json()) == ended
    assert SinkStatus.from_json(SinkStatus("orders", 1).to_json()).identities is None


@pytest.mark.parametrize(
    ("status", "line"),
    [
        (SinkStatus("orders", 1), "starting"),
        (SinkStatus("orders", 1).transition(SinkState.RUNNING), "running"),
        (SinkStatus("orders", 2).transition(SinkState.RUNNING, epoch=12), "running, goes on after epoch 12"),
        (RUNNING, "epoch 12: 50,000 rows, 41,200 rows/s, lag 0"),
        (replace(RUNNING, lag={0: 1000, 1: 234}, dead_total=7),
         "epoch 12: 50,000 rows, 41,200 rows/s, lag 1,234, 7 dead letters"),
        (RUNNING.ended(), "stopped, epoch 12: 50,000 rows"),
        (RUNNING.ended(FencedError("a newer start took over")), "fenced: a newer start took over"),
    ],
)  # fmt: skip
def test_one_line_tells_where_a_launch_stands(status: SinkStatus, line: str) -> None:
    assert status.one_line() == line


def test_there_is_no_witness_before_the_run_was_announced() -> None:
    assert SinkStatus("orders", 1).witness() is None


def test_the_witness_holds_what_was_committed() -> None:
    seen = RUNNING.witness()

    assert seen is not None
    assert (seen.order, seen.rows, seen.offsets, seen.launch) == ((1, 12), 70_000, {0: 5, 1: 6}, 3)
    assert replace(RUNNING, dead_total=7).witness() == replace(seen, dead=7)


def test_a_witness_comes_back_as_it_was_written() -> None:
    assert Witness.from_json(witness().to_json()) == witness()


def test_a_witness_of_the_release_before_is_read_without_dead_letters() -> None:
    before = {name: value for name, value in json.loads(witness().to_json()).items() if name != "dead"}

    assert Witness.from_mapping(before) == witness(dead=0)


def test_a_witness_with_many_partitions_stays_below_4_kilobytes() -> None:
    many = witness(offsets=dict.fromkeys(range(128), 10**12))

    assert len(many.to_json()) < 4096


def test_witnesses_compare_by_generation_before_epoch() -> None:
    assert witness(generation=2, epoch=1).order > witness(generation=1, epoch=9).order


def test_the_first_status_of_a_launch_tells_what_airflow_remembers() -> None:
    witness = Witness(2, 7, 90, {0: 9}, IDENTITIES, "us", 3, dead=4)

    first = SinkStatus.begun("orders", 4, "us", witness)
    new = SinkStatus.begun("orders", 1, "us", None)

    assert (first.generation, first.epoch, first.rows_total, first.rows) == (2, 7, 90, 0)
    assert first.dead_total == 4
    assert first.one_line() == "starting, goes on after epoch 7"
    assert (new.epoch, new.one_line()) == (0, "starting")
    assert first.witness() is None  # nothing is known for certain before the announcement


def test_airflow_remembers_what_earlier_generations_left_over_a_launch_that_read_nothing() -> None:
    announced = SinkStatus("orders", 1, generation=2, identities=IDENTITIES, rows_before=90, dead_before=4)
    witness = announced.witness()
    assert witness is not None

    kept = Witness.from_json(witness.to_json())
    next_ = SinkStatus.from_json(SinkStatus.begun("orders", 2, "us", kept).to_json())

    assert (kept.rows_ever, kept.dead_ever) == (90, 4)
    assert (next_.rows_before, next_.dead_before) == (90, 4)


def test_an_error_keeps_the_connections_that_it_comes_from_on_its_way() -> None:
    error = AuthenticationError("Kafka refused the credentials").of("kafka_prod")

    text = SinkStatus("orders", 1).ended(error).to_json()
    read = SinkStatus.from_json(text).error

    assert read == StatusError.of(error)
