"""Whether the records of a sink can be gone on from, whatever became of its outputs."""

from __future__ import annotations

import enum

from airflow_provider_sinks.core.decision.reasons.reason import Evidence, Reason, ReasonEntry, Text
from airflow_provider_sinks.core.decision.ruling import Ruling
from airflow_provider_sinks.core.decision.start_request import StartRequest
from airflow_provider_sinks.core.decision.way_on import RESET
from airflow_provider_sinks.core.progress.history import Finding, History
from airflow_provider_sinks.core.wording import summary


class RecordsState(enum.Enum):
    """Whether the records can be gone on from."""

    FIT = "they can, or there are none"
    NEWER_FORMAT = "of a newer format"
    NEWER_GENERATION = "of a newer generation than this start knew"
    GARBAGE = "not readable"
    BACKWARDS = "contradicting each other"


def classify_records(history: History | None, request: StartRequest) -> RecordsState:
    """Say whether the records can be gone on from; what no way on settles comes first."""
    if history is None:
        return RecordsState.FIT
    found = {flaw.finding for flaw in history.flaws}
    if Finding.NEWER_FORMAT in found:
        return RecordsState.NEWER_FORMAT
    if request.generation is not None and history.generation > request.generation:
        return RecordsState.NEWER_GENERATION
    if Finding.GARBAGE in found:
        return RecordsState.GARBAGE
    is_contradiction = Finding.BACKWARDS in found or (history and Finding.DELETED in found)
    return RecordsState.BACKWARDS if is_contradiction else RecordsState.FIT


def _newer_format(evidence: Evidence) -> Text:
    return Text(f"{evidence.sink} was taken over by a newer start", evidence.flaws(Finding.NEWER_FORMAT))


def _upgrade(_: Evidence) -> str:
    return (
        "Start the sink with the release of airflow-provider-sinks that wrote this, or a later one: "
        "pip install --upgrade airflow-provider-sinks"
    )


def _newer_generation(evidence: Evidence) -> Text:
    newest = evidence.history.in_force
    return Text(
        f"{evidence.sink} was taken over by a newer start",
        (
            f"This start saw generation {evidence.request.generation}; the records now say "
            f"{summary(evidence.history)}, announced by run {newest.run if newest else ''}."
        ),
    )


def _leave_it(_: Evidence) -> str:
    return "Leave the sink to the newer start. To run it from here, stop that one first."


def _garbage(evidence: Evidence) -> Text:
    return Text(
        f"progress of {evidence.sink} cannot be read",
        (
            f"{evidence.flaws(Finding.GARBAGE)}. Somebody else wrote under this sink's own key, so how far "
            "it is cannot be told."
        ),
    )


def _backwards(evidence: Evidence) -> Text:
    return Text(
        f"progress of {evidence.sink} contradicts itself",
        (
            f"{evidence.flaws(Finding.BACKWARDS, Finding.DELETED)}. A writer never goes back within a "
            "generation: two of them wrote, or records were copied or deleted."
        ),
    )


@enum.unique
class RecordsReason(Reason):
    """Why the records stop a sink."""

    NEWER_FORMAT = ReasonEntry("a newer release wrote the progress", _newer_format, repair=_upgrade)
    NEWER_GENERATION = ReasonEntry(
        "a newer generation was announced meanwhile", _newer_generation, repair=_leave_it
    )
    GARBAGE = ReasonEntry("a record under our own key cannot be read", _garbage, ways=RESET, counts=False)
    BACKWARDS = ReasonEntry("the records contradict each other", _backwards, ways=RESET, counts=False)


RECORDS: dict[RecordsState, Ruling | Reason] = {
    RecordsState.FIT: Ruling.GO_ON,
    RecordsState.NEWER_FORMAT: RecordsReason.NEWER_FORMAT,
    RecordsState.NEWER_GENERATION: RecordsReason.NEWER_GENERATION,
    RecordsState.GARBAGE: RecordsReason.GARBAGE,
    RecordsState.BACKWARDS: RecordsReason.BACKWARDS,
}
"""What to do about the records as such."""
