"""The decision: from what was seen of a sink's topics to what its start does. The heart, and pure.

The seed rule holds word for word: *if the progress topic is missing, re-create it and make sure the data
topic exists, because a new sink and a lost progress topic look the same; if the data topic is missing, fail
if and only if the progress topic shows that data was produced before; otherwise re-create the data topic.*

What can be known beyond it is added: other witnesses (Airflow, and the broker's transaction coordinators for
a sink without a record), the ids of topics, who owns the sink. Every judgement is a table over small enums
(:mod:`.table`; :mod:`.classify` turns facts into them): one for the output, asked for the data topic by
its rows and for the dead-letter topic by its dead letters, and short ones for everything else. Not being able
to see something is a word of its own, and stops a start only where the verdict hangs on it.

=========================  ==========================================  ====================================
refused because            ways on that are offered                    otherwise
=========================  ==========================================  ====================================
output lost                continue_without_output, start_over
output replaced            adopt, start_over
source replaced            adopt (unless it shrank), start_over
source lost                                                            make it again, then as source replaced
records removed            skip_lost, start_over
progress lost              resume_from_witness, start_over
progress rolled back       resume_from_witness, start_over
progress emptied           start_over
progress emptied in part   resume_from_witness, start_over
progress replaced          adopt, resume_from_witness, start_over
garbage, contradiction     resume_from_witness, start_over
another owner              take_over
newer format, generation                                               leave it to the newer start
shape of progress topic                                                the command that repairs it
checkpoint ahead           resume_from_witness, start_over
state lost                 start_over
=========================  ==========================================  ====================================

Two judgements of ours beside the design's table: a cleanup policy that may not be read (no
``DescribeConfigs``) is waited for like anything else that is hidden, because progress in a topic that is
not compacted gets lost; and a new sink waits for a source topic that does not exist, because that is not
ours to make.

``skip_lost`` is offered to a plan without state only. ``resume_from_witness`` is offered only where the
witness is ours, the source and the data topic are those it knew, and the plan keeps no state.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from airflow_provider_sinks.core.decision.classify import (
    ResourceSeen,
    WitnessSeen,
    is_foreign,
    memory_seen,
    progress_seen,
    reach_seen,
    records_seen,
    resource_seen,
    shape_seen,
)
from airflow_provider_sinks.core.decision.facts import Existence, Observation, Role, Wanted
from airflow_provider_sinks.core.decision.outcomes import go_on, not_fitting, refuse, wait
from airflow_provider_sinks.core.decision.report import render
from airflow_provider_sinks.core.decision.table import (
    ABOUT_PROGRESS,
    CHECKPOINT_CELLS,
    DECISIONS,
    PLACES,
    REACHES,
    RECORDS,
    SHAPES,
    SOURCES,
    Step,
)
from airflow_provider_sinks.core.decision.verdict import Verdict, VerdictKind
from airflow_provider_sinks.core.decision.ways import Reason, Refusal
from airflow_provider_sinks.core.progress.checkpoint import judge_checkpoint

__all__ = [
    "DECISIONS",
    "Observation",
    "Step",
    "Verdict",
    "VerdictKind",
    "Wanted",
    "decide",
    "judge",
    "render",
]


@dataclass(frozen=True)
class Judgement:
    """One cell of one table, and the topic it is about."""

    role: Role
    cell: Step | Reason


def decide(observation: Observation, wanted: Wanted, accept: str | None = None) -> Verdict:
    """Return what a start does.

    :param accept: a one-time answer to one refusal; it fits that refusal only.
    """
    judgements = list(judge(observation, wanted))
    refusals = [Refusal(j.cell, j.role) for j in judgements if isinstance(j.cell, Reason)]
    waits = [judgement.role for judgement in judgements if judgement.cell is Step.WAIT]
    if not refusals and waits:
        return wait(waits, observation, wanted)
    hidden = [role for role, facts in observation.topics().items() if facts.existence is Existence.UNKNOWN]
    refused = refuse(refusals, {*waits, *hidden}, observation, wanted) if refusals else None
    answer = next((way for way in refused.ways if way.code == accept), None) if refused else None
    if refused and not answer:
        return not_fitting(refused, accept)
    verdict = go_on(observation, wanted, answer)
    notes = [note for judgement in judgements if (note := _note(judgement, observation))]
    if observation.broker is not None and observation.broker.reason:
        notes.append(
            "whether an earlier sink of this name has committed cannot be told: the transaction coordinators "
            f"{observation.broker}"
        )
    if accept and not answer:
        notes.append(f'accept="{accept}" was not needed, nothing is refused: take it away')
    return replace(verdict, warnings=(*verdict.warnings, *notes))


def judge(observation: Observation, wanted: Wanted) -> Iterator[Judgement]:
    """Ask every table. What no way on settles stands alone: nothing else can be told before it is mended."""
    shape = SHAPES[shape_seen(observation.progress)]
    records = RECORDS[records_seen(observation.history, wanted)]
    if isinstance(shape, Reason):
        yield Judgement(Role.PROGRESS, shape)
    elif records in (Reason.NEWER_FORMAT, Reason.NEWER_GENERATION):
        yield Judgement(Role.PROGRESS, records)
    else:
        yield Judgement(Role.PROGRESS, shape)
        yield from _judge_progress(records, observation, wanted)
        yield from _judge_topics(observation, wanted)


def _judge_progress(records: Step | Reason, observation: Observation, wanted: Wanted) -> Iterator[Judgement]:
    if is_foreign(observation.history, wanted):
        yield Judgement(Role.PROGRESS, Reason.OTHER_OWNER)
    if records is not Reason.OTHER_OWNER:
        yield Judgement(Role.PROGRESS, records)
    place = resource_seen(observation.progress, observation.recorded.get(Role.PROGRESS))
    yield Judgement(Role.PROGRESS, PLACES[place])
    if observation.checkpoint is not None and observation.history:
        use = judge_checkpoint(observation.checkpoint, observation.history, wanted.stateful)
        yield Judgement(Role.PROGRESS, CHECKPOINT_CELLS[use])


def _judge_topics(observation: Observation, wanted: Wanted) -> Iterator[Judgement]:
    recorded, history = observation.recorded, observation.known
    source = resource_seen(observation.source, recorded.get(Role.SOURCE))
    yield Judgement(Role.SOURCE, SOURCES[Role.SOURCE in recorded, source])
    if Role.SOURCE in recorded and source in (ResourceSeen.PRESENT, ResourceSeen.GREW):
        yield Judgement(Role.SOURCE, REACHES[reach_seen(observation, wanted)])
    progress = progress_seen(observation, wanted, history.rows_ever)
    data = resource_seen(observation.data, recorded.get(Role.DATA))
    cell = DECISIONS[progress, data, memory_seen(observation, wanted)]
    yield Judgement(Role.PROGRESS if cell in ABOUT_PROGRESS else Role.DATA, cell)
    if observation.dead_letter is not None and cell not in ABOUT_PROGRESS:
        progress = progress_seen(observation, wanted, history.dead_ever)
        dead = resource_seen(observation.dead_letter, recorded.get(Role.DEAD_LETTER))
        yield Judgement(Role.DEAD_LETTER, DECISIONS[progress, dead, WitnessSeen.SILENT])


def _note(judgement: Judgement, observation: Observation) -> str:
    """Return what a person should know about a step that is taken without asking."""
    facts = observation.topics()[judgement.role]
    topic = f'{judgement.role} "{facts.name}"'
    if judgement.cell is Step.TAKE and facts.records:
        return (
            f"{topic} holds up to {facts.records:,} records already; this sink has no record of writing them"
        )
    if judgement.cell is Step.ADOPT:
        return f"{topic} is another one than recorded; nothing was written to the old one, so it is taken"
    if judgement.cell is Step.GREW:
        before = observation.recorded[judgement.role].partitions
        return (
            f"{topic} grew from {before} to {facts.partitions} partitions: keys move, their order ends there"
        )
    return ""
