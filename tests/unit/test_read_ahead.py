"""Several inputs are read at once, and come one behind the other."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from airflow_provider_sinks.streaming.read_ahead import in_turn
from tests.support import until


def _threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "read-ahead"]


@pytest.mark.parametrize("at_once", [1, 2, 3, 16])
@pytest.mark.parametrize(
    "inputs", [[], [[1, 2, 3]], [[1], [], [2, 3, 4, 5], [6]], [[n] * 5 for n in range(40)]]
)
def test_items_come_in_the_order_of_the_inputs(inputs: list[list[int]], at_once: int) -> None:
    assert list(in_turn(inputs, at_once)) == [item for one in inputs for item in one]


def test_inputs_that_wait_for_their_turn_are_begun() -> None:
    begun = threading.Event()

    def first() -> Iterator[int]:
        assert begun.wait(10)
        yield 1

    def second() -> Iterator[int]:
        begun.set()
        yield 2

    assert list(in_turn([first(), second()], 2)) == [1, 2]


def test_what_fails_is_raised_in_its_turn() -> None:
    def failing() -> Iterator[int]:
        yield 2
        raise ValueError("no more")

    found = in_turn([[1], failing(), [3]], 3)

    assert [next(found), next(found)] == [1, 2]
    with pytest.raises(ValueError, match="no more"):
        next(found)


def test_whoever_stops_early_leaves_no_thread_behind() -> None:
    closed = threading.Event()

    def endless() -> Iterator[int]:
        try:
            while True:
                yield 1
        finally:
            closed.set()

    until(lambda: not _threads(), "those of other tests are gone")
    found = in_turn([endless(), endless()], 2)
    next(found)
    assert len(_threads()) == 2

    found.close()  # type: ignore[attr-defined]

    assert closed.wait(10)
    until(lambda: not _threads(), "they are gone")
