"""A worker's ``~/.netrc`` is for whoever wrote it, and for no server that a connection names."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_provider_sinks.clients.airflow_api import AirflowApi
from airflow_provider_sinks.clients.yarn import YarnClient
from airflow_provider_sinks.core.connection.airflow_account import AirflowAccount
from tests.listening_broker import listening_service


def _airflow(url: str) -> None:
    AirflowApi(AirflowAccount(url, token="of_the_connection")).call("GET", "dags")


def _yarn(url: str) -> None:
    YarnClient(url).version()


def _iceberg(url: str) -> None:
    from airflow_provider_sinks.connectors.iceberg.bound_catalogs import BoundRestCatalog

    BoundRestCatalog("lake", uri=url, credential="login:of_the_connection")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("ask", [_airflow, _yarn, _iceberg])
def test_no_server_hears_a_password_of_the_workers_netrc(
    ask: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = f"canary{uuid.uuid4().hex}"
    netrc = tmp_path / "netrc"
    netrc.write_text(f"default login worker password {planted}\n")
    monkeypatch.setenv("NETRC", str(netrc))

    with listening_service(answer=b"{}") as server, contextlib.suppress(Exception):  # it says nothing of use
        ask(f"http://{server.address}")

    assert server.visits >= 1
    assert ("worker", planted) not in server.logins
    if ask is not _yarn:
        assert server.has_heard("of_the_connection")
