"""How many source records an epoch may hold: what the spec allows, but no more than weigh so many bytes.

Spark bounds an epoch by offsets alone, and by what it was told when its query began. A million records of 100
bytes are little; a million of 1 MB are a terabyte, with one writer in one transaction. So records are weighed
before the query begins: the driver reads a few. Where there are none yet, epochs begin small. When a full
epoch shows that more would fit, or a heavy one that less does, they are weighed again, and the query is ended
between two epochs and begun anew. The range of an epoch that Spark has already written down stays what it is.

>>> size = EpochSize(1_000_000, 1_000_000_000, lambda: 100_000.0, position=0)
>>> size.records
10000
>>> size.note(position=10_000, size_bytes=9_000)  # the query leaves nearly everything out: no reason to grow
>>> size.has_changed()
False
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

SETTING = "spark.sinks.epochBytes"
"""The Spark setting that changes :data:`EPOCH_BYTES`."""
EPOCH_BYTES = 1024 * 1024 * 1024
UNKNOWN_RECORDS = 1_000
"""An epoch of records that nobody could weigh."""
_FULL = 0.9
_FACTOR = 2
"""A query is begun anew only for epochs of at least twice, or at most half as many records."""


@dataclass(frozen=True)
class FirstEpoch:
    """What is known of the first epoch of a query before it begins.

    :param records: how many it may have.
    :param record_bytes: what one weighs; 0 where nobody could weigh one.
    """

    records: int
    record_bytes: float = 0.0

    @classmethod
    def of(cls, size: EpochSize, waiting: int | None) -> FirstEpoch:
        """Return it by how many records wait to be read, where that is known."""
        records = size.records if waiting is None else max(0, min(size.records, waiting))
        return cls(records, size.record_bytes)


NOT_KNOWN = FirstEpoch(0)


class EpochSize:
    """How many records an epoch of one driver may hold.

    ``note`` is called in the thread of the epochs, all else in the main one. ``record_bytes`` is what a
    record weighed last; 0 where nobody could weigh one.

    :param records_max: what the spec allows.
    :param bytes_max: what an epoch may weigh, in the source or in the target.
    :param weigh: returns the mean bytes of a record as it is now, or ``None``.
    :param position: the sum of the source's positions at the start.
    """

    def __init__(
        self, records_max: int, bytes_max: int, weigh: Callable[[], float | None], position: int
    ) -> None:
        self._records_max = records_max
        self._bytes_max = bytes_max
        self._weigh = weigh
        self._position = position
        self._written_bytes = 0.0
        self._is_in_question = False
        self._has_changed = False
        self.record_bytes = 0.0
        self.records = self._fitting()

    def begin(self) -> int:
        """Return how many records an epoch of the query that begins now may hold."""
        self._has_changed = False
        return self.records

    @property
    def is_bounded_by_bytes(self) -> bool:
        """Whether epochs hold less than the spec allows."""
        return self.records < self._records_max

    def note(self, position: int, size_bytes: int) -> None:
        """Note down a whole epoch.

        :param position: the sum of the source's positions behind it.
        :param size_bytes: what it wrote.
        """
        records, self._position = position - self._position, position
        if records <= 0:
            return
        self._written_bytes = size_bytes / records
        is_full = self.is_bounded_by_bytes and records >= _FULL * self.records
        if is_full or size_bytes > _FACTOR * self._bytes_max:
            self._is_in_question = True

    def has_changed(self) -> bool:
        """Weigh again if there is a reason to, and return whether the query must begin anew."""
        if self._is_in_question:
            self._is_in_question = False
            fitting = self._fitting()
            if not self.records / _FACTOR < fitting < self.records * _FACTOR:
                self.records, self._has_changed = fitting, True
        return self._has_changed

    def _fitting(self) -> int:
        self.record_bytes = self._weigh() or 0.0
        bytes_each = max(self.record_bytes, self._written_bytes)
        fitting = int(self._bytes_max / bytes_each) if bytes_each else UNKNOWN_RECORDS
        return max(1, min(self._records_max, fitting))
