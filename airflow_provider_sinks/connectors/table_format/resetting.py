"""A reset changes only the table that was looked at."""

from __future__ import annotations

from airflow_provider_sinks.core.errors import RefusedError
from airflow_provider_sinks.core.lifecycle.steps import DeleteOutput, EmptyOutput


def demand_looked_at(step: EmptyOutput | DeleteOutput, table_id: str, shown: str) -> None:
    """See that a table is the one that was looked at.

    :param table_id: that it has now.
    :param shown: the same, as a look shows it.
    :raises RefusedError: it is another one.
    """
    if table_id != step.facts.id.partition(" ")[0]:
        raise RefusedError(
            f'table "{step.facts.name}" is not the one any more that was looked at',
            f"It had id {step.facts.id}, now it has {shown}.",
            "Somebody else changes it at this moment; look again before anything is deleted.",
        )
