"""Whether the source is the one that the sink has read, and still holds what it would read next."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from airflow_provider_sinks.core.decision.classify import ResourceState as R
from airflow_provider_sinks.core.decision.facts import Existence, Observation
from airflow_provider_sinks.core.decision.positions import (
    cut_partitions,
    goes_on_in_source,
    read_and_lost,
    read_beyond_end,
    removed_records,
)
from airflow_provider_sinks.core.decision.reasons.reason import Evidence, Reason, ReasonEntry, Text
from airflow_provider_sinks.core.decision.ruling import Ruling
from airflow_provider_sinks.core.decision.start_request import StartRequest
from airflow_provider_sinks.core.decision.way_on import WayOn
from airflow_provider_sinks.core.wording import count, offsets, ranges, summary


class Reach(enum.Enum):
    """Whether the source still holds what the sink would read next."""

    FITS = "every record behind the positions is there, or it cannot be told"
    REMOVED = "records behind a position were removed"
    SHORTER = "it ends before a position"
    REWRITTEN = "records before a position were lost, and others have their offsets"
    CUT = "a partition was added, its first records are gone, and a stateful query goes on"


def classify_reach(observation: Observation, request: StartRequest) -> Reach:
    """Say whether retention, a deletion of records, or a loss of them was faster than the sink."""
    if read_beyond_end(observation, request):
        return Reach.SHORTER
    if read_and_lost(observation, request):
        return Reach.REWRITTEN
    if removed_records(observation, request):
        return Reach.REMOVED
    is_cut = request.stateful and _is_begun(observation) and cut_partitions(observation, request)
    return Reach.CUT if is_cut else Reach.FITS


def may_be_adopted_behind_a_gap(
    state: R, reach: Reach, observation: Observation, request: StartRequest
) -> bool:
    """Say whether a source that a person may adopt does not have what the sink would read next.

    Both must be said: whoever takes the source for the recorded one does not skip what it lacks unasked.
    """
    may_be_adopted = state is R.REPLACED or (state is not R.UNKNOWN and reach is Reach.REWRITTEN)
    is_seen = observation.source.existence is Existence.PRESENT
    if not (may_be_adopted and is_seen and goes_on_in_source(observation, request)):
        return False
    return bool(removed_records(observation, request))


def _is_begun(observation: Observation) -> bool:
    """Return whether Spark has begun an epoch with the checkpoint in force, which then holds the state."""
    checkpoint, history = observation.checkpoint, observation.known
    return (checkpoint.planned if checkpoint else history.batch(history.checkpoint)) >= 0


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
    if not _is_recorded(evidence):
        return Text(
            f"{evidence.title} begins behind the place where {evidence.sink} would go on",
            (
                f"It does not have offsets {ranges(removed)} (by source partition), up to "
                f"{count(lost, 'record')}. Recorded are {summary(evidence.history)}."
            ),
        )
    return Text(
        f"{evidence.sink} has missed up to {count(lost, 'record')} of {evidence.title}",
        (
            f"Removed before it read them are offsets {ranges(removed)} (by source partition): retention "
            f"took them, or somebody deleted them. Recorded are {summary(evidence.history)}."
        ),
    )


def _is_recorded(evidence: Evidence) -> bool:
    recorded = evidence.recorded
    return recorded is not None and evidence.found.identity.compared_with(recorded).is_same


def _shorter(evidence: Evidence) -> Text:
    lost = read_beyond_end(evidence.observation, evidence.request)
    return Text(
        f"{evidence.title} ends before the place that {evidence.sink} has read to",
        (
            f"Read were offsets {ranges(lost)} (by source partition), which it does not have: a broker lost "
            "them, as in an unclean leader election. Records that were written since, or will be, have the "
            f"offsets of those, and would never be read. Recorded are {summary(evidence.history)}."
        ),
    )


def _rewritten(evidence: Evidence) -> Text:
    lost = read_and_lost(evidence.observation, evidence.request)
    return Text(
        f"{evidence.title} has lost records that {evidence.sink} has read, and others have their offsets",
        (
            f"Read were offsets {ranges(lost)} (by source partition); what is there now was written under a "
            "later leader: a broker lost those records, as in an unclean leader election. The sink would go "
            f"on behind what was written in their place, silently. Recorded are {summary(evidence.history)}."
        ),
    )


def _rewind_to_the_new_ones(evidence: Evidence) -> str:
    lost = read_and_lost(evidence.observation, evidence.request)
    return (
        "To read what has these offsets now: airflow sinks rewind "
        f"{evidence.request.sink} --offsets {_begins(lost)}."
    )


def _begins(lost: Mapping[int, tuple[int, int]]) -> str:
    """Return the first offset of each range as a command takes them."""
    return ",".join(f"{partition}:{first}" for partition, (first, _) in lost.items())


def _rewind_to_what_is_left(evidence: Evidence) -> str:
    lost = read_beyond_end(evidence.observation, evidence.request)
    return (
        f"To go on where it ends now: airflow sinks rewind {evidence.request.sink} "
        f"--offsets {_begins(lost)}. Where records before that are others than those that were read already, "
        "name the first of them."
    )


def _cut(evidence: Evidence) -> Text:
    begins = offsets(cut_partitions(evidence.observation, evidence.request))
    return Text(
        f"{evidence.title} has new partitions whose first records {evidence.sink} can never read",
        (
            f"They begin at offsets {begins}: retention took what was before, or somebody deleted it. Spark "
            "takes a new partition into a query that goes on from offset 0 only, and the query keeps state, "
            f"so it cannot begin anew. Recorded are {summary(evidence.history)}."
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
    SOURCE_SHORTER = ReasonEntry(
        "the source topic ends before the place that the sink has read to",
        _shorter,
        ways=(WayOn.START_OVER,),
        repair=_rewind_to_what_is_left,
    )
    SOURCE_REWRITTEN = ReasonEntry(
        "records that the sink has read were lost from the source topic, and others have their offsets",
        _rewritten,
        ways=(WayOn.ADOPT, WayOn.START_OVER),
        repair=_rewind_to_the_new_ones,
    )
    PARTITION_CUT = ReasonEntry(
        "a stateful plan cannot take in a new source partition whose first records are gone",
        _cut,
        ways=(WayOn.START_OVER,),
    )


OF_REACH = frozenset(
    {
        SourceReason.RECORDS_REMOVED,
        SourceReason.SOURCE_SHORTER,
        SourceReason.SOURCE_REWRITTEN,
        SourceReason.PARTITION_CUT,
    }
)
"""What a person settles who says where to go on."""


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
    Reach.SHORTER: SourceReason.SOURCE_SHORTER,
    Reach.REWRITTEN: SourceReason.SOURCE_REWRITTEN,
    Reach.CUT: SourceReason.PARTITION_CUT,
}
"""What to do about the records that the source still holds, if it is the recorded one."""
