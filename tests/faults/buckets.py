"""The key of an upsert in the fault tests: it changes every few rows, so a lost epoch is never made good."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from tests.faults.checker import Verdict
from tests.faults.feed import KEYS_PER_PARTITION, Feed, Row

BUCKET_ROWS = 40
"""An upsert has a key of its own for so many rows of a source partition: a lost epoch is never made good."""


def stands_for(seq: int) -> int:
    """Return of how many rows a row is the newest: itself, and those of its key that it has replaced."""
    return seq % BUCKET_ROWS // KEYS_PER_PARTITION + 1


def of_the_newest(verdict: Verdict, there: Collection[str], feed: Feed) -> Verdict:
    """Say which keys do not have their newest row: older ones may have been replaced within an epoch.

    :param there: the ids of all rows of the table.
    """
    newest: dict[tuple[str, int], Row] = {}
    for row in feed.rows:
        newest[row.key, row.seq // BUCKET_ROWS] = row
    missing = tuple(sorted({row.id for row in newest.values()}.difference(there)))
    return replace(verdict, rows=len(there), missing=missing)
