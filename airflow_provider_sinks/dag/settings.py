"""The settings of a sink's DAG where the user says nothing, and the check of what the user says."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, Param, TaskGroup

from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.errors import ConfigurationError, Problem, nearest
from airflow_provider_sinks.core.spec.schedules import preset_hint
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.dag.docs import dag_page, promise
from airflow_provider_sinks.operators.submit.arguments import TaskDefaults
from airflow_provider_sinks.operators.submit_sink_job import OWNED, SubmitSinkJobOperator
from airflow_provider_sinks.retry_policy import SINK_RETRY_POLICY

if TYPE_CHECKING:
    from airflow.sdk import Context

log = logging.getLogger(__name__)

START_DATE = datetime(2025, 1, 1, tzinfo=UTC)  # fixed: without one a @continuous DAG runs once, ever
_ENDLESS: dict[str, Any] = {"schedule": "@continuous", "max_consecutive_failed_dag_runs": 1}
_FINITE: dict[str, Any] = {"schedule": None}
_LONGEST_TAG = 100
_SET_HERE = ("sink", "spark_conn_id", "accept", "task_id", "dag")


def dag_arguments(spec: SinkSpec, owner: str | None, owner_link: str | None, given: Mapping[str, Any]) -> Any:
    """Return the arguments of a sink's DAG: ours where the user gives none.

    :param given: what the user gives; it wins.
    :raises ConfigurationError: with all arguments that a DAG does not take.
    """
    endless = not spec.trigger.available_now
    ours = {
        "dag_id": spec.name,
        "description": f"{spec.source_topic} to {spec.resources[Role.DATA]}, {promise(spec)}",
        "start_date": START_DATE,
        "catchup": False,
        "max_active_runs": 1,
        "tags": _tags(spec),
        "doc_md": dag_page(spec),
        **(_ENDLESS if endless else _FINITE),
    }
    merged = {**ours, **given}
    own = {} if owner is None else {"owner": owner}
    merged["default_args"] = {**usual_retries(endless=endless), **own, **given.get("default_args", {})}
    merged["params"] = {**_params(), **given.get("params", {})}
    if owner_link is not None:
        link = {str(merged["default_args"]["owner"]): owner_link}
        merged["owner_links"] = {**link, **given.get("owner_links", {})}
    return merged


def check_dag_arguments(
    function: str, given: Mapping[str, Any], own: Iterable[str], owner_link: str | None, owner: str | None
) -> None:
    """Refuse what a DAG does not take.

    :param function: who is asked, for the message.
    :param own: the names that the function itself takes, to propose them too.
    :raises ConfigurationError: with all problems at once.
    """
    problems = list(_unknown(given, {*_names_of(DAG), *own}))
    problems += [
        Problem(name, f"must be a mapping, not {given[name]!r}")
        for name in ("default_args", "params", "owner_links")
        if name in given and not isinstance(given[name], Mapping)
    ]
    defaults = given.get("default_args")
    if isinstance(defaults, Mapping):
        problems += [
            replace(one, where=f"default_args.{one.where}") for one in TaskDefaults.problems(defaults)
        ]
    if (hint := preset_hint(given.get("schedule"))) is not None:
        problems.append(Problem("schedule", f"{given['schedule']!r} is no preset of Airflow", hint))
    if owner_link is not None and owner is None and "owner" not in (given.get("default_args") or {}):
        problems.append(Problem("owner_link", "whose link is it?", "give an owner too"))
    _raise(function, problems)


def check_flag(function: str, name: str, value: object) -> None:
    """Refuse what is neither true nor false: any text would count as true.

    :raises ConfigurationError: the value is of another type; ``None`` means as usual.
    """
    if value is not None and not isinstance(value, bool):
        _raise(function, [Problem(name, f"is {value!r}", "True or False")])


def check_group_arguments(function: str, given: Mapping[str, Any], own: Iterable[str]) -> None:
    """Refuse what a task group does not take.

    :raises ConfigurationError: with all problems at once.
    """
    _raise(function, list(_unknown(given, {*_names_of(TaskGroup), *own})))


def check_spark_arguments(function: str, spark: object) -> None:
    """Refuse what the operator that submits does not take, or what the factory gives it.

    :raises ConfigurationError: with all problems at once.
    """
    if not isinstance(spark, Mapping):
        what = f"must be a mapping of arguments of SubmitSinkJobOperator, not {spark!r}"
        _raise(function, [Problem("spark", what)])
        return
    ours = [name for name in spark if name in _SET_HERE]
    problems = [Problem(f"spark.{name}", "is set here", f"give {function} the argument") for name in ours]
    problems += [Problem(f"spark.{name}", reason) for name, reason in OWNED.items() if name in spark]
    known = set(_names_of(SubmitSinkJobOperator)) - {*_SET_HERE, *OWNED}
    others = {name: value for name, value in spark.items() if name not in {*_SET_HERE, *OWNED}}
    problems += _unknown(others, known, "spark.")
    _raise(function, problems)


def needs_you(context: Context) -> None:
    """Say in the log that a failure waits for a person. A failure callback."""
    log.error("needs you: %s. %s", _task(context), _why(context))


def heals_itself(context: Context) -> None:
    """Say in the log that a failure will be tried again. A retry callback."""
    log.warning("heals itself: %s will be tried again. %s", _task(context), _why(context))


def usual_retries(*, endless: bool) -> dict[str, Any]:
    """Return how the tasks of a sink are tried again, as a DAG's default arguments.

    :param endless: whether the sink has no end, so that its tries are not counted.
    """
    return {
        "retries": 10_000 if endless else 3,
        "retry_delay": timedelta(seconds=5),
        "retry_exponential_backoff": 2.0,
        "max_retry_delay": timedelta(minutes=5),
        "retry_policy": SINK_RETRY_POLICY,
        "on_failure_callback": needs_you,
        "on_retry_callback": heals_itself,
    }


def _tags(spec: SinkSpec) -> list[str]:
    """Return what a person filters the list of DAGs by: all sinks, and those of a connection."""
    connections = (f"connection:{conn_id}" for conn_id in spec.connections)
    return ["sinks", *(tag for tag in connections if len(tag) <= _LONGEST_TAG)]


def _params() -> dict[str, Param]:
    description = (
        "Only after a refusal: the code that it printed for the way on you choose. It fits that one refusal."
    )
    return {"accept": Param(None, type=["null", "string"], title="Accept code", description=description)}


def _unknown(given: Iterable[str], known: set[str], prefix: str = "") -> Iterator[Problem]:
    for name in given:
        if name not in known:
            yield Problem(f"{prefix}{name}", "is not known", nearest(name, sorted(known)))


@cache
def _names_of(cls: type) -> tuple[str, ...]:
    """Return the names of all arguments that a class and its bases take."""
    found = {
        name
        for base in cls.__mro__
        if "__init__" in vars(base)
        for name, parameter in inspect.signature(vars(base)["__init__"]).parameters.items()
        if parameter.kind in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    }
    return tuple(sorted(found - {"self"}))


def _raise(function: str, problems: list[Problem]) -> None:
    if problems:
        raise ConfigurationError(f"{function} cannot take some of its arguments", problems)


def _task(context: Context) -> str:
    instance = context["ti"]
    return f"task {instance.task_id} of DAG {instance.dag_id}"


def _why(context: Context) -> str:
    return str(context.get("exception") or "").partition("\n")[0]
