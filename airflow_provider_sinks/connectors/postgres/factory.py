"""What the Postgres writers of one run have in common, and how executors make them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from airflow_provider_sinks.connectors.postgres.creation import FIRST_DEAD_LETTER_COLUMNS
from airflow_provider_sinks.connectors.postgres.known_tables import Shape
from airflow_provider_sinks.connectors.postgres.options import PostgresOptions
from airflow_provider_sinks.connectors.postgres.progress_table import Place
from airflow_provider_sinks.connectors.postgres.reached import Reached
from airflow_provider_sinks.connectors.postgres.session import Session, SessionName
from airflow_provider_sinks.connectors.postgres.types import Column
from airflow_provider_sinks.core.dead_letters.letter import Circumstances
from airflow_provider_sinks.core.progress.record import WriterId

if TYPE_CHECKING:
    from airflow_provider_sinks.connectors.postgres.writer import PostgresEpochWriter


@dataclass(frozen=True)
class TablePlan:
    """What is written where.

    :param table: the target, with its schema.
    :param columns: those that are written, by name.
    :param key: rows of one key replace each other; empty for plain appends.
    :param deletes: a row may take its key away: one whose columns outside of the key are all null.
    :param dead_letter: the table of what is set aside, or ``None``.
    :param circumstances: where dead letters come from, but for the epoch.
    :param dead_columns: those that the table of dead letters has.
    :param shapes: what must not be altered while it is written, by table.
    :param says_deletes: a row that takes its key away says so, and no other does.
    :param may_drop: a trigger of the table may drop a row without a word.
    """

    table: str
    columns: Mapping[str, Column]
    key: tuple[str, ...] = ()
    deletes: bool = False
    dead_letter: str | None = None
    circumstances: Circumstances = field(default_factory=lambda: Circumstances("", ""))
    dead_columns: tuple[str, ...] = FIRST_DEAD_LETTER_COLUMNS
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    says_deletes: bool = False
    may_drop: bool = False

    @property
    def source(self) -> str:
        """The source topic, for messages."""
        return self.circumstances.source

    @property
    def is_staged(self) -> bool:
        """Rows go through a temporary table: they replace others, or Postgres must cast or count them.

        Of a ``COPY`` nobody tells how many rows a trigger has left of it.
        """
        return bool(self.key) or self.has_casts or self.may_drop

    @property
    def is_counted(self) -> bool:
        """It is seen whether all rows get into the table.

        Not of upserts: a trigger that leaves out what would change nothing drops a row likewise.
        """
        return self.may_drop and not self.key

    @property
    def has_casts(self) -> bool:
        """Postgres casts a column from text."""
        return any(column.is_cast for column in self.columns.values())


@dataclass(frozen=True)
class PostgresWriterFactory:
    """Makes Postgres writers on executors.

    :param generation: the announced one; records of older ones say nothing.
    :param timeout: after which a statement, or an idle transaction, ends by itself.
    :param known: how far the rows were when the run was announced.
    :param options: the connection; holds secrets and is never printed.
    """

    place: Place
    run: str
    generation: int
    plan: TablePlan
    timeout: timedelta
    options: PostgresOptions = field(repr=False)
    known: Reached = field(default_factory=Reached)

    def session(self, writer: WriterId) -> Session:
        """Return how a writer connects."""
        name = SessionName(self.place.table, self.place.sink, self.run, writer)
        return Session(self.options, name, self.timeout)

    def prepare(self, writer: WriterId) -> PostgresEpochWriter:
        """Return a writer that connects in the background."""
        from airflow_provider_sinks.connectors.postgres.writer import PostgresEpochWriter

        return PostgresEpochWriter(self, writer)
