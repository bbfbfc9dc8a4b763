"""Whose the sink is: two owners would fence each other for ever."""

from __future__ import annotations

import enum

from airflow_provider_sinks.core.decision.reasons.reason import Evidence, Reason, ReasonEntry, Text
from airflow_provider_sinks.core.decision.ruling import Ruling
from airflow_provider_sinks.core.decision.start_request import StartRequest
from airflow_provider_sinks.core.decision.way_on import WayOn
from airflow_provider_sinks.core.progress.history import History
from airflow_provider_sinks.core.wording import summary


def is_foreign(history: History | None, request: StartRequest) -> bool:
    """Return whether the run in force belongs to another Airflow."""
    newest = history.in_force if history else None
    return newest is not None and newest.owner != request.owner


def _other_owner(evidence: Evidence) -> Text:
    newest = evidence.history.in_force
    owner, run = (newest.owner, newest.run) if newest else ("", "")
    return Text(
        f"{evidence.sink} belongs to another Airflow",
        (
            f"{evidence.title} records owner {owner}, this Airflow is {evidence.request.owner}. Newest: "
            f"{summary(evidence.history)}, run {run}. Two owners would fence each other for ever."
        ),
    )


@enum.unique
class OwnerReason(Reason):
    """Why the owner stops a sink."""

    OTHER_OWNER = ReasonEntry(
        "the sink belongs to another Airflow",
        _other_owner,
        ways=(WayOn.TAKE_OVER,),
        runs_elsewhere=True,
    )


OWNERS: dict[bool, Ruling | Reason] = {
    # does the run in force belong to another Airflow?
    False: Ruling.GO_ON,
    True: OwnerReason.OTHER_OWNER,
}
"""What to do about the owner that the records name."""
