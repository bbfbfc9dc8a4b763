"""How a replay begins while an earlier one is at work: at once, from what that one has committed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from airflow_provider_sinks.connectors import generations as under_test
from airflow_provider_sinks.connectors import stored_letters
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.dead_letters.letter import ErrorClass, Letter, Origin
from airflow_provider_sinks.core.dead_letters.replay import Replay, Selection, replay_of
from airflow_provider_sinks.core.decision.facts import Observation
from airflow_provider_sinks.core.lifecycle.replay import ReplayRequest, replaying_sink
from airflow_provider_sinks.core.progress.identity import Identities
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.lifecycle.replays import begin
from tests.facts import DATA, PROGRESS, SOURCE, history, observation, present

BASE = replaying_sink(
    SinkSpec.parse(
        {"name": "orders", "source": "src/raw", "target": "dst/orders-out", "dead_letter": "orders-in"}
    )
)
RUNNING = Replay(sink="orders", topic="raw", selection=Selection(errors=("parse",)), until={0: 90, 1: 90})


def seen(position: int) -> Observation:
    """Return what is seen of a replay that has written a moment ago."""
    known = history(
        identities=Identities(SOURCE, DATA, PROGRESS, SOURCE),
        spec=BASE.with_replay(RUNNING).to_json(),
        at=datetime.now(UTC).isoformat(),
        to={0: position, 1: position},
    )
    return observation(history=known, dead_letter=present(SOURCE))


class Target:
    """Stands for the connector and for what is seen by it; its driver commits until it is fenced."""

    def __init__(self, *_: Any) -> None:
        self.connector = self
        self.done: list[Any] = []
        self.position = 50

    def observe(self) -> Observation:
        self.position += 0 if "fenced" in self.done else 1
        return seen(self.position)

    def open(self, *_: Any) -> bool:
        self.done.append("fenced")
        return True

    def look_closely(self, _: Any, facts: Any) -> Any:
        return facts

    def announce(self, record: Any) -> None:
        self.done.append(replay_of(record.spec))

    def close(self) -> None:
        """Leave nothing open."""


class Letters:
    """One letter that nobody took."""

    def all(self) -> Iterator[Letter]:
        yield Letter((0, 80), 1, "x", ErrorClass.REFUSED, Origin("raw", 0, 1), None, b"v")


@pytest.fixture
def target(monkeypatch: pytest.MonkeyPatch) -> Target:
    @contextmanager
    def letters(*_: Any) -> Iterator[Letters]:
        yield Letters()

    made = Target()
    monkeypatch.setattr(under_test, "SinkObserver", lambda *_: made)
    monkeypatch.setattr(stored_letters, "stored_letters", letters)
    return made


def test_another_selection_takes_over_at_once_from_a_replay_that_is_at_work(target: Target) -> None:
    connections = ResolvedConnections({})
    with under_test.Generations(BASE, connections, "us", None) as generations:
        begun = begin(generations, BASE, connections, ReplayRequest(Selection()))

    assert begun.sink is not None
    replay = begun.sink.replay
    assert replay is not None
    assert target.done == ["fenced", "fenced", replay]
    (took,) = replay.done
    assert took.below == {0: target.position, 1: target.position}, "all that was committed before the fence"


def test_what_is_under_way_is_not_disturbed_by_whoever_asks_for_it_again(target: Target) -> None:
    connections = ResolvedConnections({})
    with under_test.Generations(BASE, connections, "us", None) as generations:
        begun = begin(generations, BASE, connections, ReplayRequest(RUNNING.selection))

    assert begun.sink == BASE.with_replay(RUNNING)
    assert target.done == []
