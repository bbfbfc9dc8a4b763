"""How long a commit and a look take in a table with 1,000 epochs, beside one with 100.

python -m tests.bench.lake_epochs [--epochs 1000]

Each epoch has a few rows: what is measured is the way of a commit through the metadata of a table, and of the
look that a start and the guard take. Nobody maintains the tables.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.local.processes import unwind_on_signals
from airflow_provider_sinks.testing.played_start import SOURCE, Harness, PlayedStart
from scripts.demo.table import grid
from tests.bench.rounds import machine
from tests.contract.delta_harness import DeltaHarness
from tests.contract.iceberg_harness import IcebergHarness

_ROWS = 3
_LOOKS = 5


def main() -> None:
    """Run the whole benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=1000)
    given = parser.parse_args()
    unwind_on_signals()
    print(machine("Postgres 18 on the same machine"), flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="bench") as name,
        Postgres.start(Path(name) / "postgres") as server,
    ):
        arms: dict[str, Callable[[], Harness]] = {
            "Iceberg": lambda: IcebergHarness(server, Path(name) / "iceberg"),
            "Delta": lambda: DeltaHarness(Path(name) / "delta"),
        }
        lines = [line for arm, make in arms.items() for line in _measured(arm, make(), given.epochs)]
    names = ("table", "epochs", "a commit, s", "a look, s", "a start, s")
    print(grid(names, lines))


def _measured(name: str, harness: Harness, epochs: int) -> Iterator[Sequence[str]]:
    """Give a line for each tenth of the epochs."""
    start = PlayedStart(harness).start()
    tenth, commits = epochs // 10, list[float]()
    for epoch in range(1, epochs + 1):
        with _timed(commits):
            start.epoch(epoch, {0: range((epoch - 1) * _ROWS, epoch * _ROWS)})
        if epoch % tenth == 0 and epoch // tenth in (1, 5, 10):
            looks, starts = list[float](), list[float]()
            for _ in range(_LOOKS):
                with _timed(looks):
                    start.connector.observe(SOURCE)
            with _timed(starts):
                start = PlayedStart(harness).start()
            found = [statistics.median(taken) for taken in (commits[-tenth:], looks, starts)]
            yield name, f"{epoch:,}", *(f"{seconds:.3f}" for seconds in found)


@contextmanager
def _timed(taken: list[float]) -> Iterator[None]:
    begun = time.monotonic()
    yield
    taken.append(time.monotonic() - begun)


if __name__ == "__main__":
    main()
