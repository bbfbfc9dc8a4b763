"""What a benchmark runs, as data: cases, each with its arms, its rows and its rounds."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.bench.peers import arms
from tests.bench.peers.arm import Arm
from tests.bench.peers.latency import Rate
from tests.bench.peers.workloads import Copy, Enrich, Workload

LATENCY = "latency"
GROWTH = "memory"
SCALE = "scale"
SHARED = "shared progress"
SOAK = "long run"
SMALL, LARGE, SQL = Copy(100), Copy(1024), Enrich()


class Regime(enum.StrEnum):
    """What of a run is looked at: one that has just begun, or one behind what makes a JVM fast."""

    COLD = "cold"
    STEADY = "steady"


@dataclass(frozen=True)
class Case:
    """Arms over the same source.

    :param rows: in the source.
    :param cold_rows: rates are taken behind so many.
    """

    workload: Workload
    partitions: int
    regime: Regime
    rows: int
    cold_rows: int
    rows_per_commit: int
    arms: Sequence[Arm]

    @property
    def title(self) -> str:
        """For tables and file names."""
        several = "partitions" if self.partitions > 1 else "partition"
        return f"{self.regime}: {self.workload.name}, {self.partitions} {several}"

    @property
    def detail(self) -> str:
        """What else belongs to the title of a table."""
        behind = f", rates behind {self.cold_rows:,}" if self.cold_rows else ""
        return f"{self.rows:,} rows{behind}, {self.rows_per_commit:,} rows per commit"

    def scaled(self, factor: float) -> Case:
        """Return the case with fewer rows, and in them as many commits."""
        numbers = (self.rows, self.cold_rows, self.rows_per_commit)
        rows, cold_rows, per_commit = (max(1, round(number * factor)) if number else 0 for number in numbers)
        return replace(self, rows=rows, cold_rows=cold_rows, rows_per_commit=per_commit)


@dataclass(frozen=True)
class Plan:
    """A whole benchmark.

    :param late: the arms whose latency is measured.
    :param epochs: behind which the driver's memory is looked at; empty: it is not.
    :param partitions: of the sources by which the costs of a sink are told.
    :param sharing: how many sinks share a topic in which progress is looked up; 0: none is.
    :param soak_minutes: how long the long run is; 0: there is none.
    :param told: what a reader of the tables must know.
    """

    rounds: int
    cases: Sequence[Case]
    late: Sequence[Arm]
    rate: Rate
    epochs: Sequence[int]
    partitions: Sequence[int] = ()
    sharing: int = 0
    soak_minutes: float = 0.0
    told: str = ""

    def scaled(self, factor: float) -> Plan:
        """Return the plan with fewer rows in its cases."""
        return replace(self, cases=[case.scaled(factor) for case in self.cases])

    def with_cases(self, texts: Sequence[str]) -> Plan:
        """Return what has one of these in its title; without texts, everything."""
        return replace(
            self,
            cases=[case for case in self.cases if _has(case.title, texts)],
            late=self.late if _has(LATENCY, texts) else (),
            epochs=self.epochs if _has(GROWTH, texts) else (),
            partitions=self.partitions if _has(SCALE, texts) else (),
            sharing=self.sharing if _has(SHARED, texts) else 0,
            soak_minutes=self.soak_minutes if _has(SOAK, texts) else 0.0,
        )

    def with_arms(self, texts: Sequence[str]) -> Plan:
        """Return the plan with the arms that have one of these in their names; without texts, with all."""
        cases = [replace(case, arms=_named(case.arms, texts)) for case in self.cases]
        return replace(self, cases=[case for case in cases if case.arms], late=_named(self.late, texts))


def full() -> Plan:
    """Return what the figures of the project are taken from."""
    return Plan(
        rounds=3,
        cases=(
            _cold(SMALL, 4, arms.ALL),
            _steady(SMALL, 4, arms.MAIN),
            _steady(LARGE, 4, arms.FEW),
            _steady(SQL, 4, arms.FEW),
            _cold(LARGE, 4, arms.SHORT),
            _cold(SQL, 4, arms.FEW),
            _steady(SMALL, 1, arms.FEW),
            _steady(SMALL, 16, arms.FEW),
        ),
        late=arms.LATE,
        rate=Rate(),
        epochs=(100, 1_000),
        partitions=(1, 16, 64, 256),
        sharing=1_000,
    )


def quick() -> Plan:
    """Return what shows in ten minutes whether something changed: one round, short runs, few arms.

    Most of a short run is its start, which takes an arm on Spark some twenty seconds.
    """
    return Plan(
        rounds=1,
        cases=(
            _cold(SMALL, 4, arms.FEW).scaled(0.2),
            _steady(SQL, 4, arms.FEW).scaled(0.03),
        ),
        late=(arms.SPARK, arms.OURS_100MS),
        rate=Rate(warm_up_seconds=5, seconds=10),
        epochs=(),
        told="One round of runs that are too short to be steady: what is said here of targets is no figure.",
    )


def _named(of: Sequence[Arm], texts: Sequence[str]) -> list[Arm]:
    return [arm for arm in of if _has(arm.name, texts)]


def _has(name: str, texts: Sequence[str]) -> bool:
    return not texts or any(text.lower() in name.lower() for text in texts)


def _cold(workload: Workload, partitions: int, of: Sequence[Arm]) -> Case:
    return Case(workload, partitions, Regime.COLD, 1_000_000, 0, 125_000, of)


def _steady(workload: Workload, partitions: int, of: Sequence[Arm]) -> Case:
    """Return a case whose source and target are less than memory holds: else the disk is what is measured."""
    return Case(workload, partitions, Regime.STEADY, 6_500_000, 5_000_000, 250_000, of)
