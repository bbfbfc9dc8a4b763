"""Runs the arms in turn, several rounds over, and prints ratios.

    python -m tests.bench [--records 2000000] [--rounds 3]

The order turns round with each round (A B C, C B A, ...), so that a machine that grows slower is unfair to
nobody. A wrong count voids a run and ends the benchmark: fast and wrong is no result.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.processes import LocalServiceError, unwind_on_signals
from tests.bench import topics
from tests.bench.arms import ARMS, Work
from tests.bench.progress import Figures, read_epochs

_EPOCHS = 8
_SMALL_EPOCH_ROWS = 8
_SMALL_EPOCHS = 25

Results = dict[str, list[Figures]]


def main() -> None:
    """Run the whole benchmark."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="*", default=[100, 1024], metavar="BYTES")
    arguments = parser.parse_args()
    unwind_on_signals()
    print(_machine(), flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="bench") as name,
        KafkaBroker.start(Path(name) / "kafka", lasting=True) as broker,
    ):
        bench = _Bench(broker, Path(name), arguments.rounds)
        for size in arguments.sizes:
            source = bench.source(f"source-{size}", arguments.records, size)
            _print_drain(size, arguments.records, bench.run(source, arguments.records, _EPOCHS))
            topics.delete(broker.bootstrap, source)
        source = bench.source("source-small", _SMALL_EPOCH_ROWS * _SMALL_EPOCHS, 100)
        _print_small(bench.run(source, _SMALL_EPOCH_ROWS * _SMALL_EPOCHS, _SMALL_EPOCHS))


class _Bench:
    def __init__(self, broker: KafkaBroker, folder: Path, rounds: int) -> None:
        self._bootstrap = broker.bootstrap
        self._folder = folder
        self._rounds = rounds
        self._runs = 0

    def source(self, topic: str, records: int, value_bytes: int) -> str:
        """Fill a source topic and return its name."""
        topics.create(self._bootstrap, topic)
        for written in topics.fill(self._bootstrap, topic, records, value_bytes):
            print(f"\r{topic}: {written:,} records", end="", flush=True)
        print()
        return topic

    def run(self, source: str, records: int, epochs: int) -> Results:
        """Run all rounds of all arms over one source."""
        results: Results = {arm.name: [] for arm in ARMS}
        for number in range(self._rounds):
            for arm in ARMS if number % 2 == 0 else reversed(ARMS):
                self._runs += 1
                target = f"copy-{self._runs}"
                topics.create(self._bootstrap, target)
                work = Work(self._bootstrap, source, records // epochs, self._folder / target)
                figures = Figures.of(read_epochs(arm.run(work, target)))
                self._demand_all(target, records, arm.name)
                topics.delete(self._bootstrap, target)
                results[arm.name].append(figures)
                print(f"  round {number + 1}, {arm.name}: {figures.rows_per_second:,.0f} rows/s", flush=True)
        return results

    def _demand_all(self, target: str, records: int, arm: str) -> None:
        found = topics.count(self._bootstrap, target)
        if found != records:
            raise LocalServiceError(f"{arm}: {found:,} records arrived of {records:,}", "The run is void.")


def _print_drain(size: int, records: int, results: Results) -> None:
    print(f"\n{records:,} records of {size} bytes, {topics.PARTITIONS} partitions; medians (min to max)\n")
    print("| arm | rows/s, warm | ratio | CPU s per million rows | first epoch, s |")
    print("|---|---|---|---|---|")
    base = results[ARMS[0].name]
    for name, figures in results.items():
        ratios = [f.rows_per_second / b.rows_per_second for f, b in zip(figures, base, strict=True)]
        cells = [
            _range([f.rows_per_second for f in figures], ",.0f"),
            _range(ratios, ".2f"),
            _range([f.cpu_per_million for f in figures], ".1f"),
            _range([f.first_seconds for f in figures], ".1f"),
        ]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    print()


def _print_small(results: Results) -> None:
    print(f"\nepochs of {_SMALL_EPOCH_ROWS} rows; medians over the rounds (lowest to highest)\n")
    print("| arm | seconds per epoch, warm | first epoch, s |")
    print("|---|---|---|")
    for name, figures in results.items():
        cells = [
            _range([f.median_seconds for f in figures], ".3f"),
            _range([f.first_seconds for f in figures], ".1f"),
        ]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def _range(values: list[float], form: str) -> str:
    middle = statistics.median(values)
    return f"{middle:{form}} ({min(values):{form}} to {max(values):{form}})"


def _machine() -> str:
    parts = [
        *_processor(),
        f"{os.cpu_count()} cores",
        platform.system(),
        f"Python {platform.python_version()}",
    ]
    packages = [f"{name} {version(name)}" for name in ("pyspark", "confluent-kafka", "pyarrow")]
    return ", ".join([*parts, *packages, "Kafka 4.1.2, one broker on the same machine"])


def _processor() -> Iterator[str]:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            yield line.split(":", 1)[1].strip()
            return


if __name__ == "__main__":
    main()
