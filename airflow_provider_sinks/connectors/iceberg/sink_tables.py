"""Which tables a sink has."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from airflow_provider_sinks.connectors.iceberg.spec import IcebergTarget
from airflow_provider_sinks.core.decision.facts import Role


@dataclass(frozen=True)
class SinkTables:
    """A sink, as far as its Iceberg target is concerned.

    :param name: the sink's name.
    :param dead_letter: the table of what is set aside, or ``None``.
    :param every: how often an epoch begins; ``None`` where the sink takes what is there and ends.
    """

    name: str
    target: IcebergTarget
    dead_letter: str | None = None
    every: timedelta | None = None

    @property
    def names(self) -> dict[Role, str]:
        """Its tables; the progress stands in the first."""
        found = {Role.DATA: self.target.table}
        return found | ({Role.DEAD_LETTER: self.dead_letter} if self.dead_letter else {})
