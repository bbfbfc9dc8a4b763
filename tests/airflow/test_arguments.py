"""What operators and sensors say of wrong arguments: all of it at once, and nothing of what is a template."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_sinks.core.errors import ConfigurationError
from tests.airflow.fakes import SINK


def _validate(**arguments: Any) -> object:
    from airflow_provider_sinks.operators.validate_connection import ValidateConnectionOperator

    return ValidateConnectionOperator(task_id="validate", **arguments)


def _check(**arguments: Any) -> object:
    from airflow_provider_sinks.sensors.check_topics import CheckTopicsSensor

    return CheckTopicsSensor(task_id="check", **arguments)


def _alter(**arguments: Any) -> object:
    from airflow_provider_sinks.operators.alter_connection_restart import AlterConnectionRestartOperator

    return AlterConnectionRestartOperator(task_id="alter", **arguments)


def _reset(**arguments: Any) -> object:
    from airflow_provider_sinks.operators.sink_life import ResetSinkOperator

    return ResetSinkOperator(task_id="reset", **arguments)


@pytest.mark.parametrize(
    ("make", "arguments", "said"),
    [
        pytest.param(
            _validate,
            {"sink": {"name": "x"}, "ask_spark": "alway", "timeout_seconds": 0, "spark_conn_id": ""},
            [
                "sink: source: is missing",
                "sink: target: is missing",
                "spark_conn_id: is '' (the id of an Airflow connection)",
                "timeout_seconds: is 0 (a number of seconds above 0)",
                "ask_spark: is 'alway' (did you mean \"always\"?)",
            ],
            id="validate",
        ),
        pytest.param(
            _validate,
            {"sink": SINK, "timeout_seconds": math.nan},
            ["timeout_seconds: is nan (a number of seconds above 0)"],
            id="validate, no number",
        ),
        pytest.param(
            _check,
            {"sink": 3, "accept": 7, "on_unknown": "wait!", "deferrable": "yes"},
            [
                "sink: is a int (a Sink, a mapping, or JSON text of one)",
                "accept: is a int (the code that a refusal printed, or None)",
                "on_unknown: is 'wait!' (did you mean \"wait\"?)",
                "deferrable: is 'yes' (True or False)",
            ],
            id="check",
        ),
        pytest.param(
            _alter,
            {"conn_id": 5, "set": "a=b", "drop": 3, "restart": "perhaps", "watch_timeout": 0},
            [
                'set: is not JSON ({"client.id": "sinks"})',
                "drop: must be a list of options",
                "restart: is 'perhaps' (True or False)",
                "watch_timeout: is 0 (a timedelta, or seconds, above 0)",
                "conn_id: is 5 (the id of an Airflow connection)",
            ],
            id="alter",
        ),
        pytest.param(
            _reset,
            {"sink": " ", "dry_run": "perhaps", "data": "emty", "dead_letter": "drop"},
            [
                "sink: is ' ' (the name of a sink, or the sink)",
                "dry_run: is 'perhaps' (True or False)",
                "data: is 'emty' (did you mean \"empty\"?)",
                "dead_letter: is 'drop' (one of keep, empty, recreate)",
            ],
            id="reset",
        ),
    ],
)
def test_all_that_is_wrong_is_said_at_once(
    make: Callable[..., object], arguments: dict[str, Any], said: list[str]
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        make(**arguments)

    assert [str(problem) for problem in caught.value.problems] == said


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (_validate, ("sink", "spark_conn_id")),
        (_check, ("sink", "accept")),
        (_alter, ("conn_id", "set", "dry_run")),
        (_reset, ("sink", "data", "dry_run", "airflow_api_conn_id")),
    ],
)
def test_what_is_a_template_is_judged_when_the_task_runs(
    make: Callable[..., object], names: tuple[str, ...]
) -> None:
    make(**dict.fromkeys(names, "{{ params.it }}"))
