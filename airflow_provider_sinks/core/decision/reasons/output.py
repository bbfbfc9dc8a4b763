"""Whether an output, data or dead letters, is still the one that the sink has written to.

:data:`~airflow_provider_sinks.core.decision.table.DECISIONS` judges it.
"""

from __future__ import annotations

import enum

from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.decision.reasons.reason import Evidence, Reason, ReasonEntry, Text
from airflow_provider_sinks.core.decision.way_on import WayOn
from airflow_provider_sinks.core.wording import count, summary


def _written(evidence: Evidence) -> str:
    dead = ""
    if evidence.refusal.role is Role.DEAD_LETTER:
        dead = f"{count(evidence.history.dead_ever, 'dead letter')} and "
    return f'Progress topic "{evidence.observation.progress.name}" records {dead}{summary(evidence.history)}.'


def _output_lost(evidence: Evidence) -> Text:
    return Text(
        f"{evidence.title} is missing, but {evidence.sink} has written to {evidence.recorded_name}",
        f"{_written(evidence)} {evidence.what_was_recorded}",
    )


def _output_replaced(evidence: Evidence) -> Text:
    return Text(
        f"{evidence.title} is not the one that {evidence.sink} has written to",
        f"{_written(evidence)} {evidence.what_was_recorded} {evidence.what_was_found}",
    )


@enum.unique
class OutputReason(Reason):
    """Why an output stops a sink."""

    OUTPUT_LOST = ReasonEntry(
        "rows were written to a topic that is missing",
        _output_lost,
        ways=(WayOn.CONTINUE_WITHOUT_OUTPUT, WayOn.START_OVER),
    )
    OUTPUT_REPLACED = ReasonEntry(
        "rows were written to another topic than the one that is there",
        _output_replaced,
        ways=(WayOn.ADOPT, WayOn.START_OVER),
    )
