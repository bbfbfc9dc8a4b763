"""Whether the same generation may take the spec as it is now, beside what it has written by another one."""

from __future__ import annotations

import enum

from airflow_provider_sinks.core.decision.facts import Observation
from airflow_provider_sinks.core.decision.reasons.reason import Evidence, Reason, ReasonEntry, Text
from airflow_provider_sinks.core.decision.ruling import Ruling
from airflow_provider_sinks.core.decision.start_request import StartRequest
from airflow_provider_sinks.core.decision.way_on import WayOn
from airflow_provider_sinks.core.redefinition.compare import (
    Redefinition,
    RedefinitionState,
    WrittenSoFar,
    compare,
)
from airflow_provider_sinks.core.wording import summary


def redefinition_of(observation: Observation, request: StartRequest) -> Redefinition | None:
    """Return what the spec changes of the one in force, or nothing where none is recorded."""
    history = observation.known
    in_force = history.in_force
    if not request.declared or in_force is None or not in_force.spec:
        return None
    written = WrittenSoFar(
        has_rows=history.rows_ever > 0,
        has_letters=history.dead_ever > 0,
        has_checkpoint=bool(history.checkpoint),
    )
    return compare(in_force.spec, request.declared, written)


def classify_spec(observation: Observation, request: StartRequest) -> RedefinitionState:
    """Say what the differences come to; what nobody recorded stops nothing."""
    found = redefinition_of(observation, request)
    return RedefinitionState.NOT_COMPARED if found is None else found.state


def _changed(evidence: Evidence) -> Text:
    found = redefinition_of(evidence.observation, evidence.request) or Redefinition()
    stopping = "\n  ".join(str(one) for one in found.differences if one.stops)
    others = [one.option for one in found.differences if not one.stops]
    more = f" Changed too, and would stop nothing: {', '.join(others)}." if others else ""
    return Text(
        f"the spec of {evidence.sink} was changed in a way that its generation cannot take",
        f"{stopping}\n  Recorded are {summary(evidence.history)}.{more}",
    )


def _begin_anew(evidence: Evidence) -> str:
    return (
        "To keep what is in force, take the change back. To write everything anew by the spec as it is now, "
        f"into an empty output: airflow sinks reset {evidence.request.sink} --data empty."
    )


@enum.unique
class SpecReason(Reason):
    """Why a changed spec stops a sink."""

    SPEC_CHANGED = ReasonEntry(
        "the spec was changed so that rows of both would be wrong together",
        _changed,
        ways=(WayOn.GO_ON_CHANGED, WayOn.START_OVER),
        repair=_begin_anew,
        by_spec=True,
    )
    STATE_OF_ANOTHER_QUERY = ReasonEntry(
        "the spec was changed, and the state in Spark's checkpoint is of the query before",
        _changed,
        ways=(WayOn.START_OVER,),
        repair=_begin_anew,
        by_spec=True,
    )


SPECS: dict[RedefinitionState, Ruling | Reason] = {
    RedefinitionState.NOT_COMPARED: Ruling.GO_ON,
    RedefinitionState.SAME: Ruling.GO_ON,
    RedefinitionState.GOES_ON: Ruling.GO_ON,
    RedefinitionState.ELSEWHERE: Ruling.GO_ON,  # whether it is another one is judged by its id
    RedefinitionState.NEW_GENERATION: SpecReason.SPEC_CHANGED,
    RedefinitionState.NEW_STATE: SpecReason.STATE_OF_ANOTHER_QUERY,
}
"""What to do about a spec that is another one than that in force."""
