"""How many writers a process keeps from one epoch to the next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest

from airflow_provider_sinks.connectors.epoch_writer import EpochWriter
from airflow_provider_sinks.streaming import held_writers


class _Closable:
    """What is asked of a writer here."""

    is_closed = False

    def close(self) -> None:
        """Note it."""
        self.is_closed = True


@pytest.fixture(autouse=True)
def _emptied() -> Iterator[None]:
    """Begin and end as a process that has just started."""
    held_writers.forget_all()
    held_writers.allow(held_writers.HELD_MAX)
    yield
    held_writers.forget_all()
    held_writers.allow(held_writers.HELD_MAX)


def _kept(count: int) -> list[_Closable]:
    writers = [_Closable() for _ in range(count)]
    for number, writer in enumerate(writers):
        held_writers.keep(("sink", "run", f"p{number}"), cast("EpochWriter", writer))
    return writers


def test_a_worker_closes_the_one_that_was_idle_for_longest() -> None:
    writers = _kept(17)

    assert [writer.is_closed for writer in writers] == [True] + [False] * 16


def test_a_driver_keeps_as_many_as_its_target_allows() -> None:
    held_writers.allow(64)

    assert not any(writer.is_closed for writer in _kept(64))
