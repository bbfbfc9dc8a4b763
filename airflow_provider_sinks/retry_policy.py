"""How an error of a sink becomes Airflow's: fail at once, or try again.

Trying again cannot help when a person must change something (configuration, credentials), must decide
something (refused), or has already started a successor (fenced). Everything else heals by itself: what was
committed stays, and the next try resumes exactly there: the column ``task`` of :mod:`.core.retries`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from airflow.sdk.definitions.retry_policy import ExceptionRetryPolicy, RetryAction, RetryRule
from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_sinks.core.errors import (
    AuthenticationError,
    ConfigurationError,
    FencedError,
    JobFailedError,
    RefusedError,
    SinkError,
    UnavailableError,
)
from airflow_provider_sinks.core.retries import RETRIES


def _rule(*kinds: type[SinkError], reason: str) -> RetryRule:
    tries = {RETRIES[kind.trouble].task.goes_on() for kind in kinds}
    return RetryRule(
        exception=[f"{kind.__module__}.{kind.__name__}" for kind in kinds],
        action=RetryAction.RETRY if tries == {True} else RetryAction.FAIL,
        reason=reason,
    )


SINK_RETRY_POLICY = ExceptionRetryPolicy(
    rules=[
        _rule(
            ConfigurationError,
            AuthenticationError,
            reason="needs you: change the sink or its connections",
        ),
        _rule(RefusedError, reason="needs you: choose one of the ways on"),
        _rule(FencedError, reason="a newer start of this sink took over"),
        _rule(
            UnavailableError,
            JobFailedError,
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
