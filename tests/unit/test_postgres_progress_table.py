from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from psycopg import sql

from airflow_provider_sinks.connectors.postgres.progress_table import end_sessions
from airflow_provider_sinks.connectors.postgres.session import Connection, SessionName


class Server:
    """Answers nothing, and remembers what it was told."""

    def __init__(self, version: int) -> None:
        self.info = SimpleNamespace(server_version=version)
        self.said: list[str] = []

    def execute(self, query: sql.Composed, values: list[Any]) -> None:
        del values
        self.said.append(query.as_string(None))


@pytest.mark.parametrize(("version", "call"), [(130022, "(pid)"), (140000, "(pid, 5000)")])
def test_a_server_that_cannot_wait_for_an_end_is_not_asked_to(version: int, call: str) -> None:
    server = Server(version)
    end_sessions(cast("Connection", server), SessionName("s.p", "orders", "run", "driver"))
    assert f"pg_terminate_backend{call}" in server.said[0]
