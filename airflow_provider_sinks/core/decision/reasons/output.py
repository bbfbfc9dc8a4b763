"""Whether an output, data or dead letters, is still the one that the sink has written to.

:data:`~airflow_provider_sinks.core.decision.table.DECISIONS` judges which one it is; whether rows fit into it
is a table here.
"""

from __future__ import annotations

import enum

from airflow_provider_sinks.core.decision.classify import Fitness
from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.decision.reasons.reason import Evidence, Reason, ReasonEntry, Text
from airflow_provider_sinks.core.decision.ruling import Ruling
from airflow_provider_sinks.core.decision.way_on import WayOn
from airflow_provider_sinks.core.wording import count, summary


def _written(evidence: Evidence) -> str:
    dead = ""
    if evidence.refusal.role is Role.DEAD_LETTER:
        dead = f"{count(evidence.history.dead_ever, 'dead letter')} and "
    progress = evidence.observation.progress.heading(Role.PROGRESS)
    return f"{progress} records {dead}{summary(evidence.history)}."


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


def _output_unfit(evidence: Evidence) -> Text:
    unfit = evidence.found.unfit
    return Text(f"{evidence.title} {unfit.what if unfit else ''}", unfit.why if unfit else "")


def _mend_it(evidence: Evidence) -> str:
    return evidence.found.unfit.repair if evidence.found.unfit else ""


@enum.unique
class OutputReason(Reason):
    """Why an output stops a sink."""

    OUTPUT_LOST = ReasonEntry(
        "rows were written to a {kind} that is missing",
        _output_lost,
        ways=(WayOn.CONTINUE_WITHOUT_OUTPUT, WayOn.START_OVER),
    )
    OUTPUT_REPLACED = ReasonEntry(
        "rows were written to another {kind} than the one that is there",
        _output_replaced,
        ways=(WayOn.ADOPT, WayOn.START_OVER),
    )
    OUTPUT_UNFIT = ReasonEntry(
        "a {kind} is there that cannot take the sink's rows", _output_unfit, repair=_mend_it
    )


FITNESSES: dict[Fitness, Ruling | Reason] = {
    Fitness.FITS: Ruling.GO_ON,
    Fitness.UNKNOWN: Ruling.WAIT,
    Fitness.UNFIT: OutputReason.OUTPUT_UNFIT,
}
"""What to do about an output that is there, whichever it is: rows must fit into it."""
