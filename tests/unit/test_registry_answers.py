"""An address may lead to any server: what that one answers is not shown, but for the errors of a registry."""

from __future__ import annotations

import json
import re

import pytest

from airflow_provider_sinks.clients.schema_registry import confluent
from airflow_provider_sinks.clients.schema_registry.client import SchemaRegistry
from airflow_provider_sinks.clients.schema_registry.options import RegistryOptions
from airflow_provider_sinks.core.errors import SinkError
from tests.listening_broker import Listener, listening_service

PRIVATE = "a private word"
_LONGEST = 1200


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(confluent._PATIENCE, "max.retries", 0)


def asked(service: Listener) -> str:
    """Ask a server as if it were a registry, and return the error."""
    registry = SchemaRegistry(RegistryOptions("r", {"url": f"http://{service.address}"}))
    with pytest.raises(SinkError) as error:
        registry.kinds()
    registry.close()
    return str(error.value)


def told(status: int, answer: object) -> str:
    """Return what is told of an answer."""
    content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    with listening_service(content, status) as service:
        return asked(service)


@pytest.mark.parametrize("status", [400, 401, 404, 409, 422, 500, 503])
@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(f"<html>{PRIVATE}</html>".encode(), id="a page"),
        pytest.param({"message": PRIVATE}, id="a message without a code"),
        pytest.param({"error_code": None, "message": PRIVATE}, id="no code"),
        pytest.param({"error_code": PRIVATE, "message": PRIVATE}, id="a code that is no number"),
        pytest.param({"error_code": 50001, "message": {"is": PRIVATE}}, id="a message that is no text"),
        pytest.param([PRIVATE], id="a list"),
        pytest.param({"secret": PRIVATE}, id="another object"),
    ],
)
def test_what_is_no_error_of_a_registry_is_not_shown(status: int, answer: object) -> None:
    said = told(status, answer)

    assert PRIVATE not in said
    assert str(status) in said or status in (409, 422)
    assert "no error as a schema registry tells it" in said


def test_of_another_answer_its_length_is_told() -> None:
    assert "HTTP 500: no error as a schema registry tells it, but 12 bytes" in told(500, b"<html/>\r\n'x\"")


def test_an_error_of_a_registry_is_one_line_of_bounded_length() -> None:
    message = "Subject \n\x1b[31m 'orders'\tnot\u2028found. " + 5000 * "x"

    said = told(500, {"error_code": 40401, "message": message})

    [line] = [line for line in said.splitlines() if "orders" in line]
    assert re.search(r"HTTP 500: Subject \[31m 'orders' not found\. x+\.\.\. \(error code 40401\)", line)
    assert len(line) < _LONGEST


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param([PRIVATE], id="kinds that are no names"),
        pytest.param({PRIVATE: 1}, id="an object"),
        pytest.param(PRIVATE, id="a text"),
        pytest.param(["AVRO"] * 100, id="too many"),
        pytest.param(PRIVATE.encode(), id="no JSON"),
    ],
)
def test_what_is_no_list_of_kinds_is_no_registry(answer: object) -> None:
    said = told(200, answer)

    assert "answers, and not as a schema registry does" in said
    assert PRIVATE not in said


def test_what_stands_in_the_place_of_http_is_not_shown() -> None:
    with listening_service(b"") as service:
        service.greeting = f"SSH-2.0-{PRIVATE}\r\n".encode()
        said = asked(service)

    assert "RemoteProtocolError" in said
    assert PRIVATE not in said
