"""The answers that a refusal offers, and their accept codes.

A code is a digest of the sink and of what was seen, so it fits exactly one situation and not the next one.
Several reasons at once are settled by one answer that names several ways on, such as ``take_over+adopt``.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass

from airflow_provider_sinks.core.decision.effects import Effects
from airflow_provider_sinks.core.decision.facts import Observation, Role
from airflow_provider_sinks.core.decision.positions import (
    cut_partitions,
    positions_of_records,
    read_beyond_end,
)
from airflow_provider_sinks.core.decision.reasons.reason import Refusal
from airflow_provider_sinks.core.decision.start_request import StartRequest
from airflow_provider_sinks.core.decision.way_on import WayOn
from airflow_provider_sinks.core.progress.identity import Identity


@dataclass(frozen=True)
class Offer:
    """One answer that is offered.

    :param code: what to give as ``accept``.
    :param ways: what it stands for.
    :param explanation: what will happen, with numbers.
    """

    code: str
    ways: tuple[WayOn, ...]
    explanation: str

    @property
    def name(self) -> str:
        """The ways on by name, such as ``take_over+adopt``."""
        return "+".join(self.ways)


def offers(refusals: Sequence[Refusal], observation: Observation, request: StartRequest) -> tuple[Offer, ...]:
    """Return every answer that settles all of the refusals, the least drastic first."""
    effects = Effects(observation, request, refusals)
    return tuple(
        Offer(
            code=code_for(ways, refusals, observation, request),
            ways=ways,
            explanation="; ".join(map(effects.of, ways)),
        )
        for ways in _settling(refusals, observation, request)
    )


def code_for(
    ways: Sequence[WayOn], refusals: Sequence[Refusal], observation: Observation, request: StartRequest
) -> str:
    """Return the accept code: the names of the ways on, and a digest of the situation.

    The situation is what is missing or replaced, and the recorded state; nothing else. The next start,
    Airflow and the job that was running see the same one: partitions that are added, a witness that Airflow
    wrote meanwhile, or a checkpoint that only a job can see, are no part of it unless the answer hangs on
    them.
    """
    reasons = [refusal.reason.entry for refusal in refusals]
    by_witness = WayOn.RESUME_FROM_WITNESS in ways or any(reason.by_witness for reason in reasons)
    facts = [
        request.sink,
        request.owner,
        request.start if WayOn.START_OVER in ways else "",
        sorted((refusal.reason.name, refusal.role) for refusal in refusals),
        [(role, one.existence, *_which(one.identity)) for role, one in observation.resources().items()],
        _digest_of_records(observation, any(reason.runs_elsewhere for reason in reasons)),
        _digest_of_witness(request) if by_witness else None,
        _digest_of_checkpoint(observation) if any(reason.by_checkpoint for reason in reasons) else None,
        *([request.declared] if any(reason.by_spec for reason in reasons) else []),
    ]
    digest = hashlib.sha256(json.dumps(facts).encode()).hexdigest()
    return f"{'+'.join(ways)}-{digest[:10]}"


def witness_fits(observation: Observation, request: StartRequest) -> bool:
    """Return whether a new generation may begin at the offsets of the witness.

    It must be ours, the topics must be those it knew, with its offsets in the source, and the query must not
    need a state that is gone.
    """
    witness = request.witness
    if witness is None or witness.owner != request.owner or not witness.offsets or request.stateful:
        return False
    if any(at > observation.source.high.get(partition, at) for partition, at in witness.offsets.items()):
        return False
    known = (witness.identities.source, witness.identities.data)
    now = (observation.source.identity, observation.data.identity)
    return all(new.compared_with(old).is_same for new, old in zip(now, known, strict=True))


def _settling(
    refusals: Sequence[Refusal], observation: Observation, request: StartRequest
) -> list[tuple[WayOn, ...]]:
    """Return the smallest sets of ways of which each settles every reason."""
    open_ways = [_open_ways(refusal, observation, request) for refusal in refusals]
    sets = {frozenset(choice) for choice in itertools.product(*open_ways)}
    smallest = [ways for ways in sets if not any(other < ways for other in sets)]
    order = list(WayOn)
    return sorted(
        (tuple(sorted(ways, key=order.index)) for ways in smallest), key=lambda w: order.index(w[-1])
    )


def _open_ways(refusal: Refusal, observation: Observation, request: StartRequest) -> tuple[WayOn, ...]:
    closed: set[WayOn] = set()
    if not witness_fits(observation, request):
        closed.add(WayOn.RESUME_FROM_WITNESS)
    if positions_of_records(observation, request) is None:
        closed.add(WayOn.RESUME_FROM_RECORDS)
    if request.stateful:
        closed.add(WayOn.SKIP_LOST)  # Spark's state goes on behind its own checkpoint only
    if refusal.role is Role.SOURCE and not _goes_on_in_source(observation, request):
        closed.add(WayOn.ADOPT)
    return tuple(way for way in refusal.reason.entry.ways if way not in closed)


def _goes_on_in_source(observation: Observation, request: StartRequest) -> bool:
    """Return whether the source that is there has every place where the sink would go on."""
    source, recorded = observation.source, observation.recorded.get(Role.SOURCE)
    has_fewer = recorded is not None and source.partitions < recorded.partitions
    is_cut = request.stateful and bool(cut_partitions(observation, request))
    return not (has_fewer or is_cut or read_beyond_end(observation, request))


def _which(identity: Identity) -> tuple[str, str, str]:
    return identity.system, identity.name, identity.id


def _digest_of_records(observation: Observation, runs_elsewhere: bool) -> object:
    """Another owner's driver may be at work: its epochs go on while a person reads the refusal."""
    history = observation.history
    if history is None:
        return None
    newest = history.in_force
    flaws = [(flaw.finding.name, flaw.writer, flaw.offset) for flaw in history.flaws]
    so_far = None if runs_elsewhere else [history.epoch, history.rows_ever, history.dead_ever]
    run = (newest.run, newest.owner) if newest else None
    return [history.generation, so_far, run, flaws]


def _digest_of_witness(request: StartRequest) -> object:
    """Return the rows of the witness alone: it is written while the sink runs, and once more at its end."""
    return (request.witness.generation, request.witness.rows) if request.witness else None


def _digest_of_checkpoint(observation: Observation) -> object:
    """Airflow cannot see the checkpoint; where a refusal is about topics alone, both must have one code."""
    facts = observation.checkpoint
    return [facts.path, facts.committed, facts.planned] if facts else None
