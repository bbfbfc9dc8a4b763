"""A start that may alter its table, for tests of what it alters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_provider_sinks.connectors.base import SchemaEvolvable
from airflow_provider_sinks.core.evolution import NeedsMigration
from airflow_provider_sinks.testing.played_start import SOURCE, PlayedStart


class EvolvingStart(PlayedStart):
    """A start that has fenced, and has not announced itself."""

    def begun(self) -> EvolvingStart:
        """Open, and look."""
        self.open()
        self.identities = self.connector.observe(SOURCE).identities()
        self.generation = 1
        return self

    def evolvable(self) -> SchemaEvolvable:
        """Return what alters the table."""
        found = self.connector.as_schema_evolvable()
        assert found is not None
        return found

    def migration(self, output: Mapping[str, Any]) -> NeedsMigration:
        """Return what is to be done for a query's columns."""
        found = self.evolvable().diff(output)
        assert isinstance(found, NeedsMigration)
        return found
