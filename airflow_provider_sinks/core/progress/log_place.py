"""A place in the log of a source partition, and what tells later that the log before it is still the same.

Each leader of a partition has a number that only grows, its leader epoch, and every record keeps the one
that it was written under. A leader only appends. So a log loses records in one way: another leader begins
where its own copy ends.

A place ``(offset, e)`` says that the log was seen to reach the offset while ``e`` was its newest leader
epoch. Asked later where its leader epochs up to ``e`` end, the log names an offset before the place if, and
only if, it has lost records before the place:

- Kept. Then every record before the place is there, each under an epoch up to ``e``: those end no earlier.
- Lost. Then some later leader began before the place. Its epoch is newer than ``e``, for ``e`` was seen while
  the records were there. So the epochs up to ``e`` end where it began, or before.

An epoch that is *older* than that of the last record would accuse a log that has lost nothing: so it is asked
for behind the offset, never before it. Where the brokers' memory of their leaders goes back too, as with a
copy of all disks that is put back, a number may be used twice; then nothing tells.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LogPlace:
    """An offset that a partition was seen to reach, and the newest leader epoch of its log then."""

    offset: int
    leader_epoch: int
