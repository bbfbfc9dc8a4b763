"""Which tables a sink has."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from airflow_provider_sinks.core.decision.facts import Role


@dataclass(frozen=True)
class SinkTables:
    """A sink, as far as its tables are concerned.

    :param name: the sink's name.
    :param data: the table of its rows, which keeps the progress too.
    :param dead_letter: the table of what is set aside, or ``None``.
    :param every: how often an epoch begins; ``None`` where the sink takes what is there and ends.
    :param has_deletes: its rows say themselves whether they take their key away.
    """

    name: str
    data: str
    dead_letter: str | None = None
    every: timedelta | None = None
    has_deletes: bool = False

    @property
    def names(self) -> dict[Role, str]:
        """Its tables; the progress stands in the first."""
        found = {Role.DATA: self.data}
        return found | ({Role.DEAD_LETTER: self.dead_letter} if self.dead_letter else {})
