"""Runs arms in turn, several rounds over, and prints their ratios.

The order turns round with each round (A B C, C B A, ...), so that a machine that grows slower is unfair to
nobody. A wrong count voids a run and ends the benchmark: fast and wrong is no result.
"""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

from airflow_provider_sinks.local.processes import LocalServiceError
from tests.bench import topics
from tests.bench.progress import Figures, read_epochs

Results = dict[str, list[Figures]]


@dataclass(frozen=True)
class Stream:
    """What each run of a benchmark copies.

    :param source: a topic that holds it.
    :param rows_per_epoch: the largest epoch.
    :param cold_rows: the rate is taken behind so many rows: until then the JVM compiles what it runs.
    :param keys: how many keys the rows have, for targets in which the newest row of each is there.
    """

    source: str
    records: int
    rows_per_epoch: int
    cold_rows: int = 0
    keys: int | None = None

    @property
    def visible(self) -> int:
        """How many rows must be there at the end."""
        return self.records if self.keys is None else self.keys


@dataclass(frozen=True)
class Work:
    """What every arm of a round gets.

    :param bootstrap: the broker.
    :param source: the topic to copy.
    :param rows_per_epoch: the largest epoch.
    :param folder: for launches, checkpoints and logs; fresh for each run.
    """

    bootstrap: str
    source: str
    rows_per_epoch: int
    folder: Path


class Arm(Protocol):
    """One way to copy."""

    @property
    def name(self) -> str:
        """For the table."""

    def run(self, work: Work, target: str) -> Path:
        """Copy everything and return the file with the epochs.

        :param target: what to write, which exists already.
        :raises LocalServiceError: with the end of the log, when the driver fails.
        """


class Place(Protocol):
    """Where the arms write."""

    def create(self, target: str) -> None:
        """Make a target."""

    def count(self, target: str) -> int:
        """Return how many rows are visible in it."""

    def delete(self, target: str) -> None:
        """Delete it, so that the next run has the disk for itself."""


class Rounds:
    """All rounds of some arms.

    :param arms: the first one is what the others are compared with.
    """

    def __init__(self, bootstrap: str, folder: Path, rounds: int, arms: Sequence[Arm], place: Place) -> None:
        self._bootstrap = bootstrap
        self._folder = folder
        self._rounds = rounds
        self._arms = arms
        self._place = place
        self._runs = 0

    def run(self, stream: Stream) -> Results:
        """Run all rounds of all arms."""
        results: Results = {arm.name: [] for arm in self._arms}
        for number in range(self._rounds):
            for arm in self._arms if number % 2 == 0 else reversed(self._arms):
                figures = self._measured(arm, stream)
                results[arm.name].append(figures)
                print(f"  round {number + 1}, {arm.name}: {figures.rows_per_second:,.0f} rows/s", flush=True)
        return results

    def _measured(self, arm: Arm, stream: Stream) -> Figures:
        self._runs += 1
        target = f"copy-{self._runs}"
        self._place.create(target)
        work = Work(self._bootstrap, stream.source, stream.rows_per_epoch, self._folder / target)
        figures = Figures.of(read_epochs(arm.run(work, target)), stream.cold_rows)
        found = self._place.count(target)
        if found != stream.visible:
            what = f"{arm.name}: {found:,} of {stream.visible:,} rows arrived"
            raise LocalServiceError(what, "The run is void.")
        self._place.delete(target)
        return figures


def make_source(bootstrap: str, topic: str, values: Sequence[bytes], records: int, partitions: int) -> str:
    """Fill a source topic, say how far it is, and return its name."""
    topics.create(bootstrap, topic, partitions)
    for written in topics.fill(bootstrap, topic, lambda n: values[n % len(values)], records, partitions):
        print(f"\r{topic}: {written:,} records", end="", flush=True)
    print()
    return topic


def print_drain(title: str, results: Results) -> None:
    """Print the figures of all arms, beside those of the first one."""
    print(f"\n{title}; medians (min to max)\n")
    print("| arm | rows/s, warm | ratio | CPU s per million rows | first epoch, s |")
    print("|---|---|---|---|---|")
    base = next(iter(results.values()))
    for name, figures in results.items():
        ratios = [f.rows_per_second / b.rows_per_second for f, b in zip(figures, base, strict=True)]
        cells = [
            as_range([f.rows_per_second for f in figures], ",.0f"),
            as_range(ratios, ".2f"),
            as_range([f.cpu_per_million for f in figures], ".1f"),
            as_range([f.first_seconds for f in figures], ".1f"),
        ]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    print()


def as_range(values: list[float], form: str) -> str:
    """Return the median, and between which values it lies."""
    middle = statistics.median(values)
    return f"{middle:{form}} ({min(values):{form}} to {max(values):{form}})"


def machine(*services: str) -> str:
    """Return what a figure was measured on.

    :param services: what runs beside the drivers.
    """
    parts = [
        *_processor(),
        f"{os.cpu_count()} cores",
        platform.system(),
        f"Python {platform.python_version()}",
    ]
    packages = [f"{name} {version(name)}" for name in ("pyspark", "confluent-kafka", "pyarrow")]
    return ", ".join([*parts, *packages, *services])


def _processor() -> Iterator[str]:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            yield line.split(":", 1)[1].strip()
            return
