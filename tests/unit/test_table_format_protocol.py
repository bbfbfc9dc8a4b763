"""Whose turn it is in a table's progress: a newer start has never less than what this run has committed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_sinks.connectors.table_format import protocol
from airflow_provider_sinks.connectors.table_format.state import Pending, Place, Standing, State
from airflow_provider_sinks.core.errors import FencedError, RefusedError, SinkError
from airflow_provider_sinks.core.progress.record import DRIVER, SINGLE_WRITER
from tests.facts import record

ROLLED_BACK = r'^progress of sink "orders" was rolled back while the sink ran'


def standing_at(run: str, epoch: int, snapshot: int, generation: int = 1) -> State:
    """Return the progress behind an epoch, which came with a snapshot."""
    newest = record(generation=generation, epoch=epoch, run=run)
    return State(run, {DRIVER: newest, SINGLE_WRITER: newest}, Place(snapshot, snapshot))


OURS = standing_at("ours", 5, 20)


@pytest.mark.parametrize(
    ("found", "error"),
    [
        pytest.param(standing_at("theirs", 4, 19), RefusedError, id="an-epoch-is-gone"),
        pytest.param(standing_at("theirs", 9, 19, generation=0), RefusedError, id="a-generation-is-gone"),
        pytest.param(standing_at("theirs", 5, 19), RefusedError, id="the-announcement-alone-is-gone"),
        pytest.param(standing_at("theirs", 4, 30), RefusedError, id="somebody-went-on-behind-the-gap"),
        pytest.param(standing_at("theirs", 5, 20), FencedError, id="a-newer-start-has-fenced"),
        pytest.param(standing_at("theirs", 5, 21), FencedError, id="and-announced-itself"),
        pytest.param(standing_at("theirs", 6, 22), FencedError, id="and-committed"),
        pytest.param(standing_at("theirs", 0, 22, generation=2), FencedError, id="and-begun-anew"),
    ],
)
def test_another_run_is_newer_only_if_it_has_all_that_this_one_knows(
    found: State, error: type[SinkError]
) -> None:
    with pytest.raises(error) as caught:
        protocol.demand_in_force("orders", found, "ours", protocol.reached(OURS))

    assert caught.value.primary.startswith("progress of" if error is RefusedError else "a newer start of")


@pytest.mark.parametrize(
    ("generation", "epoch", "error", "words"),
    [
        pytest.param(1, 7, RefusedError, ROLLED_BACK, id="epochs-are-gone"),
        pytest.param(2, 1, RefusedError, ROLLED_BACK, id="the-announcement-is-gone"),
        pytest.param(1, 5, FencedError, "does not follow epoch 5", id="by-another-record"),
        pytest.param(1, 3, FencedError, "does not follow epoch 5", id="long-done"),
        pytest.param(0, 9, FencedError, "does not follow epoch 5", id="of-an-older-generation"),
    ],
)
def test_an_epoch_is_published_behind_the_one_before_alone(
    generation: int, epoch: int, error: type[SinkError], words: str
) -> None:
    new = record(generation=generation, epoch=epoch, rows=1)

    with pytest.raises(error, match=words):
        protocol.published(
            "orders", "ours", OURS, Standing.ON_IT, record=new, at=Place(21, 21), told=None, known=(1, 5, 20)
        )


def test_the_next_epoch_is_published() -> None:
    new = record(epoch=6, rows=1)

    state = protocol.published(
        "orders", "ours", OURS, Standing.ON_IT, record=new, at=Place(21, 21), told=None, known=(1, 5, 20)
    )

    assert state is not None
    assert protocol.reached(state) == (1, 6, 21)


PENDING = Pending(record(epoch=5, run="older"), ("a", "b"), "shop.dead")
MOVED = replace(PENDING, stages=("c",), table="shop.other")


def test_the_run_in_force_names_the_table_of_dead_letters_once() -> None:
    state = protocol.named("orders", "ours", replace(OURS, pending=PENDING), PENDING, MOVED)

    assert state == replace(OURS, pending=MOVED)
    assert protocol.named("orders", "ours", state, PENDING, MOVED) is None


def test_dead_letters_that_stay_with_their_table_change_nothing() -> None:
    assert protocol.named("orders", "ours", replace(OURS, pending=PENDING), PENDING, PENDING) is None


@pytest.mark.parametrize(
    ("run", "pending", "words"),
    [
        pytest.param("theirs", PENDING, "a newer start of", id="overtaken"),
        pytest.param("theirs", MOVED, "a newer start of", id="overtaken-and-moved"),
        pytest.param("ours", replace(PENDING, stages=("d",)), "are not pending any more", id="by-others"),
        pytest.param("ours", None, "are not pending any more", id="published"),
    ],
)
def test_nobody_else_names_the_table_of_dead_letters(run: str, pending: Pending | None, words: str) -> None:
    found = replace(OURS, run=run, pending=pending)

    with pytest.raises(FencedError, match=words):
        protocol.named("orders", "ours", found, PENDING, MOVED)
