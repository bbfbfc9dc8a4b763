"""SIGKILL of the driver, an executor, a Python worker of a sink into an Iceberg or a Delta table.

Four sinks with three chapters each take many minutes even with one round, so ``make test`` leaves this file
out and ``make test-faults`` has it. In seconds a kill under each of both targets stands in
``tests/live/test_sink_job_evolution.py``.
"""

from __future__ import annotations

import pytest

from tests.faults.lake_stories import PHASES, STORIES
from tests.faults.outcome import FULL_COUNT, ROUNDS, Outcome

KILLED = [(sink, phase.name) for sink in STORIES for phase in PHASES]


@pytest.mark.parametrize("told", KILLED, indirect=True, ids=", ".join)
def test_a_killed_process_loses_nothing_doubles_nothing_and_shows_no_part_of_an_epoch(told: Outcome) -> None:
    assert told.is_exactly_once, told.details()
    # A few kills may all miss by chance; the full count may not.
    assert told.aborted or ROUNDS < FULL_COUNT, f"no kill cut an attempt off: {told.details()}"
