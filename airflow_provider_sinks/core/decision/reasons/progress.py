"""Whether the records of a sink are all there: somebody else may remember more than they say.

:data:`~airflow_provider_sinks.core.decision.table.DECISIONS` judges it.
"""

from __future__ import annotations

import enum

from airflow_provider_sinks.core.decision.facts import Existence, Observation, Role
from airflow_provider_sinks.core.decision.positions import positions_of_records
from airflow_provider_sinks.core.decision.reasons.reason import Evidence, Reason, ReasonEntry, Text
from airflow_provider_sinks.core.decision.way_on import RESET, ROLLED_BACK, WayOn
from airflow_provider_sinks.core.progress.history import Finding, lost_writers
from airflow_provider_sinks.core.progress.identity import ResourceKind
from airflow_provider_sinks.core.progress.record import ProgressKey
from airflow_provider_sinks.core.wording import count, offsets, remembered, summary


def _emptiness(evidence: Evidence) -> str:
    if evidence.found.existence is Existence.MISSING:
        return "is missing"
    deleted = sum(flaw.finding is Finding.DELETED for flaw in evidence.history.flaws)
    if deleted:
        return f"has {count(deleted, 'deletion mark')} in place of this sink's records"
    first = evidence.found.low.get(0, 0)
    return (
        f"begins at offset {first} and has no record of this sink" if first else "has no record of this sink"
    )


def _contents(observation: Observation) -> str:
    data = observation.data
    holds = f"holds {data.contents}" if data.existence is Existence.PRESENT else f"is {data.existence}"
    return f"{data.heading(Role.DATA)} {holds}."


def look_first(evidence: Evidence) -> str:
    """Return what tells which way on is right, where a store may have lost rows with their records."""
    positions = positions_of_records(evidence.observation, evidence.request)
    if positions is None:
        return ""
    return (
        f"Look first whether {evidence.observation.data.title(Role.DATA)} still holds what source offsets "
        f"from {offsets(positions)} on led to. If it does, restore a newer copy of the progress table, if "
        "there is one. If that is gone too, as after a failover or when a backup was restored, do not: go on "
        "from the records, for whatever begins behind them leaves it out."
    )


def _progress_lost(evidence: Evidence) -> Text:
    elsewhere = _moved_from(evidence)
    if elsewhere:
        system = evidence.found.kind.system
        return Text(
            f"{evidence.sink} has written to another {system}",
            (
                f"Airflow's witness knows {_remembered(evidence)}, in {system} {elsewhere}. "
                f"The target's connection leads to {system} {evidence.found.system}, where {evidence.title} "
                f"{_emptiness(evidence)}. Starting anew would write them again. "
                f"{_contents(evidence.observation)}"
            ),
        )
    return Text(
        f"progress of {evidence.sink} is lost",
        (
            f"{evidence.title} {_emptiness(evidence)}, but {_who_remembers(evidence)}. Starting anew would "
            f"write them again. {_contents(evidence.observation)}"
        ),
    )


def _moved_from(evidence: Evidence) -> str:
    """Return the system that the witness knows the progress in, if that is another one; or an empty text."""
    witness, here = evidence.request.witness, evidence.found.system
    there = witness.identities.progress.system if witness else ""
    return there if here not in ("", there) else ""


def _who_remembers(evidence: Evidence) -> str:
    witness, memory = evidence.request.witness, evidence.observation.memory
    if witness is not None and evidence.request.saw_something_taken:
        renamed = witness.identities.progress.name
        where = f', recorded in "{renamed}"' if renamed != evidence.found.name else ""
        return f"Airflow's witness knows {_remembered(evidence)}{where}"
    who = f"the {memory.who} {memory}" if memory is not None else "the target remembers a sink of this name"
    return (
        f"{who}: rows were written under the ids of this sink's name, by an "
        f"earlier sink of the name, by one with another progress {evidence.found.kind.value}, or by this one"
    )


def _remembered(evidence: Evidence) -> str:
    witness = evidence.request.witness
    letters = f" and {count(witness.dead_ever, 'dead letter')}" if witness and witness.dead_ever else ""
    return f"{remembered(witness)}{letters}"


def _lead_back(evidence: Evidence) -> str:
    if not _moved_from(evidence):
        return ""
    return (
        "If the connection was changed by mistake, let it lead to the old "
        f"{evidence.found.kind.system} again; the sink goes on from its progress there."
    )


def _progress_emptied(evidence: Evidence) -> Text:
    return Text(
        f"{evidence.title} of {evidence.sink} was emptied",
        (
            f"It {_emptiness(evidence)}: something was here, and nothing tells what. "
            f"{_contents(evidence.observation)}"
        ),
    )


def _progress_emptied_in_part(evidence: Evidence) -> Text:
    gone = lost_writers(evidence.history)
    keys = ", ".join(ProgressKey(evidence.request.sink, writer).encode().decode() for writer in gone)
    first = evidence.found.low.get(0, 0)
    begins = f" It begins at offset {first}." if first else ""
    return Text(
        f"{evidence.title} of {evidence.sink} was emptied in part",
        (
            f"Records that must be there are gone, or older than the others say: keys {keys}."
            f"{begins} Left are {summary(evidence.history.first_hand())}. What the lost ones said is not "
            f"known, and might be written again. {_contents(evidence.observation)}"
        ),
    )


def _restore(evidence: Evidence) -> str:
    data, progress = evidence.observation.data, evidence.found.kind
    if not data.kind is progress is ResourceKind.TABLE:
        return f"If there is a copy of the progress {progress.value}, restore it first."
    return look_first(evidence) or (
        f"Look first whether {data.title(Role.DATA)} still holds all rows. If it does, restore a copy of the "
        "progress table, if there is one. If some are gone too, do not: they would be left out."
    )


def _progress_rolled_back(evidence: Evidence) -> Text:
    witness, history = evidence.request.witness, evidence.history
    positions = positions_of_records(evidence.observation, evidence.request) or history.known_positions()
    return Text(
        f"progress of {evidence.sink} was rolled back",
        (
            f"{evidence.title} records {summary(history.first_hand())}, but Airflow's witness knows "
            f"{remembered(witness)}{_more_letters(evidence)}. What was written between the two, and is "
            f"still there, would be written again: by the records the source goes on at offsets "
            f"{offsets(positions)}, by the witness at "
            f"{offsets(witness.offsets if witness else {})}."
        ),
    )


def _more_letters(evidence: Evidence) -> str:
    witness, recorded = evidence.request.witness, evidence.history.dead_total
    if witness is None or witness.generation != evidence.history.generation or witness.dead <= recorded:
        return ""
    return f", and {count(witness.dead, 'dead letter')} where {recorded} are recorded"


@enum.unique
class ProgressReason(Reason):
    """Why the progress stops a sink, whatever became of its outputs."""

    PROGRESS_LOST = ReasonEntry(
        "Airflow or the target knows of commits, the progress {kind} of nothing",
        _progress_lost,
        ways=RESET,
        repair=_lead_back,
        counts=False,
        by_witness=True,
    )
    PROGRESS_EMPTIED = ReasonEntry(
        "something was in the progress {kind}, and is gone",
        _progress_emptied,
        ways=(WayOn.START_OVER,),
        counts=False,
    )
    PROGRESS_EMPTIED_IN_PART = ReasonEntry(
        "some of the records that must be there are gone",
        _progress_emptied_in_part,
        ways=ROLLED_BACK,
        repair=_restore,
        counts=False,
    )
    PROGRESS_ROLLED_BACK = ReasonEntry(
        "the witness knows more than the records",
        _progress_rolled_back,
        ways=ROLLED_BACK,
        repair=look_first,
        counts=False,
        by_witness=True,
    )
