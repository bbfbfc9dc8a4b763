"""Reasons that stop a sink, and the ways on that a person may choose.

A way on is a one-time answer, not a setting: its code is a digest of the sink and of what was seen, so it
fits exactly one situation and not the next one. A standing option would one day answer a question nobody
asked.

=========================  =================================================================================
way                        what it does
=========================  =================================================================================
take_over                  make this Airflow the owner, resume from the records
adopt                      take the topic that is there for the recorded one, resume from the records
continue_without_output    make the missing topic anew, resume from the records; old rows are not repeated
skip_lost                  resume where the source topic begins now; what was removed before is left out
resume_from_witness        a new generation that starts at the offsets Airflow remembers
start_over                 a new generation that starts where the spec says; rows in the target stay
=========================  =================================================================================

Several reasons at once are settled by one answer that names several ways, such as ``take_over+adopt``.
"""

from __future__ import annotations

import enum
import hashlib
import itertools
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from airflow_provider_sinks.core.decision.facts import Observation, Role, Wanted
from airflow_provider_sinks.core.progress.identity import Identity


class Reason(enum.Enum):
    """Why a sink must not go on by itself."""

    TOO_MANY_PARTITIONS = "the progress topic has more than one partition"
    NOT_COMPACTED = "the progress topic is not exactly compacted"
    NEWER_FORMAT = "a newer release wrote the progress"
    NEWER_GENERATION = "a newer generation was announced meanwhile"
    OTHER_OWNER = "the sink belongs to another Airflow"
    GARBAGE = "a record under our own key cannot be read"
    BACKWARDS = "the records contradict each other"
    SOURCE_LOST = "the source topic is missing"
    SOURCE_REPLACED = "the source topic is another one"
    RECORDS_REMOVED = "source records were removed before the sink read them"
    PROGRESS_LOST = "Airflow or the broker knows of commits, the progress topic of nothing"
    PROGRESS_EMPTIED = "something was in the progress topic, and is gone"
    PROGRESS_EMPTIED_IN_PART = "some of the records that must be there are gone"
    PROGRESS_ROLLED_BACK = "the witness knows more than the records"
    PROGRESS_REPLACED = "the records were written to another progress topic"
    OUTPUT_LOST = "rows were written to a topic that is missing"
    OUTPUT_REPLACED = "rows were written to another topic than the one that is there"
    CHECKPOINT_AHEAD = "Spark's checkpoint is newer than the records"
    STATE_LOST = "the state of a stateful plan is lost"


class Way(enum.StrEnum):
    """What a person may choose."""

    TAKE_OVER = "take_over"
    ADOPT = "adopt"
    CONTINUE_WITHOUT_OUTPUT = "continue_without_output"
    SKIP_LOST = "skip_lost"
    RESUME_FROM_WITNESS = "resume_from_witness"
    START_OVER = "start_over"


_RESET = (Way.RESUME_FROM_WITNESS, Way.START_OVER)

WAYS: dict[Reason, tuple[Way, ...]] = {
    Reason.TOO_MANY_PARTITIONS: (),
    Reason.NOT_COMPACTED: (),
    Reason.NEWER_FORMAT: (),
    Reason.NEWER_GENERATION: (),
    Reason.OTHER_OWNER: (Way.TAKE_OVER,),
    Reason.GARBAGE: _RESET,
    Reason.BACKWARDS: _RESET,
    Reason.SOURCE_LOST: (),
    Reason.SOURCE_REPLACED: (Way.ADOPT, Way.START_OVER),
    Reason.RECORDS_REMOVED: (Way.SKIP_LOST, Way.START_OVER),
    Reason.PROGRESS_LOST: _RESET,
    Reason.PROGRESS_EMPTIED: (Way.START_OVER,),
    Reason.PROGRESS_EMPTIED_IN_PART: _RESET,
    Reason.PROGRESS_ROLLED_BACK: _RESET,
    Reason.PROGRESS_REPLACED: (Way.ADOPT, *_RESET),
    Reason.OUTPUT_LOST: (Way.CONTINUE_WITHOUT_OUTPUT, Way.START_OVER),
    Reason.OUTPUT_REPLACED: (Way.ADOPT, Way.START_OVER),
    Reason.CHECKPOINT_AHEAD: _RESET,
    Reason.STATE_LOST: (Way.START_OVER,),
}
"""Which ways settle a reason. Nothing settles what only a repair or a newer release can."""


@dataclass(frozen=True)
class Refusal:
    """One reason to stop, and the topic it is about."""

    reason: Reason
    role: Role


def settling(refusals: Sequence[Refusal], observation: Observation, wanted: Wanted) -> list[tuple[Way, ...]]:
    """Return the smallest sets of ways of which each settles every reason."""
    open_ways = [_open_ways(refusal, observation, wanted) for refusal in refusals]
    sets = {frozenset(choice) for choice in itertools.product(*open_ways)}
    smallest = [ways for ways in sets if not any(other < ways for other in sets)]
    order = list(Way)
    return sorted(
        (tuple(sorted(ways, key=order.index)) for ways in smallest), key=lambda w: order.index(w[-1])
    )


def code_for(
    ways: Sequence[Way], refusals: Sequence[Refusal], observation: Observation, wanted: Wanted
) -> str:
    """Return the accept code: the names of the ways, and a digest of the case.

    The case is what is missing or replaced, and the recorded state; nothing else. The next start, Airflow and
    the job that was running see the same case: partitions that are added, a witness that Airflow wrote
    meanwhile, or a checkpoint that only a job can see, are no part of it unless the answer hangs on them.
    """
    reasons = {refusal.reason for refusal in refusals}
    facts = [
        wanted.sink,
        wanted.owner,
        wanted.start if Way.START_OVER in ways else "",
        sorted((refusal.reason.name, refusal.role) for refusal in refusals),
        [(role, topic.existence, *_which(topic.identity)) for role, topic in observation.topics().items()],
        _seen_of_records(observation, Reason.OTHER_OWNER in reasons),
        _seen_of_witness(wanted, Way.RESUME_FROM_WITNESS in ways or not reasons.isdisjoint(_BY_WITNESS)),
        _seen_of_checkpoint(observation, reasons),
    ]
    digest = hashlib.sha256(json.dumps(facts).encode()).hexdigest()
    return f"{'+'.join(ways)}-{digest[:10]}"


_BY_WITNESS = (Reason.PROGRESS_LOST, Reason.PROGRESS_ROLLED_BACK)


def witness_fits(observation: Observation, wanted: Wanted) -> bool:
    """Return whether a new generation may begin at the offsets of the witness.

    It must be ours, the topics must be those it knew, and the plan must not need a state that is gone.
    """
    witness = wanted.witness
    if witness is None or witness.owner != wanted.owner or not witness.offsets or wanted.stateful:
        return False
    known = (witness.identities.source, witness.identities.data)
    now = (observation.source.identity, observation.data.identity)
    return all(new.compared_with(old).is_same for new, old in zip(now, known, strict=True))


def _open_ways(refusal: Refusal, observation: Observation, wanted: Wanted) -> tuple[Way, ...]:
    closed: set[Way] = set()
    if not witness_fits(observation, wanted):
        closed.add(Way.RESUME_FROM_WITNESS)
    if wanted.stateful:
        closed.add(Way.SKIP_LOST)  # Spark's state goes on behind its own checkpoint only
    recorded = observation.recorded.get(Role.SOURCE)
    if refusal.role is Role.SOURCE and recorded and observation.source.partitions < recorded.partitions:
        closed.add(Way.ADOPT)
    return tuple(way for way in WAYS[refusal.reason] if way not in closed)


def _which(identity: Identity) -> tuple[str, str, str]:
    return identity.system, identity.name, identity.id


def _seen_of_records(observation: Observation, is_running_elsewhere: bool) -> object:
    """Another owner's driver may be at work: its epochs go on while a person reads the refusal."""
    history = observation.history
    if history is None:
        return None
    newest = history.in_force
    flaws = [(flaw.finding.name, flaw.writer, flaw.offset) for flaw in history.flaws]
    so_far = None if is_running_elsewhere else [history.epoch, history.rows_ever, history.dead_ever]
    run = (newest.run, newest.owner) if newest else None
    return [history.generation, so_far, run, flaws]


def _seen_of_witness(wanted: Wanted, decides: bool) -> object:
    """Return the rows of the witness alone: it is written while the sink runs, and once more at its end."""
    witness = wanted.witness
    return (witness.generation, witness.rows) if witness and decides else None


def _seen_of_checkpoint(observation: Observation, reasons: Collection[Reason]) -> object:
    """Airflow cannot see the checkpoint; where a refusal is about topics alone, both must have one code."""
    facts = observation.checkpoint
    if facts is None or not {Reason.CHECKPOINT_AHEAD, Reason.STATE_LOST} & set(reasons):
        return None
    return [facts.path, facts.committed, facts.planned]
