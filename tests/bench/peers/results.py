"""What a benchmark has found so far."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from tests.bench.peers.figures import Figures, Latency, Spread
from tests.bench.peers.plan import LATENCY
from tests.bench.peers.scale import Scale
from tests.bench.peers.soak import Footprint


@dataclass(frozen=True)
class Run:
    """One run of one arm.

    :param case: the title of its case.
    :param number: of the round, from 1.
    :param failure: why there are no figures.
    """

    case: str
    arm: str
    number: int
    figures: Figures | Latency | None = None
    failure: str = ""
    notes: tuple[str, ...] = ()

    @property
    def counts(self) -> bool:
        """Whether its figures count: fast and wrong is no result, and neither is what was disturbed."""
        return self.figures is not None and self.figures.is_right and not self.figures.is_disturbed


@dataclass
class Results:
    """What was found.

    :param runs: all but those that warm up, in order.
    :param bytes_after: by round, what a driver of ours held after so many epochs.
    :param scale: of a sink of ours, by the partitions of its source.
    :param look_ups: the seconds that sinks took to find their progress among that of many.
    :param footprints: of a long run.
    """

    runs: list[Run] = field(default_factory=list)
    bytes_after: list[dict[int, int]] = field(default_factory=list)
    scale: dict[int, Scale] = field(default_factory=dict)
    look_ups: list[float] = field(default_factory=list)
    footprints: list[Footprint] = field(default_factory=list)

    def of(self, case: str, arm: str) -> list[Run]:
        """Return the runs of an arm in a case."""
        return [run for run in self.runs if (run.case, run.arm) == (case, arm)]

    def drained(self, case: str, arm: str) -> list[Figures]:
        """Return the figures of the runs that came to their end."""
        return [run.figures for run in self.of(case, arm) if isinstance(run.figures, Figures)]

    def counting(self, case: str, arm: str) -> list[Figures]:
        """Return the figures that count."""
        runs = [run for run in self.of(case, arm) if run.counts]
        return [run.figures for run in runs if isinstance(run.figures, Figures)]

    def late(self, arm: str) -> list[Latency]:
        """Return the latencies of an arm that came to its end."""
        return [run.figures for run in self.of(LATENCY, arm) if isinstance(run.figures, Latency)]

    def counting_late(self, arm: str) -> list[Latency]:
        """Return the latencies that count."""
        runs = [run for run in self.of(LATENCY, arm) if run.counts]
        return [run.figures for run in runs if isinstance(run.figures, Latency)]

    def arms(self, case: str) -> list[str]:
        """Return which arms ran in a case, in the order of the first round."""
        return list(dict.fromkeys(run.arm for run in self.runs if run.case == case))

    def ratio(
        self, case: str, arms: tuple[str, str], figure: Callable[[Figures | Latency], float | None]
    ) -> Spread | None:
        """Return a figure of the first arm as a multiple of the second one's, round by round.

        :return: ``None`` if no round has both, and both count.
        """
        ours, theirs = ({run.number: run for run in self.of(case, arm)} for arm in arms)
        return Spread.of(
            _divided(_value(ours[number], figure), _value(theirs[number], figure))
            for number in ours.keys() & theirs.keys()
        )

    def failures(self) -> Sequence[Run]:
        """Return the runs that failed."""
        return [run for run in self.runs if run.failure]

    def disturbed(self) -> Sequence[Run]:
        """Return the runs beside which too much else ran."""
        return [run for run in self.runs if run.figures and run.figures.is_disturbed]

    @property
    def all_right(self) -> bool:
        """Whether every run went well and wrote what it should."""
        return not self.failures() and all(run.figures.is_right for run in self.runs if run.figures)


def _value(run: Run, figure: Callable[[Figures | Latency], float | None]) -> float | None:
    return figure(run.figures) if run.figures and run.counts else None


def _divided(one: float | None, other: float | None) -> float | None:
    return one / other if one is not None and other else None


def worst(runs: Iterable[Figures], count: Callable[[Figures], int | None]) -> int | None:
    """Return the largest count over the rounds; ``None`` if none could be taken."""
    known = [found for run in runs if (found := count(run)) is not None]
    return max(known, default=None)
