"""One run of one arm over a source that is complete: started, watched from outside, read back."""

from __future__ import annotations

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
"""The coordinator writes the last markers behind its answer to the commit."""


@dataclass
class Course:
    """When what was seen, in seconds since the epoch.

    :param all_seen: when all was visible, or the arm had ended.
    """

    began: float
    first_seen: float | None = None
    all_seen: float = 0.0


def drain(place: Place, arm: Arm, work: Work, cold_rows: int) -> tuple[Figures, list[str]]:
    """Run an arm to its end and return its figures, and what is to be noted.

    :param work: what it is told; its target is made here, and deleted.
    :param cold_rows: the rate is taken behind so many rows.
    :raises LocalServiceError: it failed, or took too long.
    """
    with place.target(arm.target(work), work.partitions) as ends, Meter(place.broker.session) as meter:
        course = Course(time.time())
        running = arm.start(work)
        meter.sessions |= {service.pid for service in running.services}
        try:
            _watch(arm, running, work, ends, course)
        finally:
            stop(running)
        figures = _figures(place, arm, running, work, meter, course, ends, cold_rows)
    return figures, running.notes


def _watch(arm: Arm, running: Running, work: Work, ends: Ends, course: Course) -> None:
    expected = work.rows if arm.kind is Kind.WRITES_ONLY else rows_out(work.workload, work.rows)
    quiet = _Quiet(expected)
    while time.time() - course.began < LIMIT_SECONDS:
        running.look()
        over = has_ended(running)
        stable = 0 if arm.kind is Kind.READS_ONLY else ends.stable()
        if stable and course.first_seen is None:
            course.first_seen = time.time()
        if over:
            course.all_seen = time.time()
            _wait_for_markers(ends)
            course.first_seen = course.first_seen or time.time()
            return
        if not running.ends and (seen := quiet.since(stable, ends)):
            course.all_seen = seen
            return
        time.sleep(_LOOK_SECONDS)
    raise LocalServiceError(
        f"not done within {LIMIT_SECONDS:.0f} s", f"{ends.stable():,} of {expected:,} rows"
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


def _figures(
    place: Place,
    arm: Arm,
    running: Running,
    work: Work,
    meter: Meter,
    course: Course,
    ends: Ends,
    cold_rows: int,
) -> Figures:
    if arm.kind is Kind.READS_ONLY:
        return _told(running, work, meter, course)
    examiner = Examiner(None if arm.kind is Kind.WRITES_ONLY else work.workload, work.rows)
    audit = read(place.bootstrap, arm.target(work), work.partitions, examiner)
    if not audit.rows:
        raise LocalServiceError("no row became visible", *logs(running.services))
    part = audit.rows / work.rows
    warm = window(examiner.appended, round(cold_rows * part))
    return _measured(meter, course, warm, audit, work.rows, ends.high() - audit.rows, part)


def _measured(
    meter: Meter,
    course: Course,
    warm: Window | None,
    audit: Audit,
    rows: int,
    control_records: int,
    part: float,
) -> Figures:
    """Put figures together; all rates are in source rows, of which a part arrives."""
    whole = meter.used(course.began, course.all_seen)
    used = meter.used(warm.start_seconds, warm.end_seconds) if warm else None
    millions = warm.rows / part / 1e6 if warm else 0.0
    return Figures(
        rows_per_second=warm.rows_per_second / part if warm else None,
        cpu_per_million=used.arm / millions if used else None,
        broker_cpu_per_million=used.broker / millions if used else None,
        whole_cpu_per_million=whole.arm / rows * 1e6,
        whole_seconds=course.all_seen - course.began,
        first_row_seconds=course.first_seen and course.first_seen - course.began,
        memory_bytes=meter.peak_bytes,
        control_records=control_records,
        other_load=used.load_of(used.others) if used else whole.load_of(whole.others),
        audit=audit,
    )


def _told(running: Running, work: Work, meter: Meter, course: Course) -> Figures:
    """Take the rate from the arm itself: it leaves nothing to be read back."""
    whole = meter.used(course.began, course.all_seen)
    return Figures(
        rows_per_second=running.rate(),
        cpu_per_million=None,
        broker_cpu_per_million=None,
        whole_cpu_per_million=whole.arm / work.rows * 1e6,
        whole_seconds=course.all_seen - course.began,
        first_row_seconds=None,
        memory_bytes=meter.peak_bytes,
        control_records=0,
        other_load=whole.load_of(whole.others),
        audit=None,
    )


def _wait_for_markers(ends: Ends) -> None:
    deadline = time.monotonic() + _MARKERS_SECONDS
    while ends.stable() != ends.high() and time.monotonic() < deadline:
        time.sleep(_LOOK_SECONDS)


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
        telling = [
            line.strip()[:300] for line in lines if "rror" in line or "xception" in line or "ERROR" in line
        ]
        found += [*(telling or [line[:300] for line in lines[-5:]])[:4]]
    return ["\n".join(found), f"logs: {', '.join(str(service.log) for service in services)}"]
