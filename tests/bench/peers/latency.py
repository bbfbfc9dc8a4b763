"""How late a row becomes visible, and what it costs: an arm over a source that grows at an even rate."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from airflow_provider_sinks.local.processes import LocalServiceError, Service
from tests.bench.peers import load
from tests.bench.peers.arm import Arm, Running, Work
from tests.bench.peers.drain import has_ended, stop
from tests.bench.peers.figures import Latency, percentile
from tests.bench.peers.meter import Meter, Sample
from tests.bench.peers.place import Place
from tests.bench.peers.visible import Ends

_PROGRAM = Path(load.__file__)
_FIRST_ROW_SECONDS = 300.0
_LATE_SECONDS = 30
_LOOK_SECONDS = 0.1
_PROBES_PER_SECOND = 2
_SEEN = "latencies.json"


@dataclass(frozen=True)
class Rate:
    """What flows through an arm.

    :param warm_up_seconds: not timed.
    :param seconds: timed.
    """

    rows_per_second: int = 1_000
    warm_up_seconds: int = 15
    seconds: int = 60

    @property
    def rows(self) -> int:
        """All of them."""
        return self.rows_per_second * (self.warm_up_seconds + self.seconds)


def latency(place: Place, arm: Arm, work: Work, rate: Rate) -> tuple[Latency, list[str]]:
    """Run an arm until it is awake and all rows were timed; return its figures, and what is to be noted.

    :param work: what it is told; source and target are made here, and deleted.
    :raises LocalServiceError: it failed, or nothing became visible.
    """
    with (
        place.target(work.source, work.partitions),
        place.target(arm.target(work), work.partitions) as ends,
        Meter(place.broker.session) as meter,
    ):
        running = arm.start(work)
        meter.sessions |= {service.pid for service in running.services}
        try:
            first_row_seconds = wake(running, work, ends)
            reader = _reader(work, arm.target(work), rate)
            seen, used = _timed(reader, running, work, rate, meter)
        finally:
            stop(running)
    return _figures(seen, used, first_row_seconds), running.notes


def wake(running: Running, work: Work, ends: Ends) -> float:
    """Send a row now and then until one is visible in the target, and return the seconds since the start."""
    producer = Producer({"bootstrap.servers": work.bootstrap, "linger.ms": 0})
    began, sent = time.time(), 0
    while not ends.stable():
        see_to(running)
        if (passed := time.time() - began) > _FIRST_ROW_SECONDS:
            raise LocalServiceError(f"no row was visible within {_FIRST_ROW_SECONDS:.0f} s", work.target)
        if passed * _PROBES_PER_SECOND > sent:
            producer.produce(work.source, load.value(load.PROBE), b"probe", sent % work.partitions)
            sent += 1
        producer.poll(0)
        time.sleep(_LOOK_SECONDS)
    producer.flush(10)
    return time.time() - began


def see_to(running: Running) -> None:
    """Fail if an arm that must go on has ended or failed."""
    running.look()
    if has_ended(running):
        raise LocalServiceError("the arm ended, although its source goes on")


def feed(work: Work, rows_per_second: int, rows: int) -> Service:
    """Start a producer of rows at an even rate."""
    arguments = [work.bootstrap, work.source, *map(str, (work.partitions, rows_per_second, rows))]
    return work.service("producer", [sys.executable, str(_PROGRAM), "produce", *arguments])


def _timed(
    reader: Service, running: Running, work: Work, rate: Rate, meter: Meter
) -> tuple[dict[str, Any], Sample]:
    """Let rows flow until the reader has them; return what it saw, and what was used while it took times."""
    producer = feed(work, rate.rows_per_second, rate.rows)
    helpers = [reader, producer]
    meter.helper_sessions |= {service.pid for service in helpers}
    start = time.time() + rate.warm_up_seconds
    try:
        _until(lambda: not reader.running, running, rate.warm_up_seconds + rate.seconds + 2 * _LATE_SECONDS)
    finally:
        stop(Running(helpers))
    return json.loads((work.folder / _SEEN).read_text()), meter.used(start, start + rate.seconds)


def _reader(work: Work, topic: str, rate: Rate) -> Service:
    warm_up = rate.rows_per_second * rate.warm_up_seconds
    seconds = rate.warm_up_seconds + rate.seconds + _LATE_SECONDS
    numbers = map(str, (work.partitions, rate.rows, warm_up, seconds))
    arguments = [work.bootstrap, topic, *numbers, str(work.folder / _SEEN)]
    return work.service("reader", [sys.executable, str(_PROGRAM), "consume", *arguments])


def _until(over: Callable[[], bool], running: Running, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not over():
        see_to(running)
        if time.monotonic() > deadline:
            raise LocalServiceError(f"the reader did not end within {seconds:.0f} s")
        time.sleep(_LOOK_SECONDS)


def _figures(seen: dict[str, Any], used: Sample, first_row_seconds: float) -> Latency:
    late = seen["late_ms"]
    if not late:
        raise LocalServiceError("no row was timed", f"{seen['missing']:,} are missing")
    return Latency(
        p50_ms=percentile(late, 0.5),
        p90_ms=percentile(late, 0.9),
        p99_ms=percentile(late, 0.99),
        max_ms=late[-1],
        rows=len(late),
        missing=seen["missing"],
        doubled=seen["doubled"],
        cpu_share=used.load_of(used.arm),
        broker_share=used.load_of(used.broker),
        other_load=used.load_of(used.others),
        first_row_seconds=first_row_seconds,
    )
