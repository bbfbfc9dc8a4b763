"""Why a query ended: our own error is found in Spark's words, and what is known gets a reason and a hint."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException

from airflow_provider_sinks.core.errors import (
    AuthenticationError,
    ConfigurationError,
    ExitCode,
    FencedError,
    JobFailedError,
    Problem,
    RefusedError,
    SinkError,
    UnavailableError,
)
from airflow_provider_sinks.streaming.failures import (
    ended_by_metrics,
    explain,
    met_an_older_driver,
    unexpected,
)

_JAVA = (
    "[STREAM_FAILED] Query [id = 1] terminated with exception: Job aborted\nCaused by: java.io.{}\n\tat a.b.C"
)


@pytest.mark.parametrize(
    ("text", "code", "primary"),
    [
        ("java.lang.OutOfMemoryError: Java heap space", ExitCode.FAILED, "ran out of memory"),
        (_JAVA.format("IOException: No space left on device"), ExitCode.FAILED, "has no room left"),
        (_JAVA.format("IOException: Disk quota exceeded"), ExitCode.FAILED, "has no room left"),
        (_JAVA.format("IOException: File too large"), ExitCode.FAILED, "has no room left"),
        (
            _JAVA.format("IOException: Mkdirs failed to create x"),
            ExitCode.CONFIGURATION,
            "cannot make the folder",
        ),
        (
            "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: kafka.",
            ExitCode.CONFIGURATION,
            "cannot read Kafka",
        ),
        ("NoClassDefFoundError: org/apache/kafka/clients/A", ExitCode.CONFIGURATION, "cannot read Kafka"),
        ("Timed out waiting for a node assignment. Call: listNodes", ExitCode.UNAVAILABLE, "do not answer"),
        (
            "Some data may have been lost because they are gone",
            ExitCode.FAILED,
            "are gone before they were read",
        ),
        (_JAVA.format("IOException: something else"), ExitCode.FAILED, "the streaming query of sink"),
    ],
)
def test_known_reasons(text: str, code: ExitCode, primary: str) -> None:
    error = explain(None, RuntimeError(text), "s")

    assert error.exit_code == code
    assert primary in error.primary


def test_innermost_cause_is_the_detail() -> None:
    causes = ["java.lang.RuntimeException: outer", "a.InnerException: the reason"]
    text = "".join(f"Job aborted\nCaused by: {cause}\n\tat a.b.C\n" for cause in causes)

    error = explain(None, RuntimeError(text), "s")

    assert error.detail == "InnerException: the reason"


def test_error_of_a_task_comes_back_as_what_it_was() -> None:
    text = (
        "Traceback (most recent call last):\n"
        "airflow_provider_sinks.core.errors.UnavailableError: writer p0 could not flush\n"
        "Detail: timed out\nHint: look at the brokers\n\n\tat org.apache.spark"
    )

    error = explain(None, RuntimeError(text), "s")

    assert isinstance(error, UnavailableError)
    assert (error.primary, error.detail) == ("writer p0 could not flush", "timed out")
    assert error.hint == "look at the brokers"


@pytest.mark.parametrize(
    "between",
    [
        "During handling of the above exception, another exception occurred",
        "The above exception was the direct cause of the following exception",
    ],
)
def test_of_errors_that_followed_from_one_another_the_last_is_told(between: str) -> None:
    first = (
        "airflow_provider_sinks.connectors.kafka.row_times.HiddenLimitsError: a time is refused\nHint: raise"
    )
    last = "airflow_provider_sinks.core.errors.UnavailableError: a broker does not say\nDetail: asked"
    text = f"Traceback:\n  File a\n{first}\n\n{between}:\n\nTraceback:\n  File b\n{last}\n\n\tat org.apache"

    error = explain(None, RuntimeError(text), "s")

    assert isinstance(error, UnavailableError)
    assert (error.primary, error.detail) == ("a broker does not say", "asked")


@pytest.mark.parametrize(
    "error",
    [
        AuthenticationError("Kafka refused the credentials", "SASL", "Correct the password."),
        FencedError("a newer start took over"),
        ConfigurationError("the row is wrong", [Problem("a", "is odd"), Problem("b", "too")], "Mend both."),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_of_a_task_keeps_its_kind_and_all_its_words(error: SinkError) -> None:
    text = (
        f"Traceback:\nairflow_provider_sinks.core.errors.{type(error).__name__}: {error}\n\n\tat org.apache"
    )

    found = explain(None, RuntimeError(text), "s")

    assert (type(found), str(found)) == (type(error), str(error))


@pytest.mark.parametrize(
    "found", [FencedError("a newer start"), RefusedError("gone"), ConfigurationError("wrong")]
)
def test_error_of_the_driver_stays_as_it_is(found: Exception) -> None:
    assert explain(found, RuntimeError("Spark's own words"), "s") is found


def test_query_that_spark_does_not_take_is_for_the_user_to_mend() -> None:
    found = AnalysisException("[UNRESOLVED_COLUMN] A column `x` cannot be resolved.\n'Project")

    assert explain(found, RuntimeError(""), "s").exit_code == ExitCode.CONFIGURATION
    assert unexpected(found, "s").exit_code == ExitCode.CONFIGURATION


def test_anything_else_is_named_with_its_type() -> None:
    error = unexpected(ValueError("broken"), "s")

    assert isinstance(error, JobFailedError)
    assert error.detail == "ValueError: broken"


def test_an_entry_in_the_checkpoint_that_is_not_its_own_is_known() -> None:
    assert met_an_older_driver(RuntimeError("[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update to the log."))
    assert not met_an_older_driver(RuntimeError("[STREAM_FAILED] Query terminated"))


def test_end_by_metrics_is_no_failure() -> None:
    assert ended_by_metrics(RuntimeError("at scala.Option.get() ... scala.collection.IterableOps.map"))
    assert not ended_by_metrics(RuntimeError("at scala.Option.get()"))
