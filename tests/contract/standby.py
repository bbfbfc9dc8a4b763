"""A standby of a Postgres: made of a base backup, it follows the primary and takes no write."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from airflow_provider_sinks.clients.wait import holds_within
from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.local.processes import LocalServiceError

_SECONDS = 120.0


class Standby(Postgres):
    """A server that streams from a primary.

    :param folder: for its log, and for its data unless we are root.
    """

    def __init__(self, folder: Path, primary: Postgres) -> None:
        super().__init__(folder)
        self.user, self.password = primary.user, primary.password
        self._primary = primary

    @classmethod
    def of(cls, primary: Postgres, folder: Path) -> Standby:
        """Start one, and return when it answers."""
        server = cls(folder, primary)
        try:
            server._make_data_folder()
            server._service.start()
            server._service.wait_until(server._answers, _SECONDS)
        except BaseException:
            server.stop()
            raise
        return server

    def promote(self) -> None:
        """Make a primary of it."""
        with self.connect() as connection:
            connection.execute("SELECT pg_promote()")

    def has_seen(self, table: str) -> bool:
        """Return whether a table of the primary has arrived within the time."""
        return holds_within(lambda: self._has(table), _SECONDS, pause_seconds=0.1)

    def _has(self, table: str) -> bool:
        with self.connect() as connection:
            found = connection.execute("SELECT to_regclass(%s) IS NOT NULL", [table]).fetchone()
        return found == (True,)

    def _make_data_folder(self) -> None:
        primary = self._primary
        done = subprocess.run(
            [
                str(self._programs / "pg_basebackup"),
                f"--pgdata={self._data}",
                f"--host={primary.host}",
                f"--port={primary.port}",
                f"--username={primary.user}",
                "--write-recovery-conf",
                "--checkpoint=fast",
                "--no-sync",
            ],
            capture_output=True,
            text=True,
            check=False,
            user=self._runs_as,
            cwd=self._private,
            env={**os.environ, "PGPASSWORD": primary.password},
        )
        if done.returncode != 0:
            raise LocalServiceError("cannot make a standby", f"{done.stdout}{done.stderr}".strip())
