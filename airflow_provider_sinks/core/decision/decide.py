"""The decision: from what was seen of a sink to what its start does. The heart, and pure.

The seed rule holds word for word: *if the progress topic is missing, re-create it and make sure the data
topic exists, because a new sink and a lost progress topic look the same; if the data topic is missing, fail
if and only if the progress topic shows that data was produced before; otherwise re-create the data topic.*

What can be known beyond it is added: other witnesses (Airflow, and what the target itself remembers of
a sink without a record), the ids of resources, who owns the sink. Every judgement is a table over small enums
(:mod:`.classify` turns facts into them): one for the output (:mod:`.table`), asked for the data by its rows
and for the dead letters by theirs, and short ones for everything else, which stand with the reasons to refuse
that they lead to (:mod:`.reasons`). Not being able to see something is a word of its own, and stops a start
only where the verdict hangs on it.

Three judgements of ours beside the design's table: what matters of a progress place and may not be read, such
as whether its topic is compacted, is waited for like anything else that is hidden, because progress would get
lost; an output that is there and cannot take the rows is refused whatever else is true of it, because every
way on would lead back to it; and a new sink waits for a source that does not exist, because that is not ours
to make.

``skip_lost`` is offered to a query without state only. ``resume_from_records`` is offered only where rows and
records are in one store, such as a database, where source and data output are the recorded ones, and the
query keeps no state. ``resume_from_witness`` is offered only where the witness is ours, the source and the
data output are those it knew, the source has its offsets, and the query keeps no state.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from airflow_provider_sinks.core.decision.classify import (
    ResourceState,
    WitnessState,
    classify_fitness,
    classify_memory,
    classify_progress,
    classify_resource,
)
from airflow_provider_sinks.core.decision.facts import Existence, Observation, Role
from airflow_provider_sinks.core.decision.reasons import output, progress_place
from airflow_provider_sinks.core.decision.reasons.checkpoint import CHECKPOINT_USES
from airflow_provider_sinks.core.decision.reasons.owner import OWNERS, is_foreign
from airflow_provider_sinks.core.decision.reasons.progress import ProgressReason
from airflow_provider_sinks.core.decision.reasons.progress_place import PLACES
from airflow_provider_sinks.core.decision.reasons.reason import Reason, Refusal
from airflow_provider_sinks.core.decision.reasons.records import RECORDS, RecordsReason, classify_records
from airflow_provider_sinks.core.decision.reasons.source import REACHES, SOURCES, classify_reach
from airflow_provider_sinks.core.decision.reasons.spec import SPECS, classify_spec, redefinition_of
from airflow_provider_sinks.core.decision.ruling import Ruling
from airflow_provider_sinks.core.decision.start import go_on
from airflow_provider_sinks.core.decision.start_request import StartRequest
from airflow_provider_sinks.core.decision.stop import not_fitting, refuse, wait
from airflow_provider_sinks.core.decision.table import DECISIONS
from airflow_provider_sinks.core.decision.verdict import Verdict
from airflow_provider_sinks.core.progress.checkpoint import judge_checkpoint


@dataclass(frozen=True)
class Judgement:
    """One cell of one table, and what it is about."""

    role: Role
    cell: Ruling | Reason


def decide(observation: Observation, request: StartRequest, accept: str | None = None) -> Verdict:
    """Return what a start does.

    :param accept: a one-time answer to one refusal; it fits that refusal only.
    """
    judgements = list(judge(observation, request))
    refusals = [Refusal(j.cell, j.role) for j in judgements if isinstance(j.cell, Reason)]
    waits = [judgement.role for judgement in judgements if judgement.cell is Ruling.WAIT]
    if not refusals and waits:
        return wait(waits, observation, request)
    hidden = [role for role, facts in observation.resources().items() if facts.existence is Existence.UNKNOWN]
    refused = refuse(refusals, {*waits, *hidden}, observation, request) if refusals else None
    answer = next((o for o in refused.offers if o.code == accept), None) if refused else None
    redefined = redefinition_of(observation, request)
    if refused and not answer:
        return replace(not_fitting(refused, accept), redefinition=redefined)
    verdict = replace(go_on(observation, request, answer), redefinition=redefined)
    notes = [note for judgement in judgements if (note := _note(judgement, observation))]
    memory = observation.memory
    if memory is not None and memory.reason:
        notes.append(
            f"whether an earlier sink of this name has committed cannot be told: the {memory.who}s {memory}"
        )
    if accept and not answer:
        notes.append(f'accept="{accept}" was not needed, nothing is refused: take it away')
    return replace(verdict, warnings=(*verdict.warnings, *notes))


def judge(observation: Observation, request: StartRequest) -> Iterator[Judgement]:
    """Ask every table. What no way on settles stands alone: nothing else can be told before it is mended."""
    fitness = progress_place.FITNESSES[classify_fitness(observation.progress)]
    records = RECORDS[classify_records(observation.history, request)]
    if isinstance(fitness, Reason):
        yield Judgement(Role.PROGRESS, fitness)
    elif records in (RecordsReason.NEWER_FORMAT, RecordsReason.NEWER_GENERATION):
        yield Judgement(Role.PROGRESS, records)
    else:
        yield Judgement(Role.PROGRESS, fitness)
        yield Judgement(Role.PROGRESS, OWNERS[is_foreign(observation.history, request)])
        yield Judgement(Role.PROGRESS, records)
        yield Judgement(Role.PROGRESS, SPECS[classify_spec(observation, request)])
        yield from _judge_progress(observation, request)
        yield from _judge_source(observation, request)
        yield from _judge_outputs(observation, request)
        yield from _judge_fitness(observation)


def _judge_progress(observation: Observation, request: StartRequest) -> Iterator[Judgement]:
    place = classify_resource(observation.progress, observation.recorded.get(Role.PROGRESS))
    yield Judgement(Role.PROGRESS, PLACES[place])
    if observation.checkpoint is not None and observation.history:
        use = judge_checkpoint(
            observation.checkpoint,
            observation.history,
            stateful=request.stateful,
            writer_mode=request.writer_mode,
        )
        yield Judgement(Role.PROGRESS, CHECKPOINT_USES[use])


def _judge_source(observation: Observation, request: StartRequest) -> Iterator[Judgement]:
    recorded = observation.recorded.get(Role.SOURCE)
    source = classify_resource(observation.source, recorded)
    yield Judgement(Role.SOURCE, SOURCES[recorded is not None, source])
    if recorded and source in (ResourceState.PRESENT, ResourceState.GREW):
        yield Judgement(Role.SOURCE, REACHES[classify_reach(observation, request)])


def _judge_outputs(observation: Observation, request: StartRequest) -> Iterator[Judgement]:
    recorded, history = observation.recorded, observation.known
    progress = classify_progress(observation, request, history.rows_ever)
    data = classify_resource(observation.data, recorded.get(Role.DATA))
    cell = DECISIONS[progress, data, classify_memory(observation, request)]
    is_about_progress = isinstance(cell, ProgressReason)
    yield Judgement(Role.PROGRESS if is_about_progress else Role.DATA, cell)
    if observation.dead_letter is not None and not is_about_progress:
        progress = classify_progress(observation, request, history.dead_ever)
        dead = classify_resource(observation.dead_letter, recorded.get(Role.DEAD_LETTER))
        yield Judgement(Role.DEAD_LETTER, DECISIONS[progress, dead, WitnessState.SILENT])


def _judge_fitness(observation: Observation) -> Iterator[Judgement]:
    """Ask whether rows fit, whatever else is wrong: a way on into an output that is unfit would lead back."""
    for role in (Role.DATA, Role.DEAD_LETTER):
        if (facts := observation.resources().get(role)) is not None:
            yield Judgement(role, output.FITNESSES[classify_fitness(facts)])


def _note(judgement: Judgement, observation: Observation) -> str:
    """Return what a person should know about a ruling that is followed without asking."""
    facts = observation.resources()[judgement.role]
    title = facts.title(judgement.role)
    if judgement.cell is Ruling.TAKE and not facts.is_empty:
        return f"{title} holds {facts.contents} already; this sink has no record of writing them"
    if judgement.cell is Ruling.ADOPT:
        return f"{title} is another one than recorded; nothing was written to the old one, so it is taken"
    if judgement.cell is Ruling.GREW:
        before = observation.recorded[judgement.role].partitions
        return (
            f"{title} grew from {before} to {facts.partitions} partitions: keys move, their order ends there"
        )
    return ""
