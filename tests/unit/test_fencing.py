"""Who is fenced before the progress is read that counts: everybody whom the records name by then."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from airflow_provider_sinks.connectors import generations as under_test
from airflow_provider_sinks.connectors.base import Run
from airflow_provider_sinks.connectors.fencing import Fencing
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.decision.facts import Observation
from airflow_provider_sinks.core.errors import UnavailableError
from airflow_provider_sinks.core.lifecycle.steps import Fence
from airflow_provider_sinks.core.progress.record import DRIVER, WriterId
from airflow_provider_sinks.core.spec.sink import SinkSpec
from tests.facts import history, observation

SPEC = SinkSpec.parse({"name": "orders", "source": "src/orders-in", "target": "dst/orders-out"})


class Target:
    """A target whose run in force announces writers in between: each look finds those of the next entry.

    :param named: the newest writers that the records name, look by look; the last ones stay.
    """

    def __init__(self, *named: tuple[WriterId, ...]) -> None:
        self.connector = self
        self._named = list(named)
        self.fenced: set[WriterId] = set()

    def observe(self) -> Observation:
        named = self._named.pop(0) if len(self._named) > 1 else self._named[0]
        return observation(history=history(writers=(DRIVER, *named)))

    def open(self, run: Run, writers: Iterable[WriterId], looked: Observation) -> bool:
        assert run.sink == SPEC.name
        asked = {*writers, *looked.known.writers_ever}
        is_done = asked <= self.fenced
        self.fenced |= asked
        return is_done

    def close(self) -> None:
        """Leave nothing open."""


def test_writers_that_are_announced_behind_the_look_are_fenced_before_the_reading_counts() -> None:
    target: Any = Target(("p0",), ("p0", "p7"))

    seen = Fencing(SPEC, target, target.observe).read_behind(target.observe())

    assert "p7" in target.fenced
    assert "p7" in seen.known.writers_ever


def test_a_start_beside_others_that_go_on_naming_writers_ends() -> None:
    target: Any = Target(*((f"p{number}",) for number in range(10, 19)))

    with pytest.raises(UnavailableError, match='sink "orders" is being started somewhere else'):
        Fencing(SPEC, target, target.observe).read_behind(target.observe())


def test_a_drop_fences_writers_that_are_announced_while_it_fences(monkeypatch: pytest.MonkeyPatch) -> None:
    target: Any = Target(("p0",), ("p0", "p7"))
    monkeypatch.setattr(under_test, "SinkObserver", lambda *_: target)

    with under_test.Generations(SPEC, ResolvedConnections({}), "us", None) as generations:
        generations.act(Fence((DRIVER, "all")))

    assert "p7" in target.fenced
