"""How an error of a sink becomes Airflow's: fail at once, or try again.

Trying again cannot help when a person must change something (configuration, credentials), must decide
something (refused), or has already started a successor (fenced). Everything else heals by itself: what was
committed stays, and the next try resumes exactly there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from airflow.sdk.definitions.retry_policy import ExceptionRetryPolicy, RetryAction, RetryRule
from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_sinks.core.errors import SinkError

_ERRORS = "airflow_provider_sinks.core.errors"

SINK_RETRY_POLICY = ExceptionRetryPolicy(
    rules=[
        RetryRule(
            exception=[f"{_ERRORS}.ConfigurationError", f"{_ERRORS}.AuthenticationError"],
            action=RetryAction.FAIL,
            reason="needs you: change the sink or its connections",
        ),
        RetryRule(
            exception=f"{_ERRORS}.RefusedError",
            action=RetryAction.FAIL,
            reason="needs you: choose one of the ways on",
        ),
        RetryRule(
            exception=f"{_ERRORS}.FencedError",
            action=RetryAction.FAIL,
            reason="a newer start of this sink took over",
        ),
        RetryRule(
            exception=[f"{_ERRORS}.UnavailableError", f"{_ERRORS}.JobFailedError"],
            action=RetryAction.RETRY,
            reason="heals itself: the next try resumes where this one stopped",
        ),
    ]
)
"""For tasks of your own that call this library; our operators obey it without being told."""


@contextmanager
def airflow_errors() -> Iterator[None]:
    """Let errors that a retry cannot mend fail the task at once; let the others pass as they are."""
    try:
        yield
    except SinkError as error:
        if error.retryable:
            raise
        # One clean message for the person who is needed: the traceback below it would say nothing more.
        raise AirflowFailException(str(error)) from None
