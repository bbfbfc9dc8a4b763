"""What was seen, in the few words that the decision table uses. Each function turns facts into one word."""

from __future__ import annotations

import enum

from airflow_provider_sinks.core.decision.facts import Existence, Observation, ResourceFacts
from airflow_provider_sinks.core.decision.start_request import StartRequest
from airflow_provider_sinks.core.progress.history import Finding, History, lost_writers
from airflow_provider_sinks.core.progress.identity import Identity, Sameness
from airflow_provider_sinks.core.progress.witness import Witness


class ProgressState(enum.Enum):
    """What the progress place says about a sink's output."""

    UNKNOWN = "could not be read"
    NONE = "missing, or no record of this sink"
    EMPTIED = "no record of this sink any more"
    IN_PART = "some records of this sink, others that must be there are gone"
    UNWRITTEN = "a record, nothing written"
    WRITTEN = "a record, something written"


class ResourceState(enum.Enum):
    """How a resource compares with the recorded one."""

    UNKNOWN = "could not be seen"
    MISSING = "missing"
    PRESENT = "present; the recorded one, if one is recorded"
    GREW = "the recorded one with more partitions"
    REPLACED = "another id, cluster or name, or fewer partitions"


class Fitness(enum.Enum):
    """Whether a resource that is there can be used as it is."""

    FITS = "it can, as far as was looked, or it is not there"
    UNKNOWN = "what matters of it could not be seen"
    UNFIT = "it cannot"


class WitnessState(enum.Enum):
    """Whether anybody remembers more than the progress place."""

    SILENT = "no witness of ours, or it agrees: equal, older, or it saw nothing written"
    AHEAD = "Airflow knows of something that the progress place does not"
    TARGET = "Airflow is silent, but the target knows commits of a sink that has no record"


def classify_progress(observation: Observation, request: StartRequest, written: int) -> ProgressState:
    """Say what the progress place says about an output.

    :param written: how many rows, or dead letters, the records say were written.
    """
    progress, history = observation.progress, observation.history
    if progress.existence is Existence.MISSING:
        return ProgressState.NONE
    if progress.existence is Existence.UNKNOWN or history is None:
        return ProgressState.UNKNOWN
    if history and lost_writers(history):
        return ProgressState.IN_PART
    if history:
        return ProgressState.WRITTEN if written else ProgressState.UNWRITTEN
    return ProgressState.EMPTIED if _was_emptied(progress, history, request) else ProgressState.NONE


def classify_resource(facts: ResourceFacts, recorded: Identity | None) -> ResourceState:
    """Compare a resource with the recorded one; without a recorded one it can only be there or not."""
    if facts.existence is not Existence.PRESENT:
        return ResourceState.MISSING if facts.existence is Existence.MISSING else ResourceState.UNKNOWN
    if recorded is None:
        return ResourceState.PRESENT
    found = facts.identity.compared_with(recorded)
    if not found.is_same:
        return ResourceState.REPLACED
    return ResourceState.GREW if found is Sameness.GREW else ResourceState.PRESENT


def classify_fitness(facts: ResourceFacts) -> Fitness:
    """Say whether a resource can be used as it is."""
    if facts.existence is not Existence.PRESENT:
        return Fitness.FITS
    if facts.unfit is not None:
        return Fitness.UNFIT
    return Fitness.UNKNOWN if facts.hidden else Fitness.FITS


def classify_memory(observation: Observation, request: StartRequest) -> WitnessState:
    """Say whether Airflow, or else the target, remembers more than the progress place.

    The target is asked about a sink without a record only. Where it knows of use but not of a commit,
    because a fence came after it, data that is there decides: it would be written again, and an empty one
    cannot be.
    """
    state, memory = classify_witness(observation.history, request), observation.memory
    if state is not WitnessState.SILENT or observation.history is None or observation.history or not memory:
        return state
    remembers = memory.has_committed or (memory.was_used and observation.data.records > 0)
    return WitnessState.TARGET if remembers else WitnessState.SILENT


def classify_witness(history: History | None, request: StartRequest) -> WitnessState:
    """Compare Airflow's memory with the records: by generation, epoch, rows, dead letters and positions.

    Never by batch id. Without a record any witness counts that saw something taken, whoever's it is. With a
    record only ours does, because another Airflow's sink may have been taken over on purpose.
    """
    witness = request.witness
    if witness is None or history is None:
        return WitnessState.SILENT
    if not history:
        return WitnessState.AHEAD if request.saw_something_taken else WitnessState.SILENT
    is_ahead = witness.owner == request.owner and _knows_more(witness, history)
    return WitnessState.AHEAD if is_ahead else WitnessState.SILENT


def _knows_more(witness: Witness, history: History) -> bool:
    """Return whether a witness of ours knows anything that the records do not.

    It is told of whole epochs only. So one that stands at the newest epoch may be as far as that epoch's
    range goes, although a writer without a row in it left no record. One that is older may not: every epoch
    begins where the one before ended, and every run where its witness stood (:func:`resume_positions`).
    """
    if witness.generation != history.generation:
        return witness.generation > history.generation
    counted = (history.epoch, history.rows_total, history.dead_total)
    if any(of > has for of, has in zip((witness.epoch, witness.rows, witness.dead), counted, strict=True)):
        return True
    proven = history.epoch_ends() if witness.epoch == history.epoch else history.known_positions()
    return any(at > proven.get(partition, 0) for partition, at in witness.offsets.items())


def _was_emptied(progress: ResourceFacts, history: History, request: StartRequest) -> bool:
    """Return whether records were deleted by hand, or the beginning of a topic of this sink alone is gone.

    Compaction alone never moves the first offset of a topic.
    """
    deleted = any(flaw.finding is Finding.DELETED for flaw in history.flaws)
    return deleted or (not request.progress_is_shared and progress.low.get(0, 0) > 0)
