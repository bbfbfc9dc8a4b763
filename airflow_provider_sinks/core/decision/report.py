"""What was seen and what it leads to, as text: a dry run, a sensor and the job print the same."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_provider_sinks.core.decision.facts import Observation
from airflow_provider_sinks.core.decision.verdict import Verdict
from airflow_provider_sinks.core.wording import summary


def render(observation: Observation, verdict: Verdict) -> str:
    """Return a report that a person can read: facts first, then the verdict, then what it would do."""
    return "\n".join(_lines(observation, verdict))


def _lines(observation: Observation, verdict: Verdict) -> Iterator[str]:
    yield f"seen at {observation.at}:"
    for role, facts in observation.topics().items():
        records = f", up to {facts.records:,} records" if facts.high else ""
        yield f"  {role + ':':<18} {facts}{records}"
    yield f"  {'progress:':<18} {_progress(observation)}"
    if observation.checkpoint is not None:
        found = observation.checkpoint
        yield f"  {'checkpoint:':<18} {found.path}, committed {found.committed}, planned {found.planned}"
    if observation.broker is not None:
        yield f"  {'coordinators:':<18} {observation.broker}"
    yield f"verdict: {verdict}"
    yield from (f"  action: {action}" for action in verdict.actions)
    yield from (f"  warning: {warning}" for warning in verdict.warnings)


def _progress(observation: Observation) -> str:
    if observation.history is None:
        return f"could not be read ({observation.history_reason})"
    return summary(observation.history)
