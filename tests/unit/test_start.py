"""What a start reads, and in which order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_sinks.connectors.kafka.creation import CreateTopic
from airflow_provider_sinks.core.decision.facts import Observation, Role
from airflow_provider_sinks.core.errors import UnavailableError
from airflow_provider_sinks.core.progress.checkpoint import CheckpointFacts
from airflow_provider_sinks.core.progress.history import History
from airflow_provider_sinks.core.progress.record import DRIVER
from airflow_provider_sinks.streaming.start import Start
from tests.facts import DATA, DEAD_LETTER, PROGRESS, SOURCE, missing, observation, present, record


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


def _ensured(first: Observation, then: Observation) -> Observation:
    start = Start.__new__(Start)
    vars(start).update(
        _observer=SimpleNamespace(connector=SimpleNamespace(ensure=lambda _: None), observe=lambda: then),
        _checkpoint=lambda folder: CheckpointFacts(folder, -1, -1),
    )
    verdict: Any = SimpleNamespace(actions=(CreateTopic(Role.DATA, DATA.name, 2, 1),))
    return start._ensure(verdict, first)


@pytest.mark.parametrize("role", [Role.SOURCE, Role.DEAD_LETTER, Role.PROGRESS])
def test_what_is_made_anew_while_an_output_is_made_is_not_announced(role: Role) -> None:
    there = {"source": present(SOURCE), "dead_letter": present(DEAD_LETTER), "progress": present(PROGRESS)}
    name = role.name.lower()
    then = {**there, name: replace(there[name], id="another")}

    with pytest.raises(UnavailableError, match=f"{role} .* was replaced while the sink was being") as raised:
        _ensured(observation(data=missing(DATA), **there), observation(**then))

    assert str(raised.value.detail).endswith("and is another (" + f"{there[name].partitions}).")


def test_what_a_start_has_made_or_what_grew_meanwhile_is_announced() -> None:
    grown = present(replace(SOURCE, partitions=3))

    seen = _ensured(observation(data=missing(DATA)), observation(source=grown))

    assert seen.identities().source.partitions == 3
    assert seen.identities().data == DATA
