"""The tables of a sink: which they are, and how one is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

import psycopg

from airflow_provider_sinks.connectors.postgres import observe as look
from airflow_provider_sinks.connectors.postgres.creation import CreateTable, identifier
from airflow_provider_sinks.connectors.postgres.progress_table import Place
from airflow_provider_sinks.connectors.postgres.session import Connection
from airflow_provider_sinks.connectors.postgres.spec import Mode, PostgresTarget
from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.core.progress.identity import ResourceKind
from airflow_provider_sinks.core.spec.parts import Tombstones


@dataclass(frozen=True)
class SinkTables:
    """A sink, as far as its Postgres target is concerned.

    :param name: the sink's name.
    :param dead_letter: the table of what is set aside, or ``None``.
    :param timeout: after which a statement, or an idle transaction, ends by itself.
    :param has_deletes: its rows say themselves whether they take their key away.
    """

    name: str
    target: PostgresTarget
    dead_letter: str | None = None
    timeout: timedelta = timedelta(seconds=60)
    has_deletes: bool = False

    @property
    def place(self) -> Place:
        """The rows of its progress."""
        return Place(self.target.progress_table, self.name)

    @property
    def tables(self) -> dict[Role, str]:
        """Its tables."""
        found = {Role.DATA: self.target.table, Role.PROGRESS: self.target.progress_table}
        return found | ({Role.DEAD_LETTER: self.dead_letter} if self.dead_letter else {})

    @property
    def needs(self) -> Mapping[Role, tuple[str, ...]]:
        """What a login must be allowed to do with them."""
        if self.target.mode is Mode.APPEND:
            return look.NEEDS
        deletes = self.target.tombstones is Tombstones.DELETE
        return {**look.NEEDS, Role.DATA: look.NEEDS_OF_DELETE if deletes else look.NEEDS_OF_UPSERT}


def create_table(connection: Connection, creation: CreateTable) -> None:
    """Make a table unless it is there, which takes no right to make one.

    Two who do so at once may collide in the catalog, and both find it there.
    """
    name = identifier(creation.name).as_string(connection)
    if connection.execute("SELECT to_regclass(%s)", [name]).fetchone() != (None,):
        return
    try:
        with connection.transaction():
            connection.execute(creation.statement())
    except (psycopg.errors.UniqueViolation, psycopg.errors.DuplicateTable):
        return
    except (psycopg.errors.InvalidSchemaName, psycopg.errors.InsufficientPrivilege) as error:
        text = creation.statement().as_string(connection)
        problem = Problem(creation.name, str(error).strip())
        raise ConfigurationError(
            f"{creation.role.called(ResourceKind.TABLE)} cannot be made", [problem], f"As its owner: {text}"
        ) from error
