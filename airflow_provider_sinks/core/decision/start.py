"""The verdicts that let a sink run: from its records, or in a new generation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from airflow_provider_sinks.core.decision.accept import Offer
from airflow_provider_sinks.core.decision.classify import ResourceState, classify_resource
from airflow_provider_sinks.core.decision.facts import (
    Creation,
    Existence,
    Observation,
    ResourceFacts,
    Role,
)
from airflow_provider_sinks.core.decision.positions import (
    cut_partitions,
    from_what_is_left,
    next_generation,
    positions_of_records,
    resume_positions,
)
from airflow_provider_sinks.core.decision.start_request import StartRequest
from airflow_provider_sinks.core.decision.verdict import Verdict, VerdictKind
from airflow_provider_sinks.core.decision.way_on import ROLLED_BACK, WayOn
from airflow_provider_sinks.core.progress.checkpoint import CheckpointUse, judge_checkpoint
from airflow_provider_sinks.core.progress.history import EARLIEST
from airflow_provider_sinks.core.progress.identity import Identity
from airflow_provider_sinks.core.wording import offsets, summary


def go_on(observation: Observation, request: StartRequest, answer: Offer | None = None) -> Verdict:
    """Return the verdict that lets the sink run: from its records, or in a new generation.

    :param answer: the way on that was accepted, if something was refused.
    """
    accepted = answer.ways if answer else ()
    is_reset = not observation.known or not set(ROLLED_BACK).isdisjoint(accepted)
    verdict = (_reset if is_reset else _resume)(observation, request, accepted)
    warnings = (f'accepted "{answer.code}": {answer.explanation}',) if answer else ()
    return replace(
        verdict,
        actions=missing_outputs(observation, request),
        migration=observation.migration,
        warnings=warnings,
        accepted=accepted,
    )


def _resume(observation: Observation, request: StartRequest, accepted: Sequence[WayOn]) -> Verdict:
    checkpoint, history = observation.checkpoint, observation.known
    use = checkpoint and judge_checkpoint(
        checkpoint, history, stateful=request.stateful, writer_mode=request.writer_mode
    )
    positions = resume_positions(observation, request)
    skips = WayOn.SKIP_LOST in accepted
    begins_anew = skips or cut_partitions(observation, request)
    if skips:
        positions = from_what_is_left(positions, observation.source)
    return Verdict(
        VerdictKind.RESUME,
        f'sink "{request.sink}" resumes after epoch {history.epoch} of generation {history.generation}',
        f"Recorded are {summary(history)}; source offsets {offsets(positions)}.",
        generation=history.generation,
        epoch=history.epoch,
        positions=positions,
        # Spark ignores start offsets where a checkpoint exists.
        continues_checkpoint=use is CheckpointUse.CONTINUE and not begins_anew,
        rows_before=history.rows_ever - history.rows_total,
        dead_before=history.dead_ever - history.dead_total,
    )


def _reset(observation: Observation, request: StartRequest, accepted: Sequence[WayOn]) -> Verdict:
    generation = next_generation(observation, request)
    positions = _begin(observation, request, accepted)
    begin = f"offsets {offsets(positions)}" if positions else request.start
    if WayOn.RESUME_FROM_RECORDS in accepted:  # what others remember beyond them is gone with its rows
        observation = replace(observation, history=observation.known.first_hand())
        request = replace(request, witness=None)
    return Verdict(
        VerdictKind.RESUME if positions else VerdictKind.START,
        f'sink "{request.sink}" starts generation {generation}',
        f'From {begin} of source topic "{request.source}".',
        generation=generation,
        positions=positions,
        rows_before=rows_left(observation, request),
        dead_before=dead_left(observation, request),
    )


def _begin(
    observation: Observation, request: StartRequest, accepted: Sequence[WayOn]
) -> dict[int, int] | None:
    """Return the offsets of a new generation, or nothing where the spec says where it begins."""
    if WayOn.START_OVER in accepted:
        return None
    if WayOn.RESUME_FROM_RECORDS in accepted:
        return positions_of_records(observation, request)
    if WayOn.RESUME_FROM_WITNESS in accepted and request.witness is not None:
        later = dict.fromkeys(range(observation.source.partitions), EARLIEST)
        return {**later, **request.witness.offsets}
    return None


def rows_left(observation: Observation, request: StartRequest) -> int:
    """Count the rows that earlier generations left in the data output that is there."""
    history, witness, output = observation.known, request.witness, observation.data
    recorded = history.rows_ever if _is_still(output, observation.recorded.get(Role.DATA)) else 0
    return max(recorded, witness.rows_ever if witness and _is_still(output, witness.identities.data) else 0)


def dead_left(observation: Observation, request: StartRequest) -> int:
    """Count the dead letters that earlier generations left in the dead-letter output that is there."""
    history, witness, output = observation.known, request.witness, observation.dead_letter
    recorded = history.dead_ever if _is_still(output, observation.recorded.get(Role.DEAD_LETTER)) else 0
    return max(
        recorded, witness.dead_ever if witness and _is_still(output, witness.identities.dead_letter) else 0
    )


def _is_still(output: ResourceFacts | None, recorded: Identity | None) -> bool:
    if output is None or recorded is None:
        return False
    return classify_resource(output, recorded) in (ResourceState.PRESENT, ResourceState.GREW)


def missing_outputs(observation: Observation, request: StartRequest) -> tuple[Creation, ...]:
    """Return how to make what is not there, the progress place first."""
    found = observation.resources()
    return tuple(
        creation.for_source(observation.source)
        for role, creation in request.creations().items()
        if found[role].existence is Existence.MISSING
    )
