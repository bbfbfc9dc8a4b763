"""SIGKILL of the driver of a sink with state: its counts come back, or a refusal says that they are lost."""

from __future__ import annotations

import pytest

from tests.faults.history import Refusal
from tests.faults.outcome import FULL_COUNT, ROUNDS, Outcome

_SINK = "windowed counts"


@pytest.mark.parametrize("told", [(_SINK, "driver")], indirect=True, ids=", ".join)
def test_a_killed_driver_loses_no_count_and_writes_none_twice(told: Outcome) -> None:
    assert told.is_exactly_once, told.details()
    assert told.aborted or ROUNDS < FULL_COUNT, f"no kill hit an open transaction: {told.details()}"


@pytest.mark.parametrize(
    "told", [(_SINK, "older checkpoint"), (_SINK, "no checkpoint")], indirect=True, ids=", ".join
)
def test_windows_without_their_state_are_refused(told: Refusal) -> None:
    assert "the state of sink" in told.primary
    assert told.hint
