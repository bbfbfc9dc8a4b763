"""One run of one arm over a source that is complete: started, watched from outside, read back."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass

from airflow_provider_sinks.local.processes import LocalServiceError, Service
from tests.bench.peers.arm import Arm, Kind, Running, Work
from tests.bench.peers.figures import Audit, Figures, Window, window
from tests.bench.peers.meter import Meter
from tests.bench.peers.place import Place
from tests.bench.peers.reader import Examiner, read
from tests.bench.peers.visible import Ends
from tests.bench.peers.workloads import rows_out

LIMIT_SECONDS = 900.0
_LOOK_SECONDS = 0.05
_QUIET_SECONDS = 3.0
"""An arm without an end is done when all rows are visible and nothing has moved for so long."""
_MARKERS_SECONDS = 10.0
_LINE = 300
_TELLING = ("rror", "xception", "ERROR")


def drain(place: Place, arm: Arm, work: Work, cold_rows: int) -> tuple[Figures, list[str]]:
    """Run an arm to its end and return its figures, and what is to be noted.

    :param work: what it is told; its target is made here, and deleted.
    :param cold_rows: the rate is taken behind so many rows.
    :raises LocalServiceError: it failed, or took too long.
    """
    with place.target(arm.target(work), work.partitions) as ends, Meter(place.broker.session) as meter:
        running = arm.start(work)
        # From here: what an arm fetches or compiles at its first start is none of its run.
        run = _Run(arm, work, running, ends, meter, began=time.time())
        meter.sessions |= {service.pid for service in running.services}
        try:
            run.watch()
        finally:
            stop(running)
        return run.figures(cold_rows), running.notes


@dataclass
class _Run:
    """A run as it is seen from outside. Moments are seconds since the epoch.

    :param first_seen: when a row was visible, as a look every 50 ms tells.
    :param all_seen: when all were, or the arm had ended.
    """

    arm: Arm
    work: Work
    running: Running
    ends: Ends
    meter: Meter
    began: float
    first_seen: float | None = None
    all_seen: float = 0.0

    @property
    def _expected(self) -> int:
        work = self.work
        return work.rows if self.arm.kind is Kind.WRITES_ONLY else rows_out(work.workload, work.rows)

    def watch(self) -> None:
        """Return when all rows are visible and the arm has ended, if it does."""
        quiet = _Quiet(self._expected)
        while time.time() - self.began < LIMIT_SECONDS:
            self.running.look()
            if any(map(_has_just_ended, self.running.services)):
                self.meter.take()
            over = has_ended(self.running)
            stable = self._look()
            if over:
                self._end()
                return
            if not self.running.ends and (seen := quiet.since(stable, self.ends)):
                self.all_seen = seen
                return
            time.sleep(_LOOK_SECONDS)
        reached = f"{self.ends.stable():,} of {self._expected:,} rows are visible"
        raise LocalServiceError(
            f"not done within {LIMIT_SECONDS:.0f} s", reached, _places(self.running.services)
        )

    def _look(self) -> int:
        stable = 0 if self.arm.kind is Kind.READS_ONLY else self.ends.stable()
        if stable and self.first_seen is None:
            self.first_seen = time.time()
        return stable

    def _end(self) -> None:
        """Wait for the last markers, which the coordinator writes behind its answer to the commit."""
        self.all_seen = time.time()
        deadline = time.monotonic() + _MARKERS_SECONDS
        while self.ends.stable() != self.ends.high() and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)
        self._look()

    def figures(self, cold_rows: int) -> Figures:
        """Read the target back and put the figures together."""
        if self.arm.kind is Kind.READS_ONLY:
            return self._of(None, None, 1.0)
        work = self.work
        examiner = Examiner(None if self.arm.kind is Kind.WRITES_ONLY else work.workload, work.rows)
        audit = read(work.bootstrap, self.arm.target(work), work.partitions, examiner)
        if not audit.rows:
            raise LocalServiceError("no row became visible", *logs(self.running.services))
        part = audit.rows / work.rows
        return self._of(audit, window(examiner.appended, round(cold_rows * part)), part)

    def _of(self, audit: Audit | None, warm: Window | None, part: float) -> Figures:
        """Put figures together; all rates are in source rows.

        :param part: of the source rows that arrive.
        """
        whole = self.meter.used(self.began, self.all_seen)
        used = self.meter.used(warm.start_seconds, warm.end_seconds) if warm else None
        millions = warm.rows / part / 1e6 if warm else 0.0
        return Figures(
            rows_per_second=warm.rows_per_second / part if warm else self.running.rate(),
            cpu_per_million=used.arm / millions if used else None,
            broker_cpu_per_million=used.broker / millions if used else None,
            whole_cpu_per_million=whole.arm / self.work.rows * 1e6,
            whole_seconds=self.all_seen - self.began,
            first_row_seconds=self.first_seen and self.first_seen - self.began,
            memory_bytes=self.meter.peak_bytes,
            control_records=self.ends.high() - audit.rows if audit else 0,
            other_load=used.load_of(used.others) if used else whole.load_of(whole.others),
            audit=audit,
            start=self.running.start_parts(),
        )


class _Quiet:
    """Finds out since when all is visible."""

    def __init__(self, expected: int) -> None:
        self._expected = expected
        self._last = -1
        self._since = 0.0

    def since(self, stable: int, ends: Ends) -> float | None:
        """Return when all became visible, once nothing has moved for a while."""
        if stable < self._expected or ends.high() != stable:
            self._last = -1
        elif stable != self._last:
            self._last, self._since = stable, time.time()
        elif time.time() - self._since > _QUIET_SECONDS:
            return self._since
        return None


def _has_just_ended(service: Service) -> bool:
    """Tell whether a process has ended and nobody knows it yet: so it can still be read what it used."""
    with contextlib.suppress(ChildProcessError):
        return os.waitid(os.P_PID, service.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    return False


def has_ended(running: Running) -> bool:
    """Tell whether an arm has ended by itself.

    :raises LocalServiceError: not well, or although it must not.
    """
    if any(service.running for service in running.services):
        return False
    for service in running.services:
        if (code := service.wait(1)) != 0 or not running.ends:
            raise LocalServiceError(f"{service.name} ended with exit code {code}", *logs([service]))
    return True


def stop(running: Running) -> None:
    """End what an arm has started."""
    for service in running.services:
        service.stop()


def logs(services: Sequence[Service]) -> list[str]:
    """Return what the logs of services say of errors, and where they are."""
    found = []
    for service in services:
        lines = service.log.read_text(errors="replace").splitlines() if service.log.exists() else []
        telling = [line.strip() for line in lines if any(word in line for word in _TELLING)]
        found += [line[:_LINE] for line in telling[:4] or lines[-5:]]
    return ["\n".join(found), _places(services)]


def _places(services: Sequence[Service]) -> str:
    return f"logs: {', '.join(str(service.log) for service in services)}"
