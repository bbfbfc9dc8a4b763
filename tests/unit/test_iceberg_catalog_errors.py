"""What is told of a catalog's errors: what its API says, and nothing else that some server answers."""

from __future__ import annotations

import json
import socket
import threading
from typing import Any

import pytest

from airflow_provider_sinks.connectors.iceberg.catalog import TableCatalog
from airflow_provider_sinks.connectors.iceberg.options import IcebergOptions
from airflow_provider_sinks.connectors.table_format.errors import HiddenError, MissingError
from airflow_provider_sinks.core.errors import AuthenticationError, SinkError, UnavailableError
from tests.answering_catalog import CONFIG, TABLE, TOKENS, Said, answering_catalog

INSIDE = b"for-inner-eyes-only aws_secret=xyz"
AWAY = "/latest/meta-data"


def load(url: str, login: str | None = None) -> Exception:
    """Return why a table could not be loaded."""
    tokens = {"oauth2-server-uri": url + TOKENS} if login else {}
    fields: dict[str, Any] = {"port": None, "login": login, "password": login, "schema": None}
    extra = {"catalog": "rest", **tokens}
    catalog = TableCatalog(IcebergOptions.from_connection("lake", host=url, **fields, extra=extra))
    with pytest.raises((SinkError, MissingError, HiddenError)) as told:
        catalog.load("web.clicks")
    return told.value


def error(status: int, kind: str, message: str) -> Said:
    """Return an error as the API of catalogs has it."""
    return Said(status, json.dumps({"error": {"code": status, "type": kind, "message": message}}).encode())


@pytest.mark.parametrize("path", [CONFIG, TABLE])
@pytest.mark.parametrize("status", [200, 400, 401, 403, 404, 409, 500, 501, 503])
def test_what_is_no_answer_of_a_catalog_is_not_shown(path: str, status: int) -> None:
    with answering_catalog({path: Said(status, INSIDE)}) as catalog:
        told = str(load(catalog.url))

    assert "inner-eyes" not in told
    assert "pydantic" not in told
    assert status == 200 or f"HTTP {status}, and no error as a catalog tells it" in told


def test_json_that_is_no_error_of_a_catalog_is_not_shown() -> None:
    inside = json.dumps({"error": {"code": 404, "message": "for-inner-eyes-only"}}).encode()
    with answering_catalog({TABLE: Said(404, inside)}) as catalog:
        told = load(catalog.url)

    assert str(told) == "HTTP 404, and no error as a catalog tells it"


@pytest.mark.parametrize(
    ("status", "kind"), [(404, MissingError), (403, HiddenError), (401, AuthenticationError)]
)
def test_an_error_of_a_catalog_is_shown_on_one_line(status: int, kind: type[Exception]) -> None:
    with answering_catalog({TABLE: error(status, "SomeException", "it is\nso")}) as catalog:
        told = load(catalog.url)

    assert isinstance(told, kind)
    assert f"SomeException: it is so (HTTP {status})" in str(told)


def test_a_refused_login_is_told_as_oauth_has_it() -> None:
    body = json.dumps({"error": "invalid_client", "error_description": "no such id"}).encode()
    with answering_catalog({TOKENS: Said(401, body)}) as catalog:
        told = load(catalog.url, "id")

    assert isinstance(told, AuthenticationError)
    assert told.detail == "invalid_client: no such id (HTTP 401)"


@pytest.mark.parametrize("path", [CONFIG, TABLE, TOKENS])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_nobody_follows_a_catalog_to_another_address(path: str, status: int) -> None:
    answers = {
        TOKENS: {"access_token": "a", "token_type": "b"},
        AWAY: {},
        path: Said(status, location=AWAY),
    }
    with answering_catalog(answers) as catalog:
        told = load(catalog.url, "id")

        assert AWAY not in catalog.asked
    assert isinstance(told, UnavailableError)
    assert told.detail == f"HTTP {status}: it leads on to another address, which is not followed"


def test_the_greeting_of_a_server_that_speaks_no_http_is_not_shown() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            connected, _ = server.accept()
            with connected:
                connected.sendall(b"SSH-2.0-" + INSIDE + b"\r\n")
                connected.recv(4096)

        threading.Thread(target=greet, daemon=True).start()
        told = load(f"http://127.0.0.1:{server.getsockname()[1]}")

    assert "inner-eyes" not in str(told)


def test_a_catalog_that_does_not_listen_is_told_with_its_reason() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    told = load(f"http://127.0.0.1:{port}")

    assert "Connection refused" in str(told)
