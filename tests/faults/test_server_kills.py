"""A backend of Postgres that ends, and SIGKILL of Postgres itself: no row missing, none doubled."""

from __future__ import annotations

import pytest

from tests.faults.outcome import FULL_COUNT, ROUNDS, Outcome

KILLED = (("Postgres, append", "Postgres backend"),)
ALL = tuple(
    (sink, part)
    for part in ("Postgres backend", "Postgres")
    for sink in ("Postgres, append", "Postgres, upsert")
)
"""With the full count the whole server is killed too, and under both modes; a round or two take one."""


@pytest.mark.parametrize("told", ALL if ROUNDS >= FULL_COUNT else KILLED, indirect=True, ids=", ".join)
def test_a_database_that_ends_loses_nothing_and_doubles_nothing(told: Outcome) -> None:
    assert told.is_exactly_once, told.details()
    # A few kills may all miss by chance; the full count may not.
    assert told.aborted or ROUNDS < FULL_COUNT, (
        f"no kill hit an open transaction, so nothing was tested: {told.details()}"
    )
