"""An address may lead to any server: what that one answers is not shown, but for the errors of a registry."""

from __future__ import annotations

import gzip
import json
import re
from typing import Any

import pytest

from airflow_provider_sinks.clients.schema_registry import bounded_answers, client, confluent
from airflow_provider_sinks.clients.schema_registry.client import SchemaRegistry
from airflow_provider_sinks.clients.schema_registry.options import RegistryOptions
from airflow_provider_sinks.core.errors import SinkError
from tests.answering_registry import answering
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


def test_an_answer_without_end_is_not_read() -> None:
    assert "the answer has more than 4,194,304 bytes" in told(200, b" " * (4 * 1024 * 1024 + 1))


def test_an_answer_that_unpacks_to_more_is_not_read() -> None:
    packed = gzip.compress(b" " * 100_000_000)
    head = f"HTTP/1.1 200 Said\r\nContent-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n"
    with listening_service() as service:
        service.greeting = head.encode() + packed
        said = asked(service)

    assert "the answer is packed by 'gzip'" in said


def test_an_answer_that_comes_byte_by_byte_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_answers, "SLOWEST_SECONDS", 0.0)

    assert "the answer has not ended after 0 s" in told(200, ["AVRO"])


def test_a_schema_that_refers_to_more_and_more_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_REFERENCES_MOST", 3)
    with answering() as answers:
        answers.by_path["/schemas/ids/1"] = 200, _referring("s", 1)
        for number in range(1, 9):
            answers.by_path[f"/subjects/s{number}/versions/1"] = 200, _referring("s", number + 1)
        registry = SchemaRegistry(RegistryOptions("r", {"url": answers.url}))
        found = registry.by_id(1)
        registry.close()

    assert found is not None
    assert found.missing == "s4: is behind more than 3 others"


def _referring(name: str, number: int) -> dict[str, Any]:
    one = {"name": f"{name}{number}", "subject": f"{name}{number}", "version": 1}
    return {"schema": '"int"', "references": [one]}
