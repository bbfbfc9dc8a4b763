"""What ``SubmitSinkJobOperator`` takes: every argument judged, all problems at once, each by its name.

Judged when the DAG file is read, as far as an argument is literal, and once more when the task runs, with
templates rendered and outputs of other tasks in place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from airflow.providers.common.compat.sdk import conf
from pydantic import PlainValidator, ValidationInfo

from airflow_provider_sinks.arguments import is_template
from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.core.spec.fields import check_folder
from airflow_provider_sinks.core.spec.problems import UnfitError, UnfitPartsError
from airflow_provider_sinks.core.spec.spark_conf import setting_problems
from airflow_provider_sinks.hooks.spark import SparkTarget, is_airflows_own
from airflow_provider_sinks.operators.arguments import AcceptCode, Arguments, Flag, SinkArgument

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
_DEPLOY_MODES = (None, "client", "cluster")
_POLL_SECONDS_MIN = 1
_POLL_SECONDS_MAX = 3600
"""A status that is older says nothing."""
_RETRIES_MAX = 1_000_000
"""With the longest delay between two, more than nine years."""

CLIENT_CANNOT_DEFER = (
    "cannot be true in client mode: the driver is a process of the task's worker, and ends with the task"
)


def demand_valid(arguments: Mapping[str, Any]) -> SubmitArguments:
    """Return some arguments as far as they are certain; what is still a template is left for later.

    :param arguments: by name.
    :raises ConfigurationError: with everything that is wrong with them.
    """
    owned = (Problem(name, reason) for name, reason in OWNED.items() if name in arguments)
    return SubmitArguments.read("SubmitSinkJobOperator cannot work with its arguments", arguments, owned)


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


def _spark_conn_id(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise UnfitError(f"is {value!r}", "the id of an Airflow connection of type spark")
    return value


def _poll_interval(value: object) -> float:
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not _POLL_SECONDS_MIN <= value <= _POLL_SECONDS_MAX
    ):
        hint = f"a number of seconds, from {_POLL_SECONDS_MIN} to {_POLL_SECONDS_MAX}"
        raise UnfitError(f"is {value!r}", hint)
    return value


def _retries(value: object) -> int | None:
    if value is not None and (
        isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _RETRIES_MAX
    ):
        raise UnfitError(f"is {value!r}", f"a whole number from 0 to {_RETRIES_MAX:,}")
    return value


def _text(value: object) -> str | None:
    if not isinstance(value, str | None):
        raise UnfitError(f"is a {type(value).__name__}", "one text")
    return value


def _folder(value: object) -> str | None:
    text = _text(value)
    check_folder(text)
    return text


def _names(value: object) -> Any:
    fits = isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)
    if value is not None and not fits:
        raise UnfitError(f"is {value!r}", 'names of sinks: ["clicks_once"]')
    return value


def _deploy_mode(value: Any) -> Any:
    if value not in _DEPLOY_MODES:
        raise UnfitError(f"is {value!r}", '"client" or "cluster"')
    return value


def _deferrable(value: Any, info: ValidationInfo) -> Any:
    if value is not None and not isinstance(value, bool):
        raise UnfitError(f"is {value!r}", "True or False")
    if value and info.data.get("deploy_mode") == "client":
        raise UnfitError(CLIENT_CANNOT_DEFER, "leave it out, or run the driver in cluster mode")
    return value


def _conf(value: object) -> Any:
    if not isinstance(value, Mapping | None):
        raise UnfitError(f"is a {type(value).__name__}", "a mapping of Spark settings")
    literal = {name: setting for name, setting in (value or {}).items() if not is_template(setting)}
    owned = (name for name in _OWNED_CONF if name in (value or {}))
    problems = [Problem(name, f"is not for conf: {_OWNED_CONF[name]}") for name in owned]
    if problems := [*problems, *setting_problems(literal)]:
        raise UnfitPartsError(problems)
    return value


def _env_vars(value: object) -> Any:
    if not isinstance(value, Mapping | None):
        raise UnfitError(f"is a {type(value).__name__}", "a mapping of environment variables")
    what = "is Airflow's own, and a driver gets nothing of Airflow's"
    wrong = [name for name in map(str, value or ()) if is_airflows_own(name)]
    if wrong:
        raise UnfitPartsError(Problem(name, what, "choose another name") for name in wrong)
    return value


Text = Annotated[str | None, PlainValidator(_text)]
Retries = Annotated[int | None, PlainValidator(_retries)]


class SubmitArguments(Arguments):
    """What is judged of the arguments, in the order in which it is told."""

    sink: SinkArgument
    spark_conn_id: Annotated[str, PlainValidator(_spark_conn_id)] = "spark_default"
    accept: AcceptCode = None
    deploy_mode: Annotated[str | None, PlainValidator(_deploy_mode)] = None
    deferrable: Annotated[bool | None, PlainValidator(_deferrable)] = None
    cancel_on_kill: Flag = True
    follow_connections: Flag = True
    poll_interval: Annotated[float, PlainValidator(_poll_interval)] = 10
    own_sinks: Annotated[Any, PlainValidator(_names)] = None
    retries: Retries = None
    status_uri: Annotated[str | None, PlainValidator(_folder)] = None
    conf: Annotated[Any, PlainValidator(_conf)] = None
    env_vars: Annotated[Any, PlainValidator(_env_vars)] = None
    jars: Text = None
    packages: Text = None
    exclude_packages: Text = None
    repositories: Text = None
    py_files: Text = None
    files: Text = None
    archives: Text = None


class TaskDefaults(Arguments):
    """What is judged of the default arguments of a DAG."""

    retries: Retries = None
