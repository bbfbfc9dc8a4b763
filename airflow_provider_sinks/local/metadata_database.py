"""Airflow's metadata database: in a Postgres, or where there is none, a file of SQLite.

With SQLite the API server may stand still for a minute: it commits an entry of the event log in its event
loop, and so waits for the lock of a request whose own commit waits for that loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from psycopg import sql

from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.local.processes import LocalServiceError

_NAME = "airflow"


@dataclass(frozen=True)
class MetadataDatabase:
    """One Airflow's database.

    :param file: of SQLite, where there is no server.
    :param postgres: the server; Airflow must be able to import psycopg2 and asyncpg.
    """

    file: Path
    postgres: Postgres | None = None

    @property
    def url(self) -> str:
        """What Airflow connects to."""
        if self.postgres is None:
            # On a busy machine a write waits for longer than SQLite's five seconds; a scheduler dies of it.
            return f"sqlite:///{self.file}?timeout=60"
        server = self.postgres
        return f"postgresql+psycopg2://{server.user}:{server.password}@{server.host}:{server.port}/{_NAME}"

    def make(self) -> None:
        """Make it, empty: once, before Airflow makes its tables. A file makes itself."""
        if self.postgres is not None:
            with self.postgres.connect() as server:
                server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(_NAME)))

    def tables(self) -> dict[str, list[tuple[Any, ...]]]:
        """Return the rows of each table: all that an administrator or a backup sees."""
        if self.postgres is None:
            raise LocalServiceError("this Airflow keeps its state in SQLite", hint="start it with postgres=")
        with self.postgres.connect(_NAME) as database:
            names = database.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
            rows = {name: sql.SQL("SELECT * FROM {}").format(sql.Identifier(name)) for (name,) in names}
            return {name: database.execute(every).fetchall() for name, every in rows.items()}
