"""Whether the place where a sink keeps its progress is made as it must be, and the recorded one."""

from __future__ import annotations

import enum

from airflow_provider_sinks.core.decision.classify import Fitness
from airflow_provider_sinks.core.decision.classify import ResourceState as R
from airflow_provider_sinks.core.decision.reasons.reason import Evidence, Reason, ReasonEntry, Text
from airflow_provider_sinks.core.decision.ruling import Ruling
from airflow_provider_sinks.core.decision.way_on import RESET, WayOn


def _progress_unfit(evidence: Evidence) -> Text:
    unfit = evidence.found.unfit
    return Text(f"{evidence.title} {unfit.what if unfit else ''}", unfit.why if unfit else "")


def _mend_it(evidence: Evidence) -> str:
    return evidence.found.unfit.repair if evidence.found.unfit else ""


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

    PROGRESS_UNFIT = ReasonEntry(
        "the progress {kind} is not made as it must be", _progress_unfit, repair=_mend_it
    )
    PROGRESS_REPLACED = ReasonEntry(
        "the records were written to another progress {kind}", _progress_replaced, ways=(WayOn.ADOPT, *RESET)
    )


FITNESSES: dict[Fitness, Ruling | Reason] = {
    Fitness.FITS: Ruling.GO_ON,
    Fitness.UNKNOWN: Ruling.WAIT,
    Fitness.UNFIT: PlaceReason.PROGRESS_UNFIT,
}
"""What to do about the way a progress place is made."""

PLACES: dict[R, Ruling | Reason] = {
    R.UNKNOWN: Ruling.WAIT,
    R.MISSING: Ruling.GO_ON,
    R.PRESENT: Ruling.GO_ON,
    R.GREW: Ruling.GO_ON,
    R.REPLACED: PlaceReason.PROGRESS_REPLACED,
}
"""What to do about the progress place that records stand in, compared with the one they were written to."""
