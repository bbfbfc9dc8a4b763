"""What was seen, in the few words that the decision table uses. Each function turns facts into one word."""

from __future__ import annotations

import enum

from airflow_provider_sinks.core.decision.facts import Existence, Observation, ResourceFacts, Wanted
from airflow_provider_sinks.core.progress.checkpoint import newest_epoch_is_whole
from airflow_provider_sinks.core.progress.history import EARLIEST, Finding, History
from airflow_provider_sinks.core.progress.identity import Identity, Sameness
from airflow_provider_sinks.core.progress.record import DRIVER, WriterId
from airflow_provider_sinks.core.progress.witness import Witness


class ProgressSeen(enum.Enum):
    """What the progress topic says about a sink's output."""

    UNKNOWN = "could not be read"
    NONE = "missing, or no record of this sink"
    EMPTIED = "no record of this sink any more"
    IN_PART = "some records of this sink, others that must be there are gone"
    UNWRITTEN = "a record, nothing written"
    WRITTEN = "a record, something written"


class ResourceSeen(enum.Enum):
    """How a topic compares with the recorded one."""

    UNKNOWN = "could not be seen"
    MISSING = "missing"
    PRESENT = "present; the recorded one, if one is recorded"
    GREW = "the recorded one with more partitions"
    REPLACED = "another id, cluster or name, or fewer partitions"


class WitnessSeen(enum.Enum):
    """Whether anybody remembers more than the progress topic."""

    SILENT = "no witness of ours, or it agrees: equal, older, or it saw nothing written"
    AHEAD = "Airflow knows of something that the progress topic does not"
    BROKER = "Airflow is silent, but the broker knows commits of a sink that has no record"


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
    if history and lost_writers(history):
        return ProgressSeen.IN_PART
    if history:
        return ProgressSeen.WRITTEN if written else ProgressSeen.UNWRITTEN
    return ProgressSeen.EMPTIED if _was_emptied(progress, history, wanted) else ProgressSeen.NONE


def resource_seen(facts: ResourceFacts, recorded: Identity | None) -> ResourceSeen:
    """Compare a topic with the recorded one; without a recorded one a topic can only be there or not."""
    if facts.existence is not Existence.PRESENT:
        return ResourceSeen.MISSING if facts.existence is Existence.MISSING else ResourceSeen.UNKNOWN
    if recorded is None:
        return ResourceSeen.PRESENT
    found = facts.identity.compared_with(recorded)
    if not found.is_same:
        return ResourceSeen.REPLACED
    return ResourceSeen.GREW if found is Sameness.GREW else ResourceSeen.PRESENT


def memory_seen(observation: Observation, wanted: Wanted) -> WitnessSeen:
    """Say whether Airflow, or else the broker, remembers more than the progress topic.

    The broker is asked about a sink without a record only. Where its coordinators know of use but not of a
    commit, because a fence came after it, a data topic that holds something decides: it would be written
    again, and an empty one cannot be.
    """
    seen, broker = witness_seen(observation.history, wanted), observation.broker
    if seen is not WitnessSeen.SILENT or observation.history is None or observation.history or not broker:
        return seen
    remembers = broker.has_committed or (broker.was_used and observation.data.records > 0)
    return WitnessSeen.BROKER if remembers else WitnessSeen.SILENT


def witness_seen(history: History | None, wanted: Wanted) -> WitnessSeen:
    """Compare Airflow's memory with the records: by generation, epoch, rows and every position.

    Never by batch id. Without a record any witness counts that saw rows, whoever's it is. With a record only
    ours does, because another Airflow's sink may have been taken over on purpose.
    """
    witness = wanted.witness
    if witness is None or history is None:
        return WitnessSeen.SILENT
    if not history:
        return WitnessSeen.AHEAD if witness.rows > 0 else WitnessSeen.SILENT
    is_ahead = witness.owner == wanted.owner and _knows_more(witness, history)
    return WitnessSeen.AHEAD if is_ahead else WitnessSeen.SILENT


def _knows_more(witness: Witness, history: History) -> bool:
    """Return whether a witness of ours knows anything that the records do not.

    It is told of whole epochs only. So one that stands at the newest epoch may be as far as that epoch's
    range goes, although a writer without a row in it left no record. One that is older may not: every epoch
    begins where the one before ended, and every run where its witness stood (:func:`resume_positions`).
    """
    if witness.generation != history.generation:
        return witness.generation > history.generation
    if witness.epoch > history.epoch or witness.rows > history.rows_total:
        return True
    proven = history.epoch_ends() if witness.epoch == history.epoch else history.known_positions()
    return any(at > proven.get(partition, 0) for partition, at in witness.offsets.items())


def lost_writers(history: History) -> tuple[WriterId, ...]:
    """Return the writers whose newest record must be there, and is gone or older than the driver's says.

    The driver announces a generation before any writer has a row, and its record names what each writer had
    committed by then. Compaction keeps the newest record of each, so one that is missing was deleted. Turned
    round: where the driver's record and those that it names are there, whatever else was removed is older
    than they are and says nothing that they do not. What is wrong with a record is told by its flaw.
    """
    flawed = {flaw.writer for flaw in history.flaws}
    driver = history.current.get(DRIVER)
    if driver is None:
        return () if DRIVER in flawed else (DRIVER,)
    committed = {writer: (record.rows_total, record.dead_total) for writer, record in history.current.items()}
    return tuple(
        writer
        for writer, named in sorted(driver.totals.items())
        if writer not in flawed
        and any(has < said for has, said in zip(committed.get(writer, (0, 0)), named, strict=True))
    )


def resume_positions(
    observation: Observation, wanted: Wanted, *, without_checkpoint: bool = False
) -> dict[int, int]:
    """Return where each source partition goes on: where records, Spark's commit log or the witness prove it.

    Records cannot prove that the newest epoch ended on a writer that had no row in it; the other two can.

    :param without_checkpoint: whether the newest epoch is taken for whole where nobody looked into the log.
    """
    source, history, witness = observation.source, observation.known, wanted.witness
    checkpoint = observation.checkpoint
    is_whole = newest_epoch_is_whole(checkpoint, history) if checkpoint else without_checkpoint
    positions = history.resume_positions(source.partitions, is_whole) if history else {}
    if witness is None or not _is_of(witness, source, history, wanted):
        return positions
    return {partition: max(at, witness.offsets.get(partition, at)) for partition, at in positions.items()}


def _is_of(witness: Witness, source: ResourceFacts, history: History, wanted: Wanted) -> bool:
    """Return whether the offsets of a witness are about these records and this source."""
    ours = (wanted.owner, history.generation)
    known = resource_seen(source, witness.identities.source)
    return (witness.owner, witness.generation) == ours and known in (ResourceSeen.PRESENT, ResourceSeen.GREW)


def reach_seen(observation: Observation, wanted: Wanted) -> ReachSeen:
    """Say whether retention, or a deletion of records, was faster than the sink."""
    return ReachSeen.REMOVED if removed_records(observation, wanted) else ReachSeen.FITS


def removed_records(observation: Observation, wanted: Wanted) -> dict[int, tuple[int, int]]:
    """Return, by source partition, the range of offsets [position, first offset) that is gone unread.

    Without Spark's checkpoint, as in Airflow, the newest epoch is taken for whole: the job looks again.
    """
    low = observation.source.low
    return {
        partition: (position, low[partition])
        for partition, position in resume_positions(observation, wanted, without_checkpoint=True).items()
        if EARLIEST != position < low.get(partition, 0)
    }


def shape_seen(progress: ResourceFacts) -> ShapeSeen:
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


def _was_emptied(progress: ResourceFacts, history: History, wanted: Wanted) -> bool:
    """Return whether records were deleted by hand, or the beginning of a topic of this sink alone is gone.

    Compaction alone never moves the first offset of a topic.
    """
    deleted = any(flaw.finding is Finding.DELETED for flaw in history.flaws)
    return deleted or (not wanted.progress_is_shared and progress.low.get(0, 0) > 0)
