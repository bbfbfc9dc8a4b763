"""SIGKILL of the driver: nothing missing, nothing doubled, each key in order; or a refusal that says why."""

from __future__ import annotations

import pytest

from tests.faults.history import Refusal
from tests.faults.outcome import FULL_COUNT, ROUNDS, Outcome

ROW_WISE: tuple[str, ...] = ("per_partition", "single")
TABLES: tuple[str, ...] = ("Postgres, append", "Postgres, upsert")
"""With the full count each fault strikes each of these sinks; a round or two take one that writes into Kafka.

What writes into tables is killed in each run of the contract's tests, and its driver in the demo."""
if ROUNDS < FULL_COUNT:
    ROW_WISE, TABLES = ROW_WISE[:1], ()
COPIES = ("copies", "copies, one writer")
KILLED = [(sink, "driver") for sink in (*ROW_WISE, *COPIES, *TABLES)]
JOINED = [chapter for chapter in KILLED if chapter[0] not in COPIES]
CHECKPOINT_LOST = [(writers, "driver, checkpoint lost") for writers in ROW_WISE]


@pytest.mark.parametrize("told", [*KILLED, *CHECKPOINT_LOST], indirect=True, ids=", ".join)
def test_a_killed_driver_loses_nothing_and_doubles_nothing(told: Outcome) -> None:
    assert told.is_exactly_once, told.details()
    # A few kills may all miss by chance; the full count may not.
    assert told.aborted or ROUNDS < FULL_COUNT, (
        f"no kill hit an open transaction, so nothing was tested: {told.details()}"
    )


@pytest.mark.parametrize("told", [*JOINED, *CHECKPOINT_LOST], indirect=True, ids=", ".join)
def test_the_lookup_table_changed_between_the_attempts(told: Outcome) -> None:
    assert told.versions > 1


@pytest.mark.parametrize("told", [(writers, "source") for writers in ROW_WISE], indirect=True, ids=", ".join)
def test_a_source_topic_made_anew_is_refused(told: Refusal) -> None:
    assert "source topic" in told.primary
    assert told.hint
