"""Removed progress and a late zombie: refused or fenced in every round, and the reader sees each row once.

A round takes half a minute, so they are told with many rounds only; in seconds each stands in
``tests/live/test_decisions.py`` and ``tests/live/test_transactional_ids.py``.
"""

from __future__ import annotations

import pytest

from tests.faults.memory_stories import Remembered
from tests.faults.outcome import ROUNDS

MANY_ROUNDS = 10
TOLD = [
    ("removed progress", "all but the last record"),
    ("zombie", "another prefix"),
    ("Postgres, append, woken", "zombie"),
    ("Postgres, upsert, woken", "zombie"),
]

if ROUNDS >= MANY_ROUNDS:

    @pytest.mark.parametrize("told", TOLD, indirect=True, ids=", ".join)
    def test_what_is_gone_from_one_memory_stands_in_another(told: Remembered) -> None:
        assert told.outcome.is_exactly_once, told.outcome.details()
        assert len(told.told) >= MANY_ROUNDS
