"""What the end of a driver means."""

from __future__ import annotations

import pytest

from airflow_provider_sinks.core import errors
from airflow_provider_sinks.core.launch.status import SinkStatus
from airflow_provider_sinks.operators.submit.outcome import error_of


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
