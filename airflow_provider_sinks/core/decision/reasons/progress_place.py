"""Whether the place where a sink keeps its progress is made as it must be, and the recorded one."""

from __future__ import annotations

import enum

from airflow_provider_sinks.core.decision.classify import ResourceState as R
from airflow_provider_sinks.core.decision.facts import Existence, ResourceFacts
from airflow_provider_sinks.core.decision.reasons.reason import Evidence, Reason, ReasonEntry, Text
from airflow_provider_sinks.core.decision.ruling import Ruling
from airflow_provider_sinks.core.decision.way_on import RESET, WayOn
from airflow_provider_sinks.core.wording import count


class Shape(enum.Enum):
    """Whether a progress topic is made as it must be."""

    FITS = "missing, or one partition and exactly compacted"
    UNKNOWN = "its configuration could not be seen"
    PARTITIONS = "more than one partition"
    POLICY = "not exactly compacted"


def classify_shape(progress: ResourceFacts) -> Shape:
    """Say whether a progress topic is made as it must be."""
    if progress.existence is not Existence.PRESENT:
        return Shape.FITS
    if progress.partitions != 1:
        return Shape.PARTITIONS
    if progress.cleanup_policy is None:
        return Shape.UNKNOWN
    return Shape.FITS if progress.cleanup_policy == "compact" else Shape.POLICY


def _too_many_partitions(evidence: Evidence) -> Text:
    return Text(
        f"{evidence.title} has {count(evidence.found.partitions, 'partition')}",
        f"The order of its records is what {evidence.sink} goes by, and it holds within one partition only.",
    )


def _delete_it(evidence: Evidence) -> str:
    return (
        f"kafka-topics.sh --bootstrap-server {evidence.observation.bootstrap} --delete --topic "
        f"{evidence.found.name}; the sink then makes it anew with one partition. It holds up to "
        f"{evidence.found.records:,} records: if progress is among them, the sink refuses to start without "
        "it, and the ways on are resume_from_witness and start_over."
    )


def _not_compacted(evidence: Evidence) -> Text:
    return Text(
        f"{evidence.title} is not exactly compacted",
        (
            f"Found cleanup.policy={evidence.found.cleanup_policy}, must be compact and nothing else: "
            f"otherwise the broker deletes the progress of {evidence.sink} by age or size, and rows would be "
            "written again."
        ),
    )


def _compact_it(evidence: Evidence) -> str:
    return (
        f"kafka-configs.sh --bootstrap-server {evidence.observation.bootstrap} --alter --entity-type topics "
        f"--entity-name {evidence.found.name} --add-config cleanup.policy=compact"
    )


def _progress_replaced(evidence: Evidence) -> Text:
    return Text(
        f"{evidence.title} is not the one that {evidence.sink} has written its progress to",
        (
            f"{evidence.what_was_recorded} {evidence.what_was_found} Its records are copies, and may be "
            "older than what was written."
        ),
    )


@enum.unique
class PlaceReason(Reason):
    """Why the progress place stops a sink."""

    TOO_MANY_PARTITIONS = ReasonEntry(
        "the progress topic has more than one partition", _too_many_partitions, repair=_delete_it
    )
    NOT_COMPACTED = ReasonEntry(
        "the progress topic is not exactly compacted", _not_compacted, repair=_compact_it
    )
    PROGRESS_REPLACED = ReasonEntry(
        "the records were written to another progress topic", _progress_replaced, ways=(WayOn.ADOPT, *RESET)
    )


SHAPES: dict[Shape, Ruling | Reason] = {
    Shape.FITS: Ruling.GO_ON,
    Shape.UNKNOWN: Ruling.WAIT,
    Shape.PARTITIONS: PlaceReason.TOO_MANY_PARTITIONS,
    Shape.POLICY: PlaceReason.NOT_COMPACTED,
}
"""What to do about the way a progress topic is made."""

PLACES: dict[R, Ruling | Reason] = {
    R.UNKNOWN: Ruling.WAIT,
    R.MISSING: Ruling.GO_ON,
    R.PRESENT: Ruling.GO_ON,
    R.GREW: Ruling.GO_ON,
    R.REPLACED: PlaceReason.PROGRESS_REPLACED,
}
"""What to do about the progress topic that records stand in, compared with the one they were written to."""
