"""What a sink of ours costs by the partitions of its source: its start, an epoch, memory."""

from __future__ import annotations

from dataclasses import dataclass

from tests.bench.peers.arm import Work
from tests.bench.peers.growing import Growing, growing
from tests.bench.peers.place import Place
from tests.bench.peers.spark_arms import OurArm, epochs_done

_ROWS_PER_SECOND = 1_000
_SOURCE_SECONDS = 3_600
_FIRST_EPOCHS = 3
"""They open what later ones keep."""
_EPOCHS = 20
_ENOUGH_SECONDS = 60.0
_EPOCH_SECONDS = 300.0


@dataclass(frozen=True)
class Scale:
    """Figures of one sink.

    :param first_row_seconds: from its start to the first visible row.
    :param epoch_seconds: the mean of some epochs, while 1,000 rows a second come.
    :param memory_bytes: what its driver and workers hold.
    """

    first_row_seconds: float
    epoch_seconds: float
    memory_bytes: int


def scale(place: Place, arm: OurArm, work: Work) -> Scale:
    """Run a sink for some epochs.

    :raises LocalServiceError: it failed, or takes too long.
    """
    with growing(place, arm, work, _ROWS_PER_SECOND, _SOURCE_SECONDS) as sink:
        return Scale(sink.first_row_seconds, _epoch_seconds(sink), sink.held_bytes())


def _epoch_seconds(sink: Growing) -> float:
    first = epochs_done(sink.work) + _FIRST_EPOCHS
    began = now = sink.wait_for_epoch(first, _FIRST_EPOCHS * _EPOCH_SECONDS)
    first = last = epochs_done(sink.work)
    while last < first + _EPOCHS and (last == first or now - began < _ENOUGH_SECONDS):
        now = sink.wait_for_epoch(last + 1, _EPOCH_SECONDS)
        last = epochs_done(sink.work)
    return (now - began) / (last - first)
