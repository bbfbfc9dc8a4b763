"""The one loop that waits by looking again."""

from __future__ import annotations

import time

import pytest

from airflow_provider_sinks.clients.wait import holds_within, look_until


@pytest.mark.parametrize(
    ("answers", "seconds", "seen"),
    [
        pytest.param([3], 0, 3, id="enough at the first look"),
        pytest.param([0, 1, 3], 60, 3, id="enough at a later look"),
        pytest.param([0], 0, 0, id="no time: one look, and what it saw"),
        pytest.param([-1], -5, -1, id="the time was over before"),
    ],
)
def test_it_looks_until_it_has_seen_enough(answers: list[int], seconds: float, seen: int) -> None:
    left = iter(answers)

    assert look_until(lambda: next(left), lambda found: found > 1, seconds, pause_seconds=0.001) == seen
    assert list(left) == []


def test_it_looks_once_more_when_the_time_is_over_and_never_sleeps_beyond_it() -> None:
    looked: list[float] = []
    began = time.monotonic()

    def look() -> bool:
        looked.append(time.monotonic())
        return False

    assert not holds_within(look, 0.2, pause_seconds=60)

    assert len(looked) == 2
    assert 0.2 <= looked[1] - began < 30
