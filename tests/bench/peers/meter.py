"""Processor time and memory of whole sessions, read again and again while something runs."""

from __future__ import annotations

import bisect
import contextlib
import os
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

_PAUSE_SECONDS = 0.2
_MEMORY_EVERY = 5
"""Counting shared pages once takes the kernel milliseconds, so memory is read with each fifth sample."""
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_PSS = "Pss:"
_PROCESSORS = os.cpu_count() or 1


@dataclass(frozen=True)
class Sample:
    """Processor seconds so far, at a moment.

    :param moment: seconds since the epoch, as the broker's append times are.
    :param arm: of the sessions that were added.
    :param broker: of the broker's session.
    :param ours: of this process.
    :param machine: of everything.
    """

    moment: float
    arm: float = 0.0
    broker: float = 0.0
    ours: float = 0.0
    machine: float = 0.0

    @property
    def others(self) -> float:
        """What nobody takes who belongs to the run."""
        return self.machine - self.arm - self.broker - self.ours

    def minus(self, earlier: Sample) -> Sample:
        """Return what was used in between; its moment is the time in between."""
        return Sample(
            self.moment - earlier.moment,
            self.arm - earlier.arm,
            self.broker - earlier.broker,
            self.ours - earlier.ours,
            self.machine - earlier.machine,
        )

    def between(self, later: Sample, moment: float) -> Sample:
        """Return the sample of a moment between two."""
        used = later.minus(self)
        part = min(1.0, max(0.0, (moment - self.moment) / used.moment)) if used.moment else 1.0
        return Sample(
            self.moment + part * used.moment,
            self.arm + part * used.arm,
            self.broker + part * used.broker,
            self.ours + part * used.ours,
            self.machine + part * used.machine,
        )

    def load_of(self, processor_seconds: float) -> float:
        """Return processor seconds as a share of the machine; for what ``minus`` returned."""
        return max(0.0, processor_seconds) / self.moment / _PROCESSORS if self.moment > 0 else 0.0


class Meter:
    """Samples until its block ends.

    The arm's processes are those of ``sessions``; those of ``helper_sessions`` measure, and count neither for
    the arm nor for others. Both are added to while it runs.

    :param broker_session: the broker's.
    """

    def __init__(self, broker_session: int) -> None:
        self.sessions: set[int] = set()
        self.helper_sessions: set[int] = set()
        self.peak_bytes = 0
        self._broker_session = broker_session
        self._samples: list[Sample] = []
        self._most: defaultdict[int, float] = defaultdict(float)
        self._over = threading.Event()
        self._taking = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="meter", daemon=True)

    def __enter__(self) -> Self:
        self.take()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def take(self) -> None:
        """Take a sample now, as when a process has ended and nobody has asked for its exit code yet.

        Until then it can still be read what it used; between two samples it would be lost.
        """
        with self._taking:
            self._take()

    def used(self, start_seconds: float, end_seconds: float) -> Sample:
        """Return what was used between two moments."""
        return self._at(end_seconds).minus(self._at(start_seconds))

    def pids(self) -> list[int]:
        """Return the arm's processes."""
        return [pid for pid, session, _ in _processes() if session in set(self.sessions)]

    def memory_bytes(self) -> int:
        """Return what the arm holds now, pages that its processes share counted once."""
        return sum(map(_memory_bytes, self.pids()))

    def _run(self) -> None:
        number = 0
        while not self._over.wait(_PAUSE_SECONDS):
            self.take()
            number += 1
            if number % _MEMORY_EVERY == 0:
                self.peak_bytes = max(self.peak_bytes, self.memory_bytes())

    def _take(self) -> None:
        used: defaultdict[int, float] = defaultdict(float)
        for _, session, seconds in _processes():
            used[session] += seconds
        for session in self.sessions | self.helper_sessions:
            # What a process used that is gone is still in its parent's account, unless that is gone too.
            self._most[session] = max(self._most[session], used[session])
        sample = Sample(
            time.time(),
            sum(self._most[session] for session in set(self.sessions)),
            used[self._broker_session],
            sum(os.times()[:2]) + sum(self._most[session] for session in set(self.helper_sessions)),
            _machine_seconds(),
        )
        self._samples.append(sample)

    def _at(self, moment: float) -> Sample:
        place = bisect.bisect_left(self._samples, moment, key=lambda sample: sample.moment)
        if place == 0:
            return self._samples[0]
        if place == len(self._samples):
            return self._samples[-1]
        return self._samples[place - 1].between(self._samples[place], moment)


def _processes() -> Iterator[tuple[int, int, float]]:
    """Give number, session and processor seconds of each process, its ended children's with them."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                text = (entry / "stat").read_bytes()
                fields = text[text.rindex(b")") + 2 :].split()
                yield int(entry.name), int(fields[3]), sum(map(int, fields[11:15])) / _TICKS_PER_SECOND


def _memory_bytes(pid: int) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith(_PSS):
                return int(line.split()[1]) * 1024
    return 0


def _machine_seconds() -> float:
    """Return what all processors did so far, without waiting for anything."""
    fields = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    idle, waiting = fields[3], fields[4]
    return (sum(fields) - idle - waiting) / _TICKS_PER_SECOND
