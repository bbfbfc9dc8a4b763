"""The figures of runs, and the arithmetic behind them: no clock and no broker here."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

COLD_SHARE = 0.1
LAST_SHARE = 0.9
DISTURBED_LOAD = 0.25
"""A run beside which others took more of the processors is disturbed, and its figures do not count.

Less than that the kernel takes by itself, for the network and the disk, where rows are large.
"""


@dataclass(frozen=True)
class Audit:
    """What an independent ``read_committed`` reader found in a target.

    :param rows: how many there are.
    :param missing: rows that should be there.
    :param doubled: rows that are there once more than they should.
    :param wrong: rows with a key or a value that is not theirs, or that should not be there.
    :param out_of_order: rows that stand behind a later one of their key, or in another partition.
    """

    rows: int
    missing: int
    doubled: int
    wrong: int = 0
    out_of_order: int = 0

    @property
    def is_right(self) -> bool:
        """Whether all rows are there, once, right and in order."""
        return not (self.missing or self.doubled or self.wrong or self.out_of_order)


@dataclass(frozen=True)
class Window:
    """The part of a run that counts as warm, by the broker's clock.

    :param start_seconds: since the epoch, as is ``end_seconds``.
    :param rows: appended behind the start, up to the end.
    """

    start_seconds: float
    end_seconds: float
    rows: int

    @property
    def rows_per_second(self) -> float:
        """The rate in it."""
        return self.rows / (self.end_seconds - self.start_seconds)


@dataclass(frozen=True)
class Figures:
    """What one run of one arm showed. Figures "warm" are of the window, the others of the whole run.

    :param rows_per_second: warm; ``None`` if all rows came too fast to tell.
    :param cpu_per_million: processor seconds of the arm's processes per million source rows, warm.
    :param broker_cpu_per_million: the broker's, warm.
    :param whole_cpu_per_million: from its start until all was visible or it ended.
    :param whole_seconds: likewise.
    :param first_row_seconds: from its start to the first visible row.
    :param memory_bytes: at most, of all its processes, what they share counted once.
    :param control_records: that its transactions left in the target.
    :param other_load: share of the machine's processors that others took, warm.
    :param start: of a start that can be seen from outside, the seconds that each part of it took.
    """

    rows_per_second: float | None
    cpu_per_million: float | None
    broker_cpu_per_million: float | None
    whole_cpu_per_million: float
    whole_seconds: float
    first_row_seconds: float | None
    memory_bytes: int
    control_records: int
    other_load: float
    audit: Audit | None
    start: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_right(self) -> bool:
        """Whether what arrived is what should; an arm that writes nothing does nothing wrong."""
        return self.audit is None or self.audit.is_right

    @property
    def is_disturbed(self) -> bool:
        """Whether too much else ran."""
        return self.other_load > DISTURBED_LOAD


@dataclass(frozen=True)
class Latency:
    """From just before ``produce`` until a ``read_committed`` consumer has the row.

    :param p50_ms: the median, and so on.
    :param rows: that were timed.
    :param cpu_share: share of the machine's processors that the arm took while rows were timed.
    :param broker_share: the broker's.
    :param other_load: that of others, the producer and the consumer of the measurement not among them.
    :param first_row_seconds: from its start to the first visible row.
    """

    p50_ms: float
    p90_ms: float
    p99_ms: float
    max_ms: float
    rows: int
    missing: int
    doubled: int
    cpu_share: float
    broker_share: float
    other_load: float
    first_row_seconds: float

    @property
    def is_right(self) -> bool:
        """Whether all rows came, once."""
        return not (self.missing or self.doubled)

    @property
    def is_disturbed(self) -> bool:
        """Whether too much else ran."""
        return self.other_load > DISTURBED_LOAD


@dataclass(frozen=True)
class Spread:
    """A figure over the rounds."""

    median: float
    lowest: float
    highest: float

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Spread | None:
        """Condense what was measured; ``None`` if nothing was."""
        known = [value for value in values if value is not None]
        return cls(statistics.median(known), min(known), max(known)) if known else None

    def show(self, form: str) -> str:
        """Return the median, and between which values it lies where there are several."""
        if self.lowest == self.highest:
            return f"{self.median:{form}}"
        return f"{self.median:{form}} ({self.lowest:{form}} to {self.highest:{form}})"


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return the smallest value that at least this share of the values does not exceed.

    :param ordered: the values, smallest first, at least one.
    :param share: above 0, up to 1.
    """
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def window(appended: Mapping[int, int], cold_rows: int = 0) -> Window | None:
    """Return the part between the first tenth of the rows and the last one.

    :param appended: how many rows were appended in which millisecond.
    :param cold_rows: the window begins behind so many rows, if that is later.
    :return: ``None`` if it has no length: then there is no rate.
    """
    moments = sorted(appended)
    reached = list(accumulate(appended[moment] for moment in moments))
    if not reached:
        return None
    first = _at(reached, max(COLD_SHARE * reached[-1], cold_rows))
    last = _at(reached, LAST_SHARE * reached[-1])
    if moments[last] <= moments[first]:
        return None
    return Window(moments[first] / 1000, moments[last] / 1000, reached[last] - reached[first])


def _at(reached: Sequence[int], rows: float) -> int:
    return next(number for number, sofar in enumerate(reached) if sofar >= rows)
