"""What a run writes into which columns: the data table as its query fits it, and that of dead letters."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from airflow_provider_sinks.connectors.base import Say
from airflow_provider_sinks.connectors.postgres.creation import DEAD_LETTER_COLUMNS, CreateTable
from airflow_provider_sinks.connectors.postgres.factory import TablePlan
from airflow_provider_sinks.connectors.postgres.fit import demand_fit, new_table, written
from airflow_provider_sinks.connectors.postgres.known_tables import Shape
from airflow_provider_sinks.connectors.postgres.layout import Layout
from airflow_provider_sinks.connectors.postgres.tables import SinkTables
from airflow_provider_sinks.connectors.postgres.types import Column
from airflow_provider_sinks.core.dead_letters.letter import Circumstances
from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.spec.parts import Tombstones

_LETTER_COLUMNS = tuple(name for name in DEAD_LETTER_COLUMNS if name != "at")


class WrittenTables:
    """The tables of a sink, as one run writes them. What was seen of the data table is kept.

    :param seen: looks at a table by its name; nothing where there is none.
    :param say: told what a person should know.
    """

    def __init__(self, sink: SinkTables, seen: Callable[[str], Layout | None], say: Say) -> None:
        self.given: Mapping[str, str] = {}
        """Spark's types of the query's columns, by name; none until the query is known."""
        self._sink = sink
        self._seen = seen
        self._say = say
        self._layout: Layout | None = None

    def forget(self) -> None:
        """Look at the data table anew when it is asked for: it may be another one, or altered, by now."""
        self._layout = None

    def existing(self) -> Layout:
        """Return the data table as it is; one without columns where there is none."""
        if self._layout is None:
            self._layout = self._seen(self._sink.target.table)
        return self._layout or Layout({})

    def fitting(self) -> Layout:
        """Return the data table, or what it will be, if the query's columns fit it.

        :raises ConfigurationError: they do not.
        """
        table = self.existing()
        if not table.columns:
            return new_table(self.given, self._sink.target)
        demand_fit(self.given, self._sink.target, table)
        return table

    def columns(self) -> dict[str, Column]:
        """Return the columns that are written."""
        return self._chosen(self.fitting())

    def complete(self, creation: CreateTable) -> CreateTable:
        """Return how a table is made; the data table has the columns of the query, where nobody named others.

        :raises ConfigurationError: Postgres has no such columns.
        """
        if creation.role is not Role.DATA or creation.columns or not self.given:
            return creation
        table = new_table(self.given, self._sink.target)
        return creation.with_columns({name: column.kind for name, column in table.columns.items()})

    def plan(self, circumstances: Circumstances) -> TablePlan:
        """Return what the writers of the run write.

        :param circumstances: where dead letters come from, but for the epoch.
        """
        target, dead = self._sink.target, self._sink.dead_letter
        table = self.fitting() if self.given else self.existing()
        columns = self._chosen(table)
        letters, shapes = self._letters(dead)
        return TablePlan(
            target.table,
            columns,
            target.key,
            target.tombstones is Tombstones.DELETE,
            dead,
            circumstances,
            letters,
            {target.table: table.shape(columns), **shapes},
            self._sink.has_deletes,
            "INSERT" in table.triggers,
        )

    def _chosen(self, table: Layout) -> dict[str, Column]:
        names = written(list(self.given or table.columns), self._sink.target)
        return {name: table.columns[name] for name in names}

    def _letters(self, dead: str | None) -> tuple[tuple[str, ...], Mapping[str, Shape]]:
        """Return which columns of dead letters are written: those that the table has; and its shape, by name.

        One that an earlier release made is not altered: that takes its owner, and waits for writers.
        """
        if dead is None:
            return (), {}
        found = self._seen(dead)
        if found is None:
            return _LETTER_COLUMNS, {}
        if missing := [name for name in _LETTER_COLUMNS if name not in found.columns]:
            added = ", ".join(f"ADD {name} {DEAD_LETTER_COLUMNS[name]}" for name in missing)
            self._say(
                f'table "{dead}" lacks {", ".join(missing)}: dead letters are written without. '
                f"To have them: ALTER TABLE {dead} {added}"
            )
        names = tuple(name for name in _LETTER_COLUMNS if name in found.columns)
        return names, {dead: found.shape(names)}
