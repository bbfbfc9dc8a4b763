"""What one arm says about each of its epochs, in a file of JSON lines that both sides know."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path


@dataclass(frozen=True)
class Epoch:
    """One micro-batch, as Spark's own progress report has it.

    :param rows: rows read in it.
    :param seconds: from its trigger to its end, everything included.
    :param cpu_seconds: processor time of the driver's whole process tree, at its end.
    """

    rows: int
    seconds: float
    cpu_seconds: float

    def append_to(self, file: Path) -> None:
        """Write the epoch as the file's next line."""
        with file.open("a") as lines:
            lines.write(json.dumps(asdict(self)) + "\n")


def read_epochs(file: Path) -> list[Epoch]:
    """Return the epochs with rows, in order."""
    found = [Epoch(**json.loads(line)) for line in file.read_text().splitlines()]
    return [epoch for epoch in found if epoch.rows]


@dataclass(frozen=True)
class Figures:
    """What one run of one arm showed.

    :param first_seconds: the first epoch, which pays for starting everything.
    :param rows_per_second: over all warm epochs.
    :param cpu_per_million: processor seconds per million rows, over all warm epochs.
    :param median_seconds: of the warm epochs.
    """

    first_seconds: float
    rows_per_second: float
    cpu_per_million: float
    median_seconds: float

    @classmethod
    def of(cls, epochs: Sequence[Epoch], cold_rows: int = 0) -> Figures:
        """Condense the epochs of a run.

        :param cold_rows: epochs are warm behind so many rows, and behind the first epoch.
        """
        read = list(accumulate(epoch.rows for epoch in epochs))
        cold = next(number for number, rows in enumerate(read, 1) if rows >= cold_rows)
        warm = epochs[cold:]
        rows = sum(epoch.rows for epoch in warm)
        cpu_seconds = epochs[-1].cpu_seconds - epochs[cold - 1].cpu_seconds
        return cls(
            first_seconds=epochs[0].seconds,
            rows_per_second=rows / sum(epoch.seconds for epoch in warm),
            cpu_per_million=cpu_seconds / rows * 1_000_000,
            median_seconds=statistics.median(epoch.seconds for epoch in warm),
        )
