"""A reader that looks at a target while things break, and finds what may never be seen.

Each look shows rows and progress as they were at one moment.
"""

from __future__ import annotations

import contextlib
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from airflow_provider_sinks.core.progress.record import DRIVER, ProgressRecord, WriterId

_PAUSE_SECONDS = 0.1
_PAUSE_LOOKS = 4
"""So many times as long as a look took is waited before the next: the sink has most of the processor."""


@dataclass(frozen=True)
class Look:
    """What a reader sees at one moment.

    :param newest: what may never fall: the value of each key, or the number of rows.
    :param doubled: how many rows are there that another row repeats.
    :param rows: how many rows of the source are there, those too that another has replaced, if that is told.
    :param progress: the newest record of each writer.
    """

    newest: Mapping[str, int]
    doubled: int = 0
    rows: int | None = None
    progress: Sequence[tuple[WriterId, ProgressRecord]] = ()

    def torn(self) -> Iterator[str]:
        """Say which rows are there without their record, which record without its rows, which rows twice."""
        if self.doubled:
            yield f"{self.doubled} rows are visible twice"
        recorded = sum(record.rows_total for writer, record in self.progress if writer != DRIVER)
        if self.rows is not None and self.rows != recorded:
            yield f"{self.rows} rows are visible, and {recorded} are recorded"


def fallen(old: Mapping[str, int], new: Mapping[str, int]) -> list[str]:
    """Return what has a lower value than before, or none."""
    return [f"{key}: {value}, then {new.get(key)}" for key, value in old.items() if new.get(key, -1) < value]


class Watch(ABC):
    """Looks again and again, also while the server is away."""

    away: ClassVar[tuple[type[Exception], ...]] = ()
    """What a look raises while the server is away."""

    def __init__(self) -> None:
        self.torn: list[str] = []
        self.fallen: list[str] = []
        self.history: list[tuple[WriterId, ProgressRecord]] = []
        self._newest: Mapping[str, int] = {}
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._look_on, name="watch", daemon=True)

    @abstractmethod
    def look(self) -> Look:
        """Look once."""

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._closing.set()
        self._thread.join()

    def take(self, look: Look) -> None:
        """Compare a look with the one before."""
        self.torn += look.torn()
        self.fallen += fallen(self._newest, look.newest)
        self._newest = look.newest
        known = dict(self.history)
        self.history += [(writer, record) for writer, record in look.progress if known.get(writer) != record]

    def look_around(self) -> None:
        """Do what is done at each look."""
        self.take(self.look())

    def _look_on(self) -> None:
        while not self._closing.is_set():
            started = time.monotonic()
            with contextlib.suppress(*self.away):
                self.look_around()
            took = time.monotonic() - started
            self._closing.wait(max(_PAUSE_SECONDS, _PAUSE_LOOKS * took))
