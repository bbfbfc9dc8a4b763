"""What is tried again, by whom and for how long: one table, which everybody asks."""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta

import pytest

from airflow_provider_sinks.connectors.epoch_writer import InDoubtError, LostStageError, RejectedRowError
from airflow_provider_sinks.core.dead_letters.limits import SetAsideError
from airflow_provider_sinks.core.errors import (
    AuthenticationError,
    ConfigurationError,
    FencedError,
    JobFailedError,
    RefusedError,
    SinkError,
    UnavailableError,
)
from airflow_provider_sinks.core.retries import RETRIES, Bound, Retries, Retry, Trouble, schema_met
from airflow_provider_sinks.streaming.epoch_plan import StopDriverError

PATIENT = "while patient"
TABLE = {
    Trouble.SILENCE: {
        "question": f"{PATIENT}, every 1 s",
        "attempt": "4 times",
        "epoch": f"{PATIENT}, every 4 s",
        "query": f"{PATIENT}, every 1 s",
        "task": "its retries",
    },
    Trouble.DOUBT: {
        "question": f"{PATIENT}, every 1 s",
        "attempt": "4 times",
        "epoch": f"{PATIENT}, every 4 s",
        "query": f"{PATIENT}, every 1 s",
        "task": "its retries",
    },
    Trouble.STAGE_GONE: {"attempt": "4 times", "epoch": "4 times", "task": "its retries"},
    Trouble.STOPPED: {"attempt": "4 times", "task": "its retries"},
    Trouble.SCHEMA_MET: {"epoch": "always", "task": "its retries"},
    Trouble.SCHEMA_MET_BY_STREAM: {"query": "always", "task": "its retries"},
    Trouble.LAG_UNCOUNTED: {"query": "always", "task": "its retries"},
    Trouble.OVERLAP: {"query": "4 times", "task": "its retries"},
    Trouble.MISTAKE: {"after_change": "for 900 s"},
    Trouble.REFUSAL: {},
    Trouble.FENCED: {},
}
_WORDS = {Bound.PATIENCE: PATIENT, Bound.ALWAYS: "always", Bound.TASK: "its retries", Bound.NEVER: "never"}


def in_words(retry: Retry) -> str:
    match retry.limit:
        case Bound():
            limit = _WORDS[retry.limit]
        case int():
            limit = f"{retry.limit} times"
        case timedelta():
            limit = f"for {retry.limit.total_seconds():.0f} s"
    return f"{limit}, every {retry.pause_seconds:g} s" if retry.pause_seconds else limit


def row(retries: Retries) -> dict[str, str]:
    cells = {column.name: getattr(retries, column.name) for column in fields(Retries)}
    return {name: in_words(cell) for name, cell in cells.items() if cell.limit is not Bound.NEVER}


def test_each_trouble_is_tried_again_by_whom_the_table_says() -> None:
    assert {trouble: row(RETRIES[trouble]) for trouble in Trouble} == TABLE


@pytest.mark.parametrize(
    ("kind", "trouble", "is_retryable"),
    [
        (UnavailableError, Trouble.SILENCE, True),
        (InDoubtError, Trouble.DOUBT, True),
        (LostStageError, Trouble.STAGE_GONE, True),
        (JobFailedError, Trouble.STOPPED, True),
        (SinkError, Trouble.MISTAKE, False),
        (ConfigurationError, Trouble.MISTAKE, False),
        (AuthenticationError, Trouble.MISTAKE, False),
        (RejectedRowError, Trouble.MISTAKE, False),
        (StopDriverError, Trouble.MISTAKE, False),
        (RefusedError, Trouble.REFUSAL, False),
        (SetAsideError, Trouble.REFUSAL, False),
        (FencedError, Trouble.FENCED, False),
    ],
)
def test_each_error_says_what_it_is_to_those_who_try_again(
    kind: type[SinkError], trouble: Trouble, is_retryable: bool
) -> None:
    error = kind("it is so")

    assert (error.trouble, error.retryable) == (trouble, is_retryable)


@pytest.mark.parametrize(
    ("limit", "goes_on", "ends"),
    [
        pytest.param(4, {"times": 3}, {"times": 4}, id="so-often-in-all"),
        pytest.param(timedelta(seconds=9), {"seconds": 8.9}, {"seconds": 9}, id="for-so-long"),
        pytest.param(
            Bound.PATIENCE,
            {"seconds": 5, "patience_seconds": 5},
            {"seconds": 5.1, "patience_seconds": 5},
            id="while-patient",
        ),
    ],
)
def test_it_goes_on_up_to_its_limit(
    limit: Bound | int | timedelta, goes_on: dict[str, float], ends: dict[str, float]
) -> None:
    retry = Retry(limit)

    assert retry.goes_on(**goes_on)  # type: ignore[arg-type]  # times are whole
    assert not retry.goes_on(**ends)  # type: ignore[arg-type]  # likewise


@pytest.mark.parametrize(
    ("limit", "goes_on"), [(Bound.ALWAYS, True), (Bound.TASK, True), (Bound.NEVER, False)]
)
def test_other_limits_do_not_count(limit: Bound, goes_on: bool) -> None:
    assert Retry(limit).goes_on(times=10**6, seconds=1e9) is goes_on


def test_a_schema_is_asked_for_by_the_epoch_unless_the_stream_has_a_state() -> None:
    assert RETRIES[schema_met(row_wise=True)].epoch.goes_on()
    assert not RETRIES[schema_met(row_wise=True)].query.goes_on()
    assert not RETRIES[schema_met(row_wise=False)].epoch.goes_on()
    assert RETRIES[schema_met(row_wise=False)].query.goes_on()
