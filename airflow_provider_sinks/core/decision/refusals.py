"""What each refusal says: what was seen, with numbers and names, and why the sink stops.

How to mend it stands in :mod:`.repairs`, what a person may choose instead in :mod:`.accept`.
"""

from __future__ import annotations

from collections.abc import Callable

from airflow_provider_sinks.core.decision.case import Case
from airflow_provider_sinks.core.decision.classify import lost_writers, removed_records
from airflow_provider_sinks.core.decision.facts import (
    Existence,
    Observation,
    Role,
)
from airflow_provider_sinks.core.decision.ways import Reason
from airflow_provider_sinks.core.progress.checkpoint import CheckpointFacts
from airflow_provider_sinks.core.progress.history import Finding
from airflow_provider_sinks.core.progress.record import ProgressKey
from airflow_provider_sinks.core.wording import count, identity, offsets, ranges, remembered, summary


def describe(case: Case) -> tuple[str, str]:
    """Return primary and detail of a refusal."""
    return _TEXTS[case.refusal.reason](case)


def _name(case: Case) -> str:
    """Return the name under which the topic was recorded; a spec may name another one now."""
    renamed = case.recorded is not None and case.recorded.name != case.seen.name
    return f'"{case.recorded.name}"' if case.recorded and renamed else "it"


def _recorded(case: Case) -> str:
    return f"Recorded was {identity(case.recorded)}." if case.recorded else ""


def _found(case: Case) -> str:
    return f"Found is {identity(case.seen.identity)}."


def _written(case: Case) -> str:
    dead = (
        f"{count(case.history.dead_ever, 'dead letter')} and "
        if case.refusal.role is Role.DEAD_LETTER
        else ""
    )
    return dead + summary(case.history)


def _emptiness(case: Case) -> str:
    if case.seen.existence is Existence.MISSING:
        return "is missing"
    deleted = sum(flaw.finding is Finding.DELETED for flaw in case.history.flaws)
    if deleted:
        return f"has {count(deleted, 'deletion mark')} in place of this sink's records"
    first = case.seen.low.get(0, 0)
    return (
        f"begins at offset {first} and has no record of this sink" if first else "has no record of this sink"
    )


def _contents(observation: Observation) -> str:
    data = observation.data
    if data.existence is not Existence.PRESENT:
        return f'Data topic "{data.name}" is {data.existence}.'
    return f'Data topic "{data.name}" holds up to {data.records:,} records.'


def _too_many_partitions(case: Case) -> tuple[str, str]:
    return (
        f"{case.topic} has {count(case.seen.partitions, 'partition')}",
        f"The order of its records is what {case.sink} goes by, and it holds within one partition only.",
    )


def _not_compacted(case: Case) -> tuple[str, str]:
    return (
        f"{case.topic} is not exactly compacted",
        (
            f"Found cleanup.policy={case.seen.cleanup_policy}, must be compact and nothing else: otherwise "
            f"the broker deletes the progress of {case.sink} by age or size, and rows would be written again."
        ),
    )


def _newer_format(case: Case) -> tuple[str, str]:
    return (
        f"{case.sink} was taken over by a newer start",
        case.flaws(Finding.NEWER_FORMAT),
    )


def _newer_generation(case: Case) -> tuple[str, str]:
    return (
        f"{case.sink} was taken over by a newer start",
        (
            f"This start saw generation {case.wanted.generation}; the records now say "
            f"{summary(case.history)}, announced by run {_run(case)}."
        ),
    )


def _other_owner(case: Case) -> tuple[str, str]:
    owner = _owner(case)
    return (
        f"{case.sink} belongs to another Airflow",
        (
            f"{case.topic} records owner {owner}, this Airflow is {case.wanted.owner}. Newest: "
            f"{summary(case.history)}, run {_run(case)}. Two owners would fence each other for ever."
        ),
    )


def _owner(case: Case) -> str:
    return case.history.in_force.owner if case.history.in_force else ""


def _run(case: Case) -> str:
    return case.history.in_force.run if case.history.in_force else ""


def _garbage(case: Case) -> tuple[str, str]:
    return (
        f"progress of {case.sink} cannot be read",
        (
            f"{case.flaws(Finding.GARBAGE)}. Somebody else wrote under this sink's own key, so how far it is "
            "cannot be told."
        ),
    )


def _backwards(case: Case) -> tuple[str, str]:
    return (
        f"progress of {case.sink} contradicts itself",
        (
            f"{case.flaws(Finding.BACKWARDS, Finding.DELETED)}. A writer never goes back within a "
            "generation: two of them wrote, or records were copied or deleted."
        ),
    )


def _source_lost(case: Case) -> tuple[str, str]:
    return (
        f"{case.topic} is missing, but {case.sink} has read from {_name(case)}",
        (
            f"{_recorded(case)} The offsets that the sink would resume at mean nothing in any other topic: "
            f"{offsets(case.history.known_positions())}."
        ),
    )


def _source_replaced(case: Case) -> tuple[str, str]:
    return (
        f"{case.topic} is not the one that {case.sink} has read from",
        (
            f"{_recorded(case)} {_found(case)} Spark would go on at the old offsets of the new topic, "
            f"silently: {offsets(case.history.known_positions())}."
        ),
    )


def _records_removed(case: Case) -> tuple[str, str]:
    removed = removed_records(case.observation, case.wanted)
    lost = sum(first - position for position, first in removed.values())
    return (
        f"{case.sink} has missed up to {count(lost, 'record')} of {case.topic}",
        (
            f"Removed before it read them are offsets {ranges(removed)} (by source partition): retention "
            f"took them, or somebody deleted them. Recorded are {summary(case.history)}."
        ),
    )


def _progress_lost(case: Case) -> tuple[str, str]:
    elsewhere = moved_from(case)
    if elsewhere:
        return (
            f"{case.sink} has written to another cluster",
            (
                f"Airflow's witness knows {remembered(case.wanted.witness)}, in cluster {elsewhere}. The "
                f"target's connection leads to cluster {case.seen.system}, where {case.topic} "
                f"{_emptiness(case)}. Starting anew would write them again. {_contents(case.observation)}"
            ),
        )
    return (
        f"progress of {case.sink} is lost",
        (
            f"{case.topic} {_emptiness(case)}, but {_who_remembers(case)}. Starting anew would write them "
            f"again. {_contents(case.observation)}"
        ),
    )


def moved_from(case: Case) -> str:
    """Return the cluster that the witness knows the progress in, if that is another one; or an empty text."""
    witness, here = case.wanted.witness, case.seen.system
    there = witness.identities.progress.system if witness else ""
    return there if case.refusal.reason is Reason.PROGRESS_LOST and here not in ("", there) else ""


def _who_remembers(case: Case) -> str:
    witness, broker = case.wanted.witness, case.observation.broker
    if witness is not None and witness.rows:
        renamed = witness.identities.progress.name
        place = f', recorded in "{renamed}"' if renamed != case.seen.name else ""
        return f"Airflow's witness knows {remembered(witness)}{place}"
    return (
        f"the transaction coordinator {broker}: rows were written under the ids of this sink's name, by an "
        "earlier sink of the name, by one with another progress topic, or by this one"
    )


def _progress_emptied_in_part(case: Case) -> tuple[str, str]:
    gone = lost_writers(case.history)
    keys = ", ".join(ProgressKey(case.wanted.sink, writer).encode().decode() for writer in gone)
    first = case.seen.low.get(0, 0)
    begins = f" It begins at offset {first}." if first else ""
    return (
        f"{case.topic} of {case.sink} was emptied in part",
        (
            f"Records that must be there are gone, or older than the driver's record says: keys {keys}."
            f"{begins} Left are {summary(case.history)}. What the others said is not known, and might be "
            f"written again. {_contents(case.observation)}"
        ),
    )


def _progress_emptied(case: Case) -> tuple[str, str]:
    return (
        f"{case.topic} of {case.sink} was emptied",
        f"It {_emptiness(case)}: something was here, and nothing tells what. {_contents(case.observation)}",
    )


def _progress_rolled_back(case: Case) -> tuple[str, str]:
    return (
        f"progress of {case.sink} was rolled back",
        (
            f"{case.topic} records {summary(case.history)}, but Airflow's witness knows "
            f"{remembered(case.wanted.witness)}. What was written between the two would be written again: "
            f"by the records the source goes on at offsets {offsets(case.history.known_positions())}, by the "
            f"witness at {offsets(case.wanted.witness.offsets if case.wanted.witness else {})}."
        ),
    )


def _progress_replaced(case: Case) -> tuple[str, str]:
    return (
        f"{case.topic} is not the one that {case.sink} has written its progress to",
        f"{_recorded(case)} {_found(case)} Its records are copies, and may be older than what was written.",
    )


def _output_lost(case: Case) -> tuple[str, str]:
    return (
        f"{case.topic} is missing, but {case.sink} has written to {_name(case)}",
        f'Progress topic "{case.observation.progress.name}" records {_written(case)}. {_recorded(case)}',
    )


def _output_replaced(case: Case) -> tuple[str, str]:
    return (
        f"{case.topic} is not the one that {case.sink} has written to",
        (
            f'Progress topic "{case.observation.progress.name}" records {_written(case)}. '
            f"{_recorded(case)} {_found(case)}"
        ),
    )


def _checkpoint_ahead(case: Case) -> tuple[str, str]:
    facts = case.observation.checkpoint or CheckpointFacts("")
    return (
        f"progress of {case.sink} was rolled back",
        (
            f'Spark\'s checkpoint "{facts.path}" committed batch {facts.committed}, but the newest recorded '
            f"batch is {case.history.batch(facts.path)}. {case.topic} records {summary(case.history)}."
        ),
    )


def _state_lost(case: Case) -> tuple[str, str]:
    facts = case.observation.checkpoint or CheckpointFacts("")
    return (
        f"the state of {case.sink} is lost",
        (
            f'Its records belong to checkpoint "{case.history.checkpoint}" up to batch '
            f'{case.history.batch(case.history.checkpoint)}; found was "{facts.path}" up to batch '
            f"{facts.planned}. The plan keeps state in the checkpoint, so it cannot go on from the records "
            "alone."
        ),
    )


_TEXTS: dict[Reason, Callable[[Case], tuple[str, str]]] = {
    Reason.TOO_MANY_PARTITIONS: _too_many_partitions,
    Reason.NOT_COMPACTED: _not_compacted,
    Reason.NEWER_FORMAT: _newer_format,
    Reason.NEWER_GENERATION: _newer_generation,
    Reason.OTHER_OWNER: _other_owner,
    Reason.GARBAGE: _garbage,
    Reason.BACKWARDS: _backwards,
    Reason.SOURCE_LOST: _source_lost,
    Reason.SOURCE_REPLACED: _source_replaced,
    Reason.RECORDS_REMOVED: _records_removed,
    Reason.PROGRESS_LOST: _progress_lost,
    Reason.PROGRESS_EMPTIED: _progress_emptied,
    Reason.PROGRESS_EMPTIED_IN_PART: _progress_emptied_in_part,
    Reason.PROGRESS_ROLLED_BACK: _progress_rolled_back,
    Reason.PROGRESS_REPLACED: _progress_replaced,
    Reason.OUTPUT_LOST: _output_lost,
    Reason.OUTPUT_REPLACED: _output_replaced,
    Reason.CHECKPOINT_AHEAD: _checkpoint_ahead,
    Reason.STATE_LOST: _state_lost,
}
