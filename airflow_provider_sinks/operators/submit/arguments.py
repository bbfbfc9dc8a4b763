"""What ``SubmitSinkJobOperator`` takes: every argument judged, all problems at once, each by its name.

Judged when the DAG file is read, as far as an argument is literal, and once more when the task runs, with
templates rendered and outputs of other tasks in place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from airflow.providers.common.compat.sdk import conf

from airflow_provider_sinks.arguments import accept_problems, is_template, sink_problems
from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.core.spec.fields import check_folder
from airflow_provider_sinks.core.spec.problems import UnfitError
from airflow_provider_sinks.core.spec.spark_conf import setting_problems
from airflow_provider_sinks.hooks.spark import SparkTarget, is_airflows_own

OWNED = {
    "application": "it runs the sink's own application",
    "application_args": "they name the launch directory, which is made for each run",
    "java_class": "the application is Python",
    "properties_file": "Spark shows its properties in the event log and on its pages, secrets too; use conf",
    "conn_id": "a sink has several connections; name the Spark one by spark_conn_id",
}
"""Arguments of ``SparkSubmitOperator`` that belong to this operator, and why."""

_OWNED_CONF = {
    "spark.master": "it is the host of the Spark connection",
    "spark.submit.deployMode": "it is the argument deploy_mode, or the extra deploy-mode of the connection",
    "spark.submit.pyFiles": "it would take the place of the sink's own code; use py_files",
}
_TEXTS = (
    "jars",
    "packages",
    "exclude_packages",
    "repositories",
    "py_files",
    "files",
    "archives",
)
_DEPLOY_MODES = (None, "client", "cluster")
_POLL_SECONDS_MIN = 1
_POLL_SECONDS_MAX = 3600
"""A status that is older says nothing."""
_RETRIES_MAX = 1_000_000
"""With the longest delay between two, more than nine years."""

CLIENT_CANNOT_DEFER = (
    "cannot be true in client mode: the driver is a process of the task's worker, and ends with the task"
)


def demand_valid(arguments: Mapping[str, Any]) -> None:
    """Raise :class:`ConfigurationError` with everything that is wrong with some arguments.

    What is still a template, or comes from another task, is left for later.

    :param arguments: by name.
    """
    problems = list(_problems(arguments))
    if problems:
        raise ConfigurationError("SubmitSinkJobOperator cannot work with its arguments", problems)


def is_deferrable(deferrable: bool | None) -> bool:
    """Return whether a task shall wait in the triggerer, where that is possible.

    :param deferrable: the argument; ``None`` means Airflow's ``[operators] default_deferrable``.
    """
    if deferrable is None:
        return bool(conf.getboolean("operators", "default_deferrable", fallback=False))
    return deferrable


def demand_place_to_wait(deferrable: bool | None, target: SparkTarget, yarn_rm_auth: object) -> None:
    """Raise :class:`ConfigurationError` when a task that shall wait in the triggerer cannot.

    In client mode Airflow's default alone is no reason to complain.

    :param yarn_rm_auth: the argument, which is an object of the worker.
    """
    problems = []
    if deferrable and not target.drives_on_cluster:
        problems.append(Problem("deferrable", CLIENT_CANNOT_DEFER, "leave it out, or use cluster mode"))
    if target.drives_on_cluster and is_deferrable(deferrable) and yarn_rm_auth is not None:
        hint = "give the Spark connection a keytab and a principal instead"
        problems.append(Problem("yarn_rm_auth", "is an object of this worker, and no triggerer has it", hint))
    if problems:
        raise ConfigurationError("SubmitSinkJobOperator cannot wait in the triggerer here", problems)


def _problems(arguments: Mapping[str, Any]) -> Iterator[Problem]:
    yield from (Problem(name, reason) for name, reason in OWNED.items() if name in arguments)
    for name, value in arguments.items():
        if name in _JUDGES and not is_template(value):
            yield from _JUDGES[name](name, value)
        elif name in _TEXTS and not is_template(value) and not isinstance(value, str | None):
            yield Problem(name, f"is a {type(value).__name__}", "one text")
    if arguments.get("deferrable") is True and arguments.get("deploy_mode") == "client":
        yield Problem("deferrable", CLIENT_CANNOT_DEFER, "leave it out, or run the driver in cluster mode")


def _text(name: str, value: Any) -> Iterator[Problem]:
    if not isinstance(value, str) or not value.strip():
        yield Problem(name, f"is {value!r}", "the id of an Airflow connection of type spark")


def _flag(name: str, value: Any) -> Iterator[Problem]:
    if not isinstance(value, bool) and not (name == "deferrable" and value is None):
        yield Problem(name, f"is {value!r}", "True or False")


def _poll_interval(name: str, value: Any) -> Iterator[Problem]:
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not _POLL_SECONDS_MIN <= value <= _POLL_SECONDS_MAX
    ):
        hint = f"a number of seconds, from {_POLL_SECONDS_MIN} to {_POLL_SECONDS_MAX}"
        yield Problem(name, f"is {value!r}", hint)


def retry_problems(name: str, value: Any) -> Iterator[Problem]:
    """Judge how often a task is tried again; None means as usual."""
    if value is not None and (
        isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _RETRIES_MAX
    ):
        yield Problem(name, f"is {value!r}", f"a whole number from 0 to {_RETRIES_MAX:,}")


def _folder(name: str, value: Any) -> Iterator[Problem]:
    if not isinstance(value, str | None):
        yield Problem(name, f"is a {type(value).__name__}", "one text")
        return
    try:
        check_folder(value)
    except UnfitError as unfit:
        yield Problem(name, str(unfit), unfit.hint)


def _deploy_mode(name: str, value: Any) -> Iterator[Problem]:
    if value not in _DEPLOY_MODES:
        yield Problem(name, f"is {value!r}", '"client" or "cluster"')


def _conf(name: str, value: Any) -> Iterator[Problem]:
    if not isinstance(value, Mapping | None):
        yield Problem(name, f"is a {type(value).__name__}", "a mapping of Spark settings")
        return
    owned = [setting for setting in _OWNED_CONF if setting in (value or {})]
    yield from (
        Problem(f"{name}: {setting}", f"is not for conf: {_OWNED_CONF[setting]}") for setting in owned
    )
    for problem in setting_problems(
        {key: part for key, part in (value or {}).items() if not is_template(part)}
    ):
        yield Problem(f"{name}: {problem.where}", problem.what, problem.hint)


def _env_vars(name: str, value: Any) -> Iterator[Problem]:
    if not isinstance(value, Mapping | None):
        yield Problem(name, f"is a {type(value).__name__}", "a mapping of environment variables")
        return
    for variable in value or {}:
        if is_airflows_own(str(variable)):
            what = "is Airflow's own, and a driver gets nothing of Airflow's"
            yield Problem(f"{name}: {variable}", what, "choose another name")


_JUDGES = {
    "sink": sink_problems,
    "spark_conn_id": _text,
    "accept": accept_problems,
    "deferrable": _flag,
    "cancel_on_kill": _flag,
    "follow_connections": _flag,
    "poll_interval": _poll_interval,
    "retries": retry_problems,
    "status_uri": _folder,
    "deploy_mode": _deploy_mode,
    "conf": _conf,
    "env_vars": _env_vars,
}
