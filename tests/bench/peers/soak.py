"""A long run: what a driver of ours holds from minute to minute. It must not grow."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.bench.peers.arm import Work
from tests.bench.peers.growing import Growing, growing
from tests.bench.peers.latency import see_to
from tests.bench.peers.place import Place
from tests.bench.peers.spark_arms import OurArm, epochs_done

_ROWS_PER_SECOND = 2_000
_MORE_SECONDS = 600
_LOOK_SECONDS = 1.0
_LOOKS = 6
"""How often what is held is told, evenly over the run."""


@dataclass(frozen=True)
class Footprint:
    """What driver and workers hold at a moment.

    :param minutes: since the first row was visible.
    :param files: open ones, sockets among them.
    """

    minutes: float
    epoch: int
    memory_bytes: int
    threads: int
    files: int
    sockets: int


def soak(place: Place, arm: OurArm, work: Work, minutes: float, told: Callable[[Footprint], object]) -> None:
    """Run a sink over a source that grows, for so long.

    :param told: takes each look.
    :raises LocalServiceError: it failed.
    """
    with growing(place, arm, work, _ROWS_PER_SECOND, minutes * 60 + _MORE_SECONDS) as sink:
        began = time.monotonic()
        for number in range(1, _LOOKS + 1):
            _wait_until(began + number * minutes * 60 / _LOOKS, sink)
            told(_footprint(sink, (time.monotonic() - began) / 60))


def _wait_until(moment: float, sink: Growing) -> None:
    while time.monotonic() < moment:
        see_to(sink.running)
        time.sleep(_LOOK_SECONDS)


def _footprint(sink: Growing, minutes: float) -> Footprint:
    threads = files = sockets = 0
    for pid in sink.meter.pids():
        with contextlib.suppress(psutil.Error, OSError):
            process, places = psutil.Process(pid), _open_files(pid)
            threads += process.num_threads()
            files += len(places)
            sockets += sum(place.startswith("socket:") for place in places)
    return Footprint(minutes, epochs_done(sink.work), sink.held_bytes(), threads, files, sockets)


def _open_files(pid: int) -> list[str]:
    found = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            found.append(str(entry.readlink()))
    return found
