"""Our client of Airflow's REST API, against Airflow's own."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from airflow_provider_sinks.clients.airflow_api import AirflowApi, ApiAnswerError
from airflow_provider_sinks.core.connection.airflow_account import AirflowAccount
from airflow_provider_sinks.core.errors import AuthenticationError, ConfigurationError, UnavailableError
from airflow_provider_sinks.hooks.airflow_account import airflow_api
from tests.airflow.api_server import VIEWER, account
from tests.listening_broker import listening_service

Define = Callable[..., None]


@pytest.fixture
def api(airflow_url: str, connections: Define) -> AirflowApi:
    connections(airflow_api_default=account(airflow_url))
    return airflow_api()


def test_lists_are_read_to_their_end(api: AirflowApi) -> None:
    for number in range(101):
        api.call("POST", "pools", {"name": f"pool {number}", "slots": 1})

    names = [pool["name"] for pool in api.all("pools", "pools", order_by="name")]

    assert len(set(names)) == len(names) == 102


def test_what_is_not_there_is_none_or_an_answer(api: AirflowApi) -> None:
    assert api.find("dags/nobody") is None
    with pytest.raises(ApiAnswerError, match="404 to PATCH") as missing:
        api.call("PATCH", "dags/nobody", {"is_paused": True})

    assert missing.value.is_missing


def test_a_second_of_a_kind_is_a_conflict(api: AirflowApi) -> None:
    api.call("POST", "pools", {"name": "only one", "slots": 1})

    with pytest.raises(ApiAnswerError) as conflict:
        api.call("POST", "pools", {"name": "only one", "slots": 1})

    assert conflict.value.is_conflict


def test_a_token_that_ran_out_is_renewed(api: AirflowApi) -> None:
    api.find("dags/nobody")
    api._token = "an old one"

    assert api.find("dags/nobody") is None


def test_a_token_of_its_own_is_used_and_not_renewed(
    api: AirflowApi, airflow_url: str, connections: Define
) -> None:
    api.find("dags/nobody")
    by_token = account(airflow_url, login=None, password=None, extra={"token": api._token})
    connections(by_token=by_token, by_old_token={**by_token, "extra": {"token": "an old one"}})

    assert airflow_api("by_token").find("dags/nobody") is None
    with pytest.raises(AuthenticationError, match="refused the credentials"):
        airflow_api("by_old_token").find("dags/nobody")


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ({"password": "wrong"}, AuthenticationError, "refused the credentials"),
        ({"login": VIEWER}, AuthenticationError, 'user of connection "api" may not'),
        ({"port": 1}, UnavailableError, "cannot be asked"),
        ({"host": None}, ConfigurationError, "host: is not set"),
        ({"login": None}, ConfigurationError, "neither login and password nor a token"),
        ({"schema": "ftp"}, ConfigurationError, "is ftp"),
        ({"conn_type": "kafka"}, ConfigurationError, "http is needed here"),
        ({"conn_type": "generic"}, ConfigurationError, 'pip install "apache-airflow-providers-http"'),
    ],
)
def test_what_is_wrong_with_the_way_is_said(
    airflow_url: str, connections: Define, changes: dict[str, object], error: type[Exception], said: str
) -> None:
    connections(api={**account(airflow_url), **changes})
    started = time.monotonic()

    with pytest.raises(error, match=said) as failed:
        airflow_api("api").call("POST", "pools", {"name": "of nobody", "slots": 1})

    assert "a password of a test" not in f"{failed.value!r} {failed.value}"
    assert time.monotonic() - started < 15


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503])
def test_an_answer_that_may_be_another_one_a_moment_later_helps_a_retry(status: int) -> None:
    with listening_service(answer=b"{}", status=status) as server:
        account = AirflowAccount(f"http://{server.address}", token="t")
        with pytest.raises(UnavailableError, match=f"HTTP {status}"):
            AirflowApi(account).call("GET", "dags")


@pytest.mark.parametrize(
    ("host", "port", "url"),
    [
        ("airflow", None, "http://airflow"),
        ("airflow", 8080, "http://airflow:8080"),
        ("https://airflow/behind/", 8443, "https://airflow:8443/behind"),
        ("https://airflow:9000/api/v2", 8443, "https://airflow:9000"),
    ],
)
def test_a_host_may_be_a_whole_address(connections: Define, host: str, port: int | None, url: str) -> None:
    connections(api={**account("http://airflow:1"), "host": host, "port": port})

    assert airflow_api("api").account.url == url
