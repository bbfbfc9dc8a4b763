"""Runs a plan: cases with their rounds, latencies, a long run. What fails is told, and the rest goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial

from airflow_provider_sinks.core.errors import SinkError
from tests.bench.peers import arms
from tests.bench.peers.arm import Arm, Work
from tests.bench.peers.drain import drain
from tests.bench.peers.figures import Figures, Latency
from tests.bench.peers.growth import growth
from tests.bench.peers.latency import Rate, latency
from tests.bench.peers.place import Place
from tests.bench.peers.plan import GROWTH, LATENCY, SCALE, SHARED, SMALL, SOAK, Case, Plan
from tests.bench.peers.report import footprint, line
from tests.bench.peers.results import Results, Run
from tests.bench.peers.scale import scale
from tests.bench.peers.shared_progress import look_ups
from tests.bench.peers.soak import Footprint, soak
from tests.bench.peers.stored import keep
from tests.bench.peers.workloads import Enrich

_PARTITIONS = 4
_WARM_UP = arms.FLINK_5S
"""The run of a case that is not counted. It wakes the broker, and tells how often Flink must commit."""
_FLINKS_ROWS_PER_SECOND = 250_000.0
"""Taken where that run shows no rate."""
_LARGEST_EPOCH = 1_000_000
"""Of a sink whose source grows; its own default."""
_AWAKE = Rate(warm_up_seconds=5, seconds=10)
"""What wakes a broker that no case has woken before latencies are taken; not counted."""
_NOBODYS = "all arms"

Measure = Callable[[], tuple[Figures | Latency | None, Sequence[str]]]


@dataclass
class Bench:
    """A plan at work.

    :param say: takes each line that is to be read while it runs.
    """

    place: Place
    plan: Plan
    say: Callable[[str], object]
    results: Results = field(default_factory=Results)

    def run(self) -> None:
        """Run everything."""
        for case in self.plan.cases:
            self._whole_case(case)
        self._latencies()
        for number in range(1, self.plan.rounds + 1) if self.plan.epochs else ():
            self._note(self._tried(GROWTH, arms.OURS_0S.name, number, self._grow))
        for partitions in self.plan.partitions:
            measure = partial(self._scale, partitions)
            self._note(self._tried(f"{SCALE}: {partitions:,} partitions", arms.OURS_0S.name, 1, measure))
        if self.plan.sharing:
            self._note(self._tried(SHARED, arms.OURS_0S.name, 1, self._look_up))
        if self.plan.soak_minutes:
            self._note(self._tried(SOAK, arms.OURS_1S.name, 1, self._soak))

    def _whole_case(self, case: Case) -> None:
        """Run a case; without its source it is told as failed, and the next one comes."""
        self.say(f"\n{case.title}: {case.detail}")
        try:
            self._case(case)
        except Exception as error:  # noqa: BLE001  likewise
            self._note(Run(case.title, _NOBODYS, 0, failure=_told(error)))

    def _case(self, case: Case) -> None:
        name = self.place.next_name("source")
        with self.place.source(name, case.workload, case.rows, case.partitions):
            first = self._tried(case.title, _WARM_UP.name, 0, partial(self._drain, case, name, _WARM_UP))
            self.say(f"  not counted: {line(first).strip()}")
            every = _commit_every(case, first)
            for number, arm in _in_turn(case.arms, self.plan.rounds):
                measure = partial(self._drain, case, name, arm, every)
                self._note(self._tried(case.title, arm.name, number, measure))

    def _latencies(self) -> None:
        if self.plan.late and not self.plan.cases:
            first = self._tried(LATENCY, _WARM_UP.name, 0, partial(self._late, _WARM_UP, _AWAKE))
            self.say(f"  not counted: {line(first).strip()}")
        for number, arm in _in_turn(self.plan.late, self.plan.rounds):
            self._note(self._tried(LATENCY, arm.name, number, partial(self._late, arm, self.plan.rate)))

    def _drain(
        self, case: Case, source: str, arm: Arm, every: timedelta = timedelta(seconds=1)
    ) -> tuple[Figures, list[str]]:
        name = self.place.next_name(arm.name)
        work = Work(
            bootstrap=self.place.bootstrap,
            source=source,
            target=name,
            folder=self.place.folder / name,
            workload=case.workload,
            partitions=case.partitions,
            rows=case.rows,
            rows_per_commit=case.rows_per_commit,
            commit_every=every,
            users=self.place.users if isinstance(case.workload, Enrich) else None,
        )
        return drain(self.place, arm, work, case.cold_rows)

    def _late(self, arm: Arm, rate: Rate) -> tuple[Latency, list[str]]:
        return latency(self.place, arm, self._endless(arm), rate)

    def _grow(self) -> tuple[None, list[str]]:
        found = growth(self.place, arms.OURS_0S, self._endless(arms.OURS_0S), self.plan.epochs)
        self.results.bytes_after.append(found)
        return None, [f"{held:,} bytes after {epochs:,} epochs" for epochs, held in found.items()]

    def _scale(self, partitions: int) -> tuple[None, list[str]]:
        work = replace(self._endless(arms.OURS_0S), partitions=partitions)
        found = scale(self.place, arms.OURS_0S, work)
        self.results.scale[partitions] = found
        return None, [f"first row {found.first_row_seconds:.1f} s", f"an epoch {found.epoch_seconds:.2f} s"]

    def _look_up(self) -> tuple[None, list[str]]:
        self.results.look_ups = look_ups(self.place, self.plan.sharing)
        return None, [f"{seconds:.2f} s" for seconds in self.results.look_ups]

    def _soak(self) -> tuple[None, list[str]]:
        def told(found: Footprint) -> None:
            self.results.footprints.append(found)
            self.say(f"  {footprint(found)}")

        soak(self.place, arms.OURS_1S, self._endless(arms.OURS_1S), self.plan.soak_minutes, told)
        return None, []

    def _endless(self, arm: Arm) -> Work:
        name = self.place.next_name(arm.name)
        return Work(
            bootstrap=self.place.bootstrap,
            source=f"{name}-source",
            target=name,
            folder=self.place.folder / name,
            workload=SMALL,
            partitions=_PARTITIONS,
            rows=0,
            rows_per_commit=_LARGEST_EPOCH,
            endless=True,
        )

    def _tried(self, case: str, arm: str, number: int, measure: Measure) -> Run:
        try:
            figures, notes = measure()
        except Exception as error:  # noqa: BLE001  whatever it is, the other arms are measured
            return Run(case, arm, number, failure=_told(error))
        return Run(case, arm, number, figures, notes=tuple(notes))

    def _note(self, run: Run) -> None:
        self.results.runs.append(run)
        self.say(line(run))
        keep(self.place.folder, self.results)


def _told(error: Exception) -> str:
    return str(error) if isinstance(error, SinkError) else f"{type(error).__name__}: {error}"


def _in_turn(arms: Sequence[Arm], rounds: int) -> Iterator[tuple[int, Arm]]:
    """Give each arm once a round; the order turns round with each round (A B C, C B A, ...)."""
    for number in range(1, rounds + 1):
        for arm in arms if number % 2 else reversed(arms):
            yield number, arm


def _commit_every(case: Case, first: Run) -> timedelta:
    """Return how long Flink takes for the rows of a commit."""
    measured = first.figures.rows_per_second if isinstance(first.figures, Figures) else None
    return timedelta(seconds=case.rows_per_commit / (measured or _FLINKS_ROWS_PER_SECOND))
