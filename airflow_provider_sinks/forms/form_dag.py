"""The DAG of a form: what all of them have in common, and the check of what their author says."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG, Param

from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.dag.settings import check_dag_arguments
from airflow_provider_sinks.forms.people import ACCESS_CONTROL

_START_DATE = datetime(2025, 1, 1, tzinfo=UTC)  # fixed: the same bytes each time
LOOK_AGAIN: dict[str, Any] = {"retries": 3, "retry_delay": timedelta(seconds=15)}
"""For tasks that only look: an answer that is lost on the way fails no run. A refusal fails it at once."""
_SET_HERE = {"schedule": "a form runs when somebody triggers it", "params": "they are the fields of the form"}


def demand_fitting(
    factory: Callable[..., DAG], given: Mapping[str, Any], problems: Iterable[Problem]
) -> None:
    """Judge what the author of a form says, before anything is made of it.

    :param factory: who was asked.
    :param given: more arguments of the DAG, and ``owner``.
    :param problems: what is wrong with the factory's own arguments.
    :raises ConfigurationError: with all problems at once.
    """
    found = [*problems, *_dag_problems(factory, given)]
    if found:
        raise ConfigurationError(f"{factory.__name__}() cannot take some of its arguments", found)


def form_dag(
    factory: Callable[..., DAG], dag_id: str, fields: Mapping[str, Param], given: Mapping[str, Any]
) -> DAG:
    """Return the DAG of a form, still without tasks.

    :param factory: who makes it; its first paragraphs are shown beside the form.
    :param fields: of the form, by name.
    :param given: more arguments of the DAG, which win over ours, and ``owner``.
    """
    with warnings.catch_warnings():
        # Airflow 3 warns of each access_control that these permissions move; FAB has no others yet.
        warnings.filterwarnings("ignore", "The airflow.security.permissions module is deprecated")
        return DAG(dag_id, schedule=None, params=dict(fields), **_dag_arguments(factory, given))


def _dag_arguments(factory: Callable[..., DAG], given: Mapping[str, Any]) -> dict[str, Any]:
    ours = {
        "start_date": _START_DATE,
        "tags": ["sinks"],
        "access_control": ACCESS_CONTROL,
        "max_active_runs": 1,
        "doc_md": (inspect.getdoc(factory) or "").partition("\n\n:param")[0],
    }
    others = {name: value for name, value in given.items() if name != "owner"}
    own = {"owner": given["owner"]} if given.get("owner") else {}
    return {**ours, **others, "default_args": {**own, **(others.get("default_args") or {})}}


def _dag_problems(factory: Callable[..., DAG], given: Mapping[str, Any]) -> Iterator[Problem]:
    yield from (Problem(name, "is set here", hint) for name, hint in _SET_HERE.items() if name in given)
    others = {name: value for name, value in given.items() if name not in (*_SET_HERE, "owner")}
    own = (*inspect.signature(factory).parameters, "owner")
    try:
        check_dag_arguments(factory.__name__, others, own, given.get("owner_link"), given.get("owner"))
    except ConfigurationError as error:
        yield from error.problems
