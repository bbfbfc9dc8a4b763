"""How much memory a driver of ours holds after many epochs, against after some."""

from __future__ import annotations

from collections.abc import Sequence

from tests.bench.peers.arm import Work
from tests.bench.peers.growing import growing
from tests.bench.peers.place import Place
from tests.bench.peers.spark_arms import OurArm

_ROWS_PER_SECOND = 1_000
_LIMIT_SECONDS = 1_800


def growth(place: Place, arm: OurArm, work: Work, epochs: Sequence[int]) -> dict[int, int]:
    """Run a sink over a source that grows, and return what it holds after so many epochs, in bytes.

    :param epochs: in rising order.
    :raises LocalServiceError: it failed, or takes too long.
    """
    found = {}
    with growing(place, arm, work, _ROWS_PER_SECOND, 2 * _LIMIT_SECONDS) as sink:
        for number in epochs:
            sink.wait_for_epoch(number, _LIMIT_SECONDS)
            found[number] = sink.held_bytes()
    return found
