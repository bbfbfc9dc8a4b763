"""A sink of ours over a source that grows at an even rate, and what it holds meanwhile."""

from __future__ import annotations

import statistics
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from airflow_provider_sinks.local.processes import LocalServiceError, java_program
from tests.bench.peers.arm import Running, Work
from tests.bench.peers.drain import stop
from tests.bench.peers.latency import feed, see_to, wake
from tests.bench.peers.meter import Meter
from tests.bench.peers.place import Place
from tests.bench.peers.spark_arms import OurArm, epochs_done

_LOOK_SECONDS = 0.05
_COLLECT_SECONDS = 60
_LOOKS = 11
_BETWEEN_LOOKS_SECONDS = 1.0


@dataclass(frozen=True)
class Growing:
    """A sink at work.

    :param first_row_seconds: from its start to the first visible row.
    """

    work: Work
    running: Running
    meter: Meter
    first_row_seconds: float

    def wait_for_epoch(self, epoch: int, seconds: float) -> float:
        """Return when an epoch was over.

        :raises LocalServiceError: the sink failed, or the time is over.
        """
        deadline = time.monotonic() + seconds
        while (done := epochs_done(self.work)) < epoch:
            see_to(self.running)
            if time.monotonic() > deadline:
                raise LocalServiceError(f"{done:,} of {epoch:,} epochs within {seconds:,.0f} s")
            time.sleep(_LOOK_SECONDS)
        return time.monotonic()

    def held_bytes(self) -> int:
        """Return what driver and workers hold: the median of some looks, behind a collection of garbage.

        How large a heap is between two collections says how lazy Java was, and nothing about what is held.
        """
        self._collect_garbage()
        found = []
        for _ in range(_LOOKS):
            see_to(self.running)
            time.sleep(_BETWEEN_LOOKS_SECONDS)
            found.append(self.meter.memory_bytes())
        return int(statistics.median(found))

    def _collect_garbage(self) -> None:
        """Have each JVM collect its garbage and give the room back, where Java's tools are there."""
        program = Path(java_program()).resolve().with_name("jcmd")
        for pid in self.meter.pids() if program.exists() else ():
            if _name_of(pid) == "java":
                command = [str(program), str(pid), "GC.run"]
                subprocess.run(command, capture_output=True, timeout=_COLLECT_SECONDS, check=False)


def _name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:  # it has ended
        return ""


@contextmanager
def growing(place: Place, arm: OurArm, work: Work, rows_per_second: int, seconds: float) -> Iterator[Growing]:
    """Keep a sink at work over a source that grows while the block runs.

    :param seconds: for so long at most.
    :raises LocalServiceError: it failed, or nothing became visible.
    """
    with (
        place.target(work.source, work.partitions),
        place.target(work.target, work.partitions) as ends,
        Meter(place.broker.session) as meter,
    ):
        running = arm.start(work)
        meter.sessions |= {service.pid for service in running.services}
        producer: Running | None = None
        try:
            first_row_seconds = wake(running, work, ends)
            producer = Running([feed(work, rows_per_second, int(rows_per_second * seconds))])
            meter.helper_sessions |= {service.pid for service in producer.services}
            yield Growing(work, running, meter, first_row_seconds)
        finally:
            stop(running)
            if producer:
                stop(producer)
