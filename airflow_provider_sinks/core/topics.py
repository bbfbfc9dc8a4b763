"""The decision: from what was seen of a sink's topics to what its start does. The heart, and pure.

The seed rule holds word for word: *if the progress topic is missing, re-create it and make sure the data
topic exists, because a new sink and a lost progress topic look the same; if the data topic is missing, fail
if and only if the progress topic shows that data was produced before; otherwise re-create the data topic.*

What can be known beyond it is added: another witness, the ids of topics, who owns the sink. Every judgement
is a table over small enums (:mod:`.seen` turns facts into them): one for the output, asked for the data
topic by its rows and for the dead-letter topic by its dead letters, and short ones for everything else. Not
being able to see something is a word of its own, and stops a start only where the verdict hangs on it.

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

import enum
from collections.abc import Iterator
from dataclasses import dataclass, replace

from airflow_provider_sinks.core.checkpoint import CheckpointUse, judge_checkpoint
from airflow_provider_sinks.core.observation import Existence, Observation, Role, Wanted
from airflow_provider_sinks.core.outcomes import go_on, not_fitting, refuse, wait
from airflow_provider_sinks.core.report import render
from airflow_provider_sinks.core.seen import (
    ProgressSeen,
    ReachSeen,
    RecordsSeen,
    ShapeSeen,
    TopicSeen,
    WitnessSeen,
    is_foreign,
    progress_seen,
    reach_seen,
    records_seen,
    shape_seen,
    topic_seen,
    witness_seen,
)
from airflow_provider_sinks.core.verdict import Verdict, VerdictKind
from airflow_provider_sinks.core.ways import Reason, Refusal


class Step(enum.Enum):
    """What a cell of a table lets a start do."""

    WAIT = "wait until it can be seen"
    CREATE = "make the topic, go on"
    TAKE = "go on with a topic whose records, if any, nobody remembers writing"
    ADOPT = "go on with another topic; nothing was written to the old one"
    GO_ON = "go on"
    GREW = "go on; keys move, because there are more partitions"


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

P, T, W = ProgressSeen, TopicSeen, WitnessSeen

DECISIONS: dict[tuple[ProgressSeen, TopicSeen, WitnessSeen], Step | Reason] = {
    # progress could not be read: nothing can be decided
    (P.UNKNOWN, T.UNKNOWN, W.SILENT): Step.WAIT,
    (P.UNKNOWN, T.MISSING, W.SILENT): Step.WAIT,
    (P.UNKNOWN, T.PRESENT, W.SILENT): Step.WAIT,
    (P.UNKNOWN, T.GREW, W.SILENT): Step.WAIT,
    (P.UNKNOWN, T.REPLACED, W.SILENT): Step.WAIT,
    (P.UNKNOWN, T.UNKNOWN, W.AHEAD): Step.WAIT,
    (P.UNKNOWN, T.MISSING, W.AHEAD): Step.WAIT,
    (P.UNKNOWN, T.PRESENT, W.AHEAD): Step.WAIT,
    (P.UNKNOWN, T.GREW, W.AHEAD): Step.WAIT,
    (P.UNKNOWN, T.REPLACED, W.AHEAD): Step.WAIT,
    # missing, or no record of this sink: a new sink and a lost progress topic look the same
    (P.NONE, T.UNKNOWN, W.SILENT): Step.WAIT,
    (P.NONE, T.MISSING, W.SILENT): Step.CREATE,
    (P.NONE, T.PRESENT, W.SILENT): Step.TAKE,
    (P.NONE, T.GREW, W.SILENT): Step.TAKE,
    (P.NONE, T.REPLACED, W.SILENT): Step.TAKE,
    # ... unless Airflow remembers that rows were written
    (P.NONE, T.UNKNOWN, W.AHEAD): Reason.PROGRESS_LOST,
    (P.NONE, T.MISSING, W.AHEAD): Reason.PROGRESS_LOST,
    (P.NONE, T.PRESENT, W.AHEAD): Reason.PROGRESS_LOST,
    (P.NONE, T.GREW, W.AHEAD): Reason.PROGRESS_LOST,
    (P.NONE, T.REPLACED, W.AHEAD): Reason.PROGRESS_LOST,
    # something was here
    (P.EMPTIED, T.UNKNOWN, W.SILENT): Reason.PROGRESS_EMPTIED,
    (P.EMPTIED, T.MISSING, W.SILENT): Reason.PROGRESS_EMPTIED,
    (P.EMPTIED, T.PRESENT, W.SILENT): Reason.PROGRESS_EMPTIED,
    (P.EMPTIED, T.GREW, W.SILENT): Reason.PROGRESS_EMPTIED,
    (P.EMPTIED, T.REPLACED, W.SILENT): Reason.PROGRESS_EMPTIED,
    (P.EMPTIED, T.UNKNOWN, W.AHEAD): Reason.PROGRESS_LOST,
    (P.EMPTIED, T.MISSING, W.AHEAD): Reason.PROGRESS_LOST,
    (P.EMPTIED, T.PRESENT, W.AHEAD): Reason.PROGRESS_LOST,
    (P.EMPTIED, T.GREW, W.AHEAD): Reason.PROGRESS_LOST,
    (P.EMPTIED, T.REPLACED, W.AHEAD): Reason.PROGRESS_LOST,
    # a record, nothing written: the topic may come and go
    (P.UNWRITTEN, T.UNKNOWN, W.SILENT): Step.WAIT,
    (P.UNWRITTEN, T.MISSING, W.SILENT): Step.CREATE,
    (P.UNWRITTEN, T.PRESENT, W.SILENT): Step.GO_ON,
    (P.UNWRITTEN, T.GREW, W.SILENT): Step.GREW,
    (P.UNWRITTEN, T.REPLACED, W.SILENT): Step.ADOPT,
    (P.UNWRITTEN, T.UNKNOWN, W.AHEAD): Reason.PROGRESS_ROLLED_BACK,
    (P.UNWRITTEN, T.MISSING, W.AHEAD): Reason.PROGRESS_ROLLED_BACK,
    (P.UNWRITTEN, T.PRESENT, W.AHEAD): Reason.PROGRESS_ROLLED_BACK,
    (P.UNWRITTEN, T.GREW, W.AHEAD): Reason.PROGRESS_ROLLED_BACK,
    (P.UNWRITTEN, T.REPLACED, W.AHEAD): Reason.PROGRESS_ROLLED_BACK,
    # a record, something written: the topic must be the one it was written to
    (P.WRITTEN, T.UNKNOWN, W.SILENT): Step.WAIT,
    (P.WRITTEN, T.MISSING, W.SILENT): Reason.OUTPUT_LOST,
    (P.WRITTEN, T.PRESENT, W.SILENT): Step.GO_ON,
    (P.WRITTEN, T.GREW, W.SILENT): Step.GREW,
    (P.WRITTEN, T.REPLACED, W.SILENT): Reason.OUTPUT_REPLACED,
    (P.WRITTEN, T.UNKNOWN, W.AHEAD): Reason.PROGRESS_ROLLED_BACK,
    (P.WRITTEN, T.MISSING, W.AHEAD): Reason.PROGRESS_ROLLED_BACK,
    (P.WRITTEN, T.PRESENT, W.AHEAD): Reason.PROGRESS_ROLLED_BACK,
    (P.WRITTEN, T.GREW, W.AHEAD): Reason.PROGRESS_ROLLED_BACK,
    (P.WRITTEN, T.REPLACED, W.AHEAD): Reason.PROGRESS_ROLLED_BACK,
}
"""What to do about an output: the data topic, and the dead-letter topic in its own right."""

SOURCES: dict[tuple[bool, TopicSeen], Step | Reason] = {
    # is a source recorded?
    (False, T.UNKNOWN): Step.WAIT,
    (False, T.MISSING): Step.WAIT,
    (False, T.PRESENT): Step.GO_ON,
    (False, T.GREW): Step.GO_ON,
    (False, T.REPLACED): Step.GO_ON,
    (True, T.UNKNOWN): Step.WAIT,
    (True, T.MISSING): Reason.SOURCE_LOST,
    (True, T.PRESENT): Step.GO_ON,
    (True, T.GREW): Step.GO_ON,
    (True, T.REPLACED): Reason.SOURCE_REPLACED,
}
"""What to do about the source. A missing one is not ours to make: a new sink waits for it."""

REACHES: dict[ReachSeen, Step | Reason] = {
    ReachSeen.FITS: Step.GO_ON,
    ReachSeen.REMOVED: Reason.RECORDS_REMOVED,
}
"""What to do about the records that the source still holds, if it is the recorded one."""

RECORDS: dict[RecordsSeen, Step | Reason] = {
    RecordsSeen.OURS: Step.GO_ON,
    RecordsSeen.OTHER_OWNER: Reason.OTHER_OWNER,
    RecordsSeen.NEWER_FORMAT: Reason.NEWER_FORMAT,
    RecordsSeen.NEWER_GENERATION: Reason.NEWER_GENERATION,
    RecordsSeen.GARBAGE: Reason.GARBAGE,
    RecordsSeen.BACKWARDS: Reason.BACKWARDS,
}
"""What to do about the records as such."""

SHAPES: dict[ShapeSeen, Step | Reason] = {
    ShapeSeen.FITS: Step.GO_ON,
    ShapeSeen.UNKNOWN: Step.WAIT,
    ShapeSeen.PARTITIONS: Reason.TOO_MANY_PARTITIONS,
    ShapeSeen.POLICY: Reason.NOT_COMPACTED,
}
"""What to do about the way a progress topic is made."""

PLACES: dict[TopicSeen, Step | Reason] = {
    T.UNKNOWN: Step.WAIT,
    T.MISSING: Step.GO_ON,
    T.PRESENT: Step.GO_ON,
    T.GREW: Step.GO_ON,
    T.REPLACED: Reason.PROGRESS_REPLACED,
}
"""What to do about the progress topic that records stand in, compared with the one they were written to."""


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
    place = topic_seen(observation.progress, observation.recorded.get(Role.PROGRESS))
    yield Judgement(Role.PROGRESS, PLACES[place])
    if observation.checkpoint is not None and observation.history:
        use = judge_checkpoint(observation.checkpoint, observation.history, wanted.stateful)
        yield Judgement(Role.PROGRESS, _CHECKPOINT_CELLS[use])


def _judge_topics(observation: Observation, wanted: Wanted) -> Iterator[Judgement]:
    recorded, history = observation.recorded, observation.known
    source = topic_seen(observation.source, recorded.get(Role.SOURCE))
    yield Judgement(Role.SOURCE, SOURCES[Role.SOURCE in recorded, source])
    if Role.SOURCE in recorded and source in (T.PRESENT, T.GREW):
        yield Judgement(Role.SOURCE, REACHES[reach_seen(observation)])
    progress = progress_seen(observation, wanted, history.rows_ever)
    data = topic_seen(observation.data, recorded.get(Role.DATA))
    cell = DECISIONS[progress, data, witness_seen(observation.history, wanted)]
    yield Judgement(Role.PROGRESS if cell in _ABOUT_PROGRESS else Role.DATA, cell)
    if observation.dead_letter is not None and cell not in _ABOUT_PROGRESS:
        progress = progress_seen(observation, wanted, history.dead_ever)
        dead = topic_seen(observation.dead_letter, recorded.get(Role.DEAD_LETTER))
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


_ABOUT_PROGRESS = (Reason.PROGRESS_LOST, Reason.PROGRESS_EMPTIED, Reason.PROGRESS_ROLLED_BACK)
"""Reasons that concern the records whatever became of the output."""


_CHECKPOINT_CELLS: dict[CheckpointUse, Step | Reason] = {
    CheckpointUse.CONTINUE: Step.GO_ON,
    CheckpointUse.RENEW: Step.GO_ON,
    CheckpointUse.PROGRESS_ROLLED_BACK: Reason.CHECKPOINT_AHEAD,
    CheckpointUse.STATE_LOST: Reason.STATE_LOST,
}
