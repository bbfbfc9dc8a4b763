"""How much memory a driver of ours holds after many epochs, against after some."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from airflow_provider_sinks.local.processes import LocalServiceError
from tests.bench.peers.arm import Running, Work
from tests.bench.peers.drain import stop
from tests.bench.peers.latency import feed, see_to, wake
from tests.bench.peers.meter import Meter
from tests.bench.peers.place import Place
from tests.bench.peers.spark_arms import OurArm, epochs_done

_ROWS_PER_SECOND = 1_000
_LIMIT_SECONDS = 1_800
_LOOK_SECONDS = 0.5


@dataclass(frozen=True)
class Growth:
    """What the driver and its workers held.

    :param bytes_after: by the number of epochs.
    """

    bytes_after: dict[int, int]


def growth(place: Place, arm: OurArm, work: Work, epochs: Sequence[int]) -> Growth:
    """Run a sink over a source that grows, and look at its memory after so many epochs.

    :param epochs: in rising order.
    :raises LocalServiceError: it failed, or takes too long.
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
            wake(running, work, ends)
            producer = Running([feed(work, _ROWS_PER_SECOND, _ROWS_PER_SECOND * _LIMIT_SECONDS)])
            return Growth({number: _memory_after(number, running, work, meter) for number in epochs})
        finally:
            stop(running)
            if producer:
                stop(producer)


def _memory_after(epochs: int, running: Running, work: Work, meter: Meter) -> int:
    deadline = time.monotonic() + _LIMIT_SECONDS
    while (done := epochs_done(work)) < epochs:
        see_to(running)
        if time.monotonic() > deadline:
            raise LocalServiceError(f"{done:,} of {epochs:,} epochs within {_LIMIT_SECONDS:,} s")
        time.sleep(_LOOK_SECONDS)
    return meter.memory_bytes()
