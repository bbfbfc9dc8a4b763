"""SIGKILL of one process of a job, and a topic that goes away: no part of an epoch is ever committed."""

from __future__ import annotations

import pytest

from tests.faults.history import Refusal
from tests.faults.outcome import FULL_COUNT, ROUNDS, Outcome

WRITERS = ("per_partition", "single", "copies", "copies, one writer")
TABLES = ("Postgres, append", "Postgres, upsert")
KILLED = (
    ("single", "JVM"),
    ("single", "executor"),
    ("single", "Python worker"),
    ("copies", "executor"),
)
ALL = (
    *((writers, part) for part in ("JVM", "executor", "Python worker") for writers in WRITERS),
    *((table, part) for part in ("executor", "Python worker") for table in TABLES),
)
"""With the full count each part is killed under each of these sinks; a round or two take some."""
REFUSED_WITHIN_SECONDS = 180.0
"""Thirty where nothing runs beside it."""


@pytest.mark.parametrize("told", ALL if ROUNDS >= FULL_COUNT else KILLED, indirect=True, ids=", ".join)
def test_no_part_of_an_epoch_is_ever_committed(told: Outcome) -> None:
    assert told.is_exactly_once, told.details()
    # A few kills may all miss by chance; the full count may not.
    assert told.aborted or ROUNDS < FULL_COUNT, (
        f"no kill hit an open transaction, so nothing was tested: {told.details()}"
    )


@pytest.mark.parametrize("told", [("deletion", "data topic")], indirect=True, ids=[""])
def test_a_data_topic_deleted_while_rows_are_written_is_refused_soon(
    told: Refusal,
) -> None:
    assert "data topic" in told.primary
    assert told.hint
    assert told.seconds < REFUSED_WITHIN_SECONDS
