"""Whether the source is the one that the sink has read, and still holds what it would read next."""

from __future__ import annotations

import enum

from airflow_provider_sinks.core.decision.classify import ResourceState as R
from airflow_provider_sinks.core.decision.facts import Observation
from airflow_provider_sinks.core.decision.positions import removed_records
from airflow_provider_sinks.core.decision.reasons.reason import Evidence, Reason, ReasonEntry, Text
from airflow_provider_sinks.core.decision.ruling import Ruling
from airflow_provider_sinks.core.decision.start_request import StartRequest
from airflow_provider_sinks.core.decision.way_on import WayOn
from airflow_provider_sinks.core.wording import count, offsets, ranges, summary


class Reach(enum.Enum):
    """Whether the source still holds what the sink would read next."""

    FITS = "every record behind the positions is there, or it cannot be told"
    REMOVED = "records behind a position were removed"


def classify_reach(observation: Observation, request: StartRequest) -> Reach:
    """Say whether retention, or a deletion of records, was faster than the sink."""
    return Reach.REMOVED if removed_records(observation, request) else Reach.FITS


def _source_lost(evidence: Evidence) -> Text:
    return Text(
        f"{evidence.title} is missing, but {evidence.sink} has read from {evidence.recorded_name}",
        (
            f"{evidence.what_was_recorded} The offsets that the sink would resume at mean nothing in any "
            f"other topic: {offsets(evidence.history.known_positions())}."
        ),
    )


def _make_it_again(_: Evidence) -> str:
    return (
        "Make the topic again, or name the right one as source: the sink then refuses the other id and "
        "offers ways on."
    )


def _source_replaced(evidence: Evidence) -> Text:
    return Text(
        f"{evidence.title} is not the one that {evidence.sink} has read from",
        (
            f"{evidence.what_was_recorded} {evidence.what_was_found} Spark would go on at the old offsets of "
            f"the new topic, silently: {offsets(evidence.history.known_positions())}."
        ),
    )


def _records_removed(evidence: Evidence) -> Text:
    removed = removed_records(evidence.observation, evidence.request)
    lost = sum(first - position for position, first in removed.values())
    return Text(
        f"{evidence.sink} has missed up to {count(lost, 'record')} of {evidence.title}",
        (
            f"Removed before it read them are offsets {ranges(removed)} (by source partition): retention "
            f"took them, or somebody deleted them. Recorded are {summary(evidence.history)}."
        ),
    )


@enum.unique
class SourceReason(Reason):
    """Why the source stops a sink."""

    SOURCE_LOST = ReasonEntry("the source topic is missing", _source_lost, repair=_make_it_again)
    SOURCE_REPLACED = ReasonEntry(
        "the source topic is another one", _source_replaced, ways=(WayOn.ADOPT, WayOn.START_OVER)
    )
    RECORDS_REMOVED = ReasonEntry(
        "source records were removed before the sink read them",
        _records_removed,
        ways=(WayOn.SKIP_LOST, WayOn.START_OVER),
    )


SOURCES: dict[tuple[bool, R], Ruling | Reason] = {
    # is a source recorded?
    (False, R.UNKNOWN): Ruling.WAIT,
    (False, R.MISSING): Ruling.WAIT,
    (False, R.PRESENT): Ruling.GO_ON,
    (False, R.GREW): Ruling.GO_ON,
    (False, R.REPLACED): Ruling.GO_ON,
    (True, R.UNKNOWN): Ruling.WAIT,
    (True, R.MISSING): SourceReason.SOURCE_LOST,
    (True, R.PRESENT): Ruling.GO_ON,
    (True, R.GREW): Ruling.GO_ON,
    (True, R.REPLACED): SourceReason.SOURCE_REPLACED,
}
"""What to do about the source. A missing one is not ours to make: a new sink waits for it."""

REACHES: dict[Reach, Ruling | Reason] = {
    Reach.FITS: Ruling.GO_ON,
    Reach.REMOVED: SourceReason.RECORDS_REMOVED,
}
"""What to do about the records that the source still holds, if it is the recorded one."""
