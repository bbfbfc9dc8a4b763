"""What a start reads, and in which order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_sinks.core.progress.checkpoint import CheckpointFacts
from airflow_provider_sinks.core.progress.history import History
from airflow_provider_sinks.core.progress.record import DRIVER
from airflow_provider_sinks.streaming.start import Start
from tests.facts import record


@dataclass(frozen=True)
class Seen:
    """The part of an observation that counts here."""

    batch: int
    checkpoint: CheckpointFacts | None = None

    @property
    def history(self) -> Any:
        return SimpleNamespace(checkpoint="folder", batch=lambda _: self.batch)


def _start(readings: Iterator[Seen], committed: int) -> Start:
    start = Start.__new__(Start)
    vars(start).update(
        _observer=SimpleNamespace(observe=lambda: next(readings)),
        _checkpoint=lambda folder: CheckpointFacts(folder, committed, committed),
    )
    return start


@pytest.mark.parametrize(
    ("batches", "newest"),
    [
        pytest.param([58], 58, id="nobody-runs"),
        pytest.param([57, 58], 58, id="a-driver-that-runs-committed-between-the-readings"),
        pytest.param([57, 57], 57, id="rolled-back"),
    ],
)
def test_records_that_are_older_than_the_checkpoint_are_read_once_more(
    batches: list[int], newest: int
) -> None:
    observed: Any = _start(map(Seen, batches), committed=58).observe()

    assert (observed.batch, observed.checkpoint.committed) == (newest, 58)


@pytest.mark.parametrize(
    ("checkpoint", "named"),
    [
        pytest.param("/old", ("/old", 6, {0: 40, 1: 40}), id="continued: a replay is known by its range"),
        pytest.param("/new", ("/new", -1, {0: 50, 1: 50}), id="renewed: the old one is never named again"),
    ],
)
def test_a_run_announces_the_checkpoint_that_it_uses(checkpoint: str, named: tuple[object, ...]) -> None:
    history = History({DRIVER: record(batch=-1, checkpoint="/old"), "all": record(checkpoint="/old")})
    announced = record(from_={0: 50, 1: 50}, checkpoint=checkpoint, batch=history.batch(checkpoint))

    newest = Start.__new__(Start)._newest(history, announced)

    assert (newest.checkpoint, newest.batch, newest.from_) == named
