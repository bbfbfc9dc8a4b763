"""What was seen, in the few words that the decision table uses. Each function turns facts into one word."""

from __future__ import annotations

import enum

from airflow_provider_sinks.core.checkpoint import newest_epoch_is_whole
from airflow_provider_sinks.core.history import EARLIEST, Finding, History
from airflow_provider_sinks.core.observation import Existence, Observation, TopicFacts, Wanted
from airflow_provider_sinks.core.progress import TopicIdentity


class ProgressSeen(enum.Enum):
    """What the progress topic says about a sink's output."""

    UNKNOWN = "could not be read"
    NONE = "missing, or no record of this sink"
    EMPTIED = "no record of this sink any more"
    UNWRITTEN = "a record, nothing written"
    WRITTEN = "a record, something written"


class TopicSeen(enum.Enum):
    """How a topic compares with the recorded one."""

    UNKNOWN = "could not be seen"
    MISSING = "missing"
    PRESENT = "present; the recorded one, if one is recorded"
    GREW = "the recorded one with more partitions"
    REPLACED = "another id, cluster or name, or fewer partitions"


class WitnessSeen(enum.Enum):
    """Whether Airflow remembers more than the progress topic."""

    SILENT = "no witness of ours, or it agrees: equal, older, or it saw nothing written"
    AHEAD = "it knows of something that the progress topic does not"


class ReachSeen(enum.Enum):
    """Whether the source still holds what the sink would read next."""

    FITS = "every record behind the positions is there, or it cannot be told"
    REMOVED = "records behind a position were removed"


class ShapeSeen(enum.Enum):
    """Whether a progress topic is made as it must be."""

    FITS = "missing, or one partition and exactly compacted"
    UNKNOWN = "its configuration could not be seen"
    PARTITIONS = "more than one partition"
    POLICY = "not exactly compacted"


class RecordsSeen(enum.Enum):
    """Whether the records are ours to go on from."""

    OURS = "ours, or there are none"
    OTHER_OWNER = "of another owner"
    NEWER_FORMAT = "of a newer format"
    NEWER_GENERATION = "of a newer generation than this start knew"
    GARBAGE = "not readable"
    BACKWARDS = "contradicting each other"


def progress_seen(observation: Observation, wanted: Wanted, written: int) -> ProgressSeen:
    """Say what the progress topic says about an output.

    :param written: how many rows, or dead letters, the records say were written.
    """
    progress, history = observation.progress, observation.history
    if progress.existence is Existence.MISSING:
        return ProgressSeen.NONE
    if progress.existence is Existence.UNKNOWN or history is None:
        return ProgressSeen.UNKNOWN
    if history:
        return ProgressSeen.WRITTEN if written else ProgressSeen.UNWRITTEN
    return ProgressSeen.EMPTIED if _was_emptied(progress, history, wanted) else ProgressSeen.NONE


def topic_seen(facts: TopicFacts, recorded: TopicIdentity | None) -> TopicSeen:
    """Compare a topic with the recorded one; without a recorded one a topic can only be there or not."""
    if facts.existence is not Existence.PRESENT:
        return TopicSeen.MISSING if facts.existence is Existence.MISSING else TopicSeen.UNKNOWN
    if recorded is None:
        return TopicSeen.PRESENT
    known = (recorded.cluster_id, recorded.topic, recorded.topic_id)
    if (facts.cluster_id, facts.name, facts.topic_id) != known or facts.partitions < recorded.partitions:
        return TopicSeen.REPLACED
    return TopicSeen.GREW if facts.partitions > recorded.partitions else TopicSeen.PRESENT


def witness_seen(history: History | None, wanted: Wanted) -> WitnessSeen:
    """Compare Airflow's memory with the records, by generation and epoch, never by batch id.

    Without a record any witness counts that saw rows, whoever's it is. With a record only ours does, because
    another Airflow's sink may have been taken over on purpose.
    """
    witness = wanted.witness
    if witness is None or history is None:
        return WitnessSeen.SILENT
    if not history:
        return WitnessSeen.AHEAD if witness.rows > 0 else WitnessSeen.SILENT
    is_newer = witness.order > (history.generation, history.epoch)
    return WitnessSeen.AHEAD if witness.owner == wanted.owner and is_newer else WitnessSeen.SILENT


def reach_seen(observation: Observation) -> ReachSeen:
    """Say whether retention, or a deletion of records, was faster than the sink."""
    return ReachSeen.REMOVED if removed_records(observation) else ReachSeen.FITS


def removed_records(observation: Observation) -> dict[int, tuple[int, int]]:
    """Return, by source partition, the range of offsets [position, first offset) that is gone unread.

    Without Spark's checkpoint, as in Airflow, the newest epoch is taken for whole: the job looks again.
    """
    low, history = observation.source.low, observation.known
    is_whole = observation.checkpoint is None or newest_epoch_is_whole(observation.checkpoint, history)
    positions = history.resume_positions(observation.source.partitions, is_whole) if history else {}
    return {
        partition: (position, low[partition])
        for partition, position in positions.items()
        if EARLIEST != position < low.get(partition, 0)
    }


def shape_seen(progress: TopicFacts) -> ShapeSeen:
    """Say whether a progress topic is made as it must be."""
    if progress.existence is not Existence.PRESENT:
        return ShapeSeen.FITS
    if progress.partitions != 1:
        return ShapeSeen.PARTITIONS
    if progress.cleanup_policy is None:
        return ShapeSeen.UNKNOWN
    return ShapeSeen.FITS if progress.cleanup_policy == "compact" else ShapeSeen.POLICY


def records_seen(history: History | None, wanted: Wanted) -> RecordsSeen:
    """Say whether the records are ours to go on from; what no way on settles comes first."""
    if history is None:
        return RecordsSeen.OURS
    found = {flaw.finding for flaw in history.flaws}
    if Finding.NEWER_FORMAT in found:
        return RecordsSeen.NEWER_FORMAT
    if wanted.generation is not None and history.generation > wanted.generation:
        return RecordsSeen.NEWER_GENERATION
    if Finding.GARBAGE in found:
        return RecordsSeen.GARBAGE
    if Finding.BACKWARDS in found or (history and Finding.DELETED in found):
        return RecordsSeen.BACKWARDS
    return RecordsSeen.OTHER_OWNER if is_foreign(history, wanted) else RecordsSeen.OURS


def is_foreign(history: History | None, wanted: Wanted) -> bool:
    """Return whether the run in force belongs to another Airflow."""
    newest = history.in_force if history else None
    return newest is not None and newest.owner != wanted.owner


def _was_emptied(progress: TopicFacts, history: History, wanted: Wanted) -> bool:
    """Return whether records were deleted by hand, or the beginning of a topic of this sink alone is gone.

    Compaction alone never moves the first offset of a topic.
    """
    deleted = any(flaw.finding is Finding.DELETED for flaw in history.flaws)
    return deleted or (not wanted.progress_is_shared and progress.low.get(0, 0) > 0)
