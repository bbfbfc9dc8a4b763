"""How long a commit and a look take in a table with 1,000 epochs, beside one with 100.

python -m tests.bench.lake_epochs [--epochs 1000]

Each epoch has a few rows: what is measured is the way of a commit through the metadata of a table, and of the
look that a start and the guard take. Nobody maintains the tables, but for one of Iceberg whose snapshots are
expired every 100 epochs.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
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
_KEPT = 10


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
        iceberg = IcebergHarness(server, Path(name) / "iceberg")
        maintained = IcebergHarness(server, Path(name) / "maintained")
        arms = (
            ("Iceberg", iceberg, _leave),
            ("Iceberg, expired every 100", maintained, partial(_expire, maintained)),
            ("Delta", DeltaHarness(Path(name) / "delta"), _leave),
        )
        lines = [
            line
            for arm, harness, maintain in arms
            for line in _measured(arm, harness, maintain, given.epochs)
        ]
    print(grid(("table", "epochs", "a commit, ms", "a look, ms", "a start, ms"), lines))


def _measured(
    name: str, harness: Harness, maintain: Callable[[], None], epochs: int
) -> Iterator[Sequence[str | int]]:
    """Give a line at each of some numbers of epochs: the last 100 commits, some looks, and a start."""
    start, commits = PlayedStart(harness).start(), list[int]()
    for epoch in range(1, epochs + 1):
        start.epoch(epoch, {0: range((epoch - 1) * _ROWS, epoch * _ROWS)})
        commits.append(int(start.connector.metrics()["commit_ms"]))
        if epoch in (100, 300, 1000):
            looks = [_milliseconds(partial(start.connector.observe, SOURCE)) for _ in range(_LOOKS)]
            start = PlayedStart(harness)
            restart = _milliseconds(start.start)
            medians = (int(statistics.median(found)) for found in (commits[-100:], looks))
            yield (name, epoch, *medians, restart)
        if epoch % 100 == 0:
            maintain()


def _milliseconds(act: Callable[[], object]) -> int:
    begun = time.monotonic()
    act()
    return int((time.monotonic() - begun) * 1000)


def _leave() -> None:
    """Do nothing, as most people do."""


def _expire(harness: IcebergHarness) -> None:
    """Expire all snapshots but the newest."""
    table = harness.table()
    found = sorted(table.metadata.snapshots, key=lambda one: one.sequence_number or 0)
    table.maintenance.expire_snapshots().by_ids([one.snapshot_id for one in found[:-_KEPT]]).commit()


if __name__ == "__main__":
    main()
