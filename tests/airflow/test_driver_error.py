"""What the end of a driver means."""

from __future__ import annotations

import pickle

import pytest

from airflow_provider_sinks.core import errors
from airflow_provider_sinks.core.launch.status import SinkStatus
from airflow_provider_sinks.core.launch.yarn import exit_code
from airflow_provider_sinks.operators.submit.driver_error import error_of

KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, errors.SinkError) and kind is not errors.SinkError
]


@pytest.mark.parametrize("code", [code for code in errors.ExitCode if code])
def test_every_exit_code_becomes_the_error_that_has_it(code: errors.ExitCode) -> None:
    assert error_of(code, "orders", None, "").exit_code == code


@pytest.mark.parametrize(
    ("code", "words"),
    [
        pytest.param(-9, "was ended by SIGKILL", id="signal"),
        pytest.param(143, "was ended by SIGTERM", id="signal-through-a-shell"),
        pytest.param(1, "ended with exit code 1", id="exit-code"),
        pytest.param(255, "ended with exit code 255", id="no-signal"),
    ],
)
def test_a_silent_end_is_told_by_its_exit_code(code: int, words: str) -> None:
    error = error_of(code, "orders", None, "last line")

    assert f'the job of sink "orders" {words} and did not say why' in str(error)
    assert "last line" in str(error)
    assert error.retryable


@pytest.mark.parametrize(
    ("code", "last_lines"),
    [
        pytest.param(52, "", id="Spark's own exit code"),
        pytest.param(1, "a line\njava.lang.OutOfMemoryError: Java heap space", id="Java's words"),
    ],
)
def test_the_end_of_a_jvm_by_memory_is_told_as_that(code: int, last_lines: str) -> None:
    error = error_of(code, "orders", None, last_lines)

    assert error.primary == 'the driver or an executor of sink "orders" ran out of memory'
    assert error.detail == last_lines.partition("\n")[2]
    assert "spark.driver.memory" in error.hint
    assert error.retryable


def test_the_connections_that_an_error_comes_from_come_with_it() -> None:
    ended = SinkStatus("orders", 1).ended(errors.AuthenticationError("refused").of("kafka_prod"))

    assert error_of(64, "orders", ended, "").connections == ("kafka_prod",)


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_comes_back_as_the_kind_that_it_was_stored_as(kind: type[errors.SinkError]) -> None:
    error = kind.told("what happened", "what was seen", "what helps").of("kafka_prod")
    stored = SinkStatus("orders", 1).ended(error).to_json()

    found = error_of(kind.exit_code, "orders", SinkStatus.from_json(stored), "")

    assert type(found) is kind
    assert (str(found), found.connections) == (str(error), ("kafka_prod",))
    assert exit_code(None, SinkStatus.from_json(stored)) == kind.exit_code


@pytest.mark.parametrize(
    ("name", "code", "kind"),
    [
        pytest.param("QuotaError", 64, errors.ConfigurationError, id="a newer release's"),
        pytest.param("QuotaError", 77, errors.JobFailedError, id="a newer release's, with a new exit code"),
        pytest.param("KeyError", 70, errors.JobFailedError, id="Python's"),
        pytest.param("Problem", 70, errors.JobFailedError, id="another class of the same module"),
    ],
)
def test_a_kind_that_is_not_known_means_what_the_exit_code_says(
    name: str, code: int, kind: type[errors.SinkError]
) -> None:
    ended = SinkStatus("orders", 1).ended(errors.RefusedError("lost"))
    stored = ended.to_json().replace("RefusedError", name).replace('"hint":', '"more":"new","hint":')

    found = error_of(code, "orders", SinkStatus.from_json(stored), "")

    assert type(found) is kind
    assert found.primary == "lost"


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_survives_its_way_between_two_processes(kind: type[errors.SinkError]) -> None:
    error = kind.told("what happened", "what was seen", "what helps").of("kafka_prod")

    found = pickle.loads(pickle.dumps(error))  # noqa: S301  it was written here

    assert (type(found), str(found), found.connections) == (kind, str(error), error.connections)
