"""Airflow's own REST API in this process, over the database of the other tests: real answers, in a second."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from airflow_provider_sinks.clients.airflow_api import AirflowApi
from airflow_provider_sinks.core.connection.airflow_account import CONN_ID
from airflow_provider_sinks.local.ports import LOCALHOST, free_port
from tests.airflow_side import HOME

ADMIN, VIEWER, PASSWORD = "admin", "viewer", "a password of a test"
_START_SECONDS = 120.0
_ANSWER_SECONDS = 120.0
"""Its process is that of the tests, and has other things to do."""


def account(url: str, user: str = ADMIN, **changes: object) -> dict[str, object]:
    """Return the fields of an Airflow connection that leads to the API."""
    host, _, port = url.removeprefix("http://").partition(":")
    fields = {"host": host, "port": int(port), "login": user, "password": PASSWORD}
    return {"conn_type": "http", **fields, **changes}


@contextmanager
def serve(home: Path) -> Iterator[str]:
    """Run the API server; give its address."""
    passwords = home / "passwords.json"
    passwords.write_text(json.dumps({ADMIN: PASSWORD, VIEWER: PASSWORD}))
    os.environ |= {
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{ADMIN}:admin,{VIEWER}:viewer",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
        "AIRFLOW__API_AUTH__JWT_SECRET": "a secret of a test, long enough for its algorithm" * 2,
    }
    import uvicorn
    from airflow.api_fastapi.app import create_app

    from airflow_provider_sinks.hooks.airflow_account import airflow_api

    port = free_port()
    config = uvicorn.Config(create_app(apps="core"), host=LOCALHOST, port=port, log_level="error")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + _START_SECONDS
    while not server.started:
        assert thread.is_alive()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(AirflowApi.__init__, "__defaults__", (_ANSWER_SECONDS,))
            patch.setattr(airflow_api, "__defaults__", (CONN_ID, _ANSWER_SECONDS))
            yield f"http://{LOCALHOST}:{port}"
    finally:
        server.should_exit = True
        thread.join(10)


@pytest.fixture(scope="session")
def airflow_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Airflow's REST API over the database of the other tests."""
    request.getfixturevalue("airflow_db")
    with serve(HOME) as url:
        yield url
