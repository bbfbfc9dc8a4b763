"""Rewind: let a sink read a part of its source again, by naming offsets, a time or an epoch. Pure.

A rewind goes back. To a time or an epoch it never leaves a record unread: a source partition that stands
before that place stays where it is. Offsets that lie ahead are taken only where the caller says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from airflow_provider_sinks.core.decision.decide import decide
from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.decision.positions import next_generation
from airflow_provider_sinks.core.decision.reasons.source import OF_REACH
from airflow_provider_sinks.core.decision.reasons.spec import SpecReason
from airflow_provider_sinks.core.errors import ConfigurationError, Problem, RefusedError
from airflow_provider_sinks.core.lifecycle.new_generation import (
    Reset,
    Situation,
    demand_seen,
    demand_settled,
    generation_steps,
)
from airflow_provider_sinks.core.lifecycle.steps import Plan
from airflow_provider_sinks.core.progress.history import EARLIEST
from airflow_provider_sinks.core.progress.past_epochs import PastEpoch
from airflow_provider_sinks.core.progress.source_range import source_problems
from airflow_provider_sinks.core.wording import count, identity, offsets

LATEST = -1
"""Kafka's number for the end of a partition: where a reader of committed records ends."""
_SHOWN_EPOCHS = 12


@dataclass(frozen=True)
class AtOffsets:
    """Go on at these offsets; partitions that are not named stay where they are.

    :param offsets: by source partition; :data:`EARLIEST` and :data:`LATEST` stand for the ends.
    :param skip: an offset may lie ahead, so that records between are never read.
    """

    offsets: Mapping[int, int]
    skip: bool = False


@dataclass(frozen=True)
class AtTime:
    """Go back to the first record of each source partition that is not older than a time.

    :param time: as the user wrote it, for messages.
    :param found: by source partition; a partition without such a record is left out, and stays.
    """

    time: str
    found: Mapping[int, int]


@dataclass(frozen=True)
class AtEpoch:
    """Go back to where an epoch began: it is the first that is written again.

    :param generation: of that epoch; ``None`` for the newest.
    :param known: the epochs whose begin is known.
    """

    epoch: int
    known: tuple[PastEpoch, ...]
    generation: int | None = None


_SETTLED = OF_REACH | frozenset(SpecReason)
"""What is settled by a new generation at places that a person has named."""

RewindTo: TypeAlias = AtOffsets | AtTime | AtEpoch


def plan_rewind(situation: Situation, to: RewindTo) -> Plan:
    """Return the steps that let the sink read a part of its source again; none if it stands there.

    :raises UnavailableError: something could not be seen.
    :raises RefusedError: what is seen must be mended first.
    :raises ConfigurationError: the place is not one to go back to; with all problems.
    """
    sink, observation = situation.spec.name, situation.observation
    verdict = decide(observation, situation.request)
    demand_settled(verdict, settles=lambda refusal: refusal.reason in _SETTLED)
    demand_seen(verdict, situation)
    if not situation.history:
        raise ConfigurationError(
            f'sink "{sink}" has no progress to rewind',
            hint="It starts where its spec says: source.kafka.start.",
        )
    before = _current(situation)
    after = _positions(to, before, situation)
    if after == before:
        return Plan(sink, f'sink "{sink}" goes on at source offsets {offsets(before)} anyway')
    number = next_generation(observation, situation.request)
    what = f'sink "{sink}" begins generation {number} at source offsets {offsets(after)}'
    steps = generation_steps(situation, number, after, Reset())
    return Plan(sink, what, steps, tuple(_again(before, after, situation)))


def _current(situation: Situation) -> dict[int, int]:
    """Return where each source partition goes on now."""
    source = situation.observation.source
    positions = situation.history.resume_positions(source.partitions)
    return {p: source.low[p] if at == EARLIEST else at for p, at in positions.items()}


def _positions(to: RewindTo, before: Mapping[int, int], situation: Situation) -> dict[int, int]:
    if isinstance(to, AtOffsets):
        after = {**before, **_named(to, before, situation)}
    else:
        goals = to.found if isinstance(to, AtTime) else _begin(to, situation)
        after = {partition: min(at, goals.get(partition, at)) for partition, at in before.items()}
    if problems := list(source_problems(after, situation.observation.source, "offsets")):
        raise ConfigurationError(
            f'sink "{situation.spec.name}" cannot go on everywhere',
            problems,
            "Name an offset for each of these partitions; skip=True leaves unread what is gone.",
        )
    return after


def _named(to: AtOffsets, before: Mapping[int, int], situation: Situation) -> dict[int, int]:
    source = situation.observation.source
    ends: dict[int, Mapping[int, int]] = {EARLIEST: source.low, LATEST: source.stable}
    named = {p: ends[at].get(p, at) if at in ends else at for p, at in to.offsets.items()}
    problems = list(source_problems(named, source, "offsets"))
    ahead = {p: at for p, at in named.items() if at > before.get(p, at)}
    if not problems and not to.skip:
        problems = [
            Problem(f"offsets.{p}", f"{at} lies ahead of {before[p]}, where the sink stands", "skip=True")
            for p, at in ahead.items()
        ]
    if problems:
        raise ConfigurationError(f'sink "{situation.spec.name}" cannot go to these offsets', problems)
    return named


def _begin(to: AtEpoch, situation: Situation) -> Mapping[int, int]:
    """Return where an epoch began, in the source topic that is there."""
    source, generation = situation.observation.source, to.generation or situation.history.generation
    found = next((e for e in to.known if (e.generation, e.epoch) == (generation, to.epoch)), None)
    name = f"epoch {to.epoch} of generation {generation}"
    if found is None:
        problem = Problem("epoch", f"{name} is not known any more, or not yet", _known(to))
        raise ConfigurationError(f'sink "{situation.spec.name}" cannot go back to {name}', [problem])
    if not source.identity.compared_with(found.source).is_same:
        raise RefusedError(
            f'{name} of sink "{situation.spec.name}" was read from another topic',
            f"Its offsets belong to {identity(found.source)}; now there is {source}.",
            "Name offsets or a time instead.",
        )
    later = {p: low for p, low in source.low.items() if p not in found.begin}  # added after that epoch
    gone = [
        Problem(f"partition {p}", f"it began at offset {at}; the source begins at {source.low[p]}")
        for p, at in found.begin.items()
        if at < source.low.get(p, at)
    ]
    if gone:
        raise ConfigurationError(f"the source does not hold {name} any more", gone, "Name offsets or a time.")
    return {**later, **found.begin}


def _known(to: AtEpoch) -> str:
    """Name the epochs that can be gone back to, those near the one that was asked for."""
    near = sorted(to.known, key=lambda e: (e.generation == to.generation, abs(e.epoch - to.epoch)))
    shown = sorted((e.generation, e.epoch) for e in near[:_SHOWN_EPOCHS])
    if not shown:
        return "none is known: name offsets or a time"
    return "known: " + ", ".join(f"{g}/{e}" for g, e in shown) + " (generation/epoch)"


def _again(before: Mapping[int, int], after: Mapping[int, int], situation: Situation) -> Iterator[str]:
    again = sum(max(0, at - after[p]) for p, at in before.items())
    skipped = sum(max(0, after[p] - at) for p, at in before.items())
    if again:
        yield (
            f"up to {count(again, 'source record')} are read again; what they led to stays in "
            f"{situation.observation.data.title(Role.DATA)} and is written once more"
        )
    if skipped:
        yield f"up to {count(skipped, 'source record')} are skipped and never read"
    if situation.spec.shape.stateful:
        yield "the query keeps state, and begins without any: what began before these offsets is incomplete"
