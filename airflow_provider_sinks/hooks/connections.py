"""Airflow connections as checked options: what stands in a connection is judged before anything uses it.

Connections are of the types that Airflow's providers know, such as ``kafka``, ``postgres``, ``spark``.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from typing import Any

from airflow.providers.common.compat.sdk import conf
from airflow.sdk import BaseHook, Connection, Variable
from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.sdk.log import mask_secret

from airflow_provider_sinks.connectors.registry import connection_types
from airflow_provider_sinks.core.connection.fields import ConnectionFields, of_another_type, read_extra
from airflow_provider_sinks.core.connection.options import ConnectionOptions
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.connection.types import secret_names
from airflow_provider_sinks.core.errors import ConfigurationError, Problem, UnavailableError
from airflow_provider_sinks.core.spec.sink import SinkSpec

SPARK = "spark"
SPARK_TYPES = (SPARK, "k8s", "yarn")
"""A Spark connection given as a URI has the master's scheme as its type."""


def connection(conn_id: str) -> Connection:
    """Return a connection as the worker sees it: environment, secrets backend, then the metadata database.

    :param conn_id: the connection's id.
    :raises ConfigurationError: when there is none, or this task may not see it.
    :raises UnavailableError: when Airflow did not answer.
    """
    try:
        with contextlib.suppress(AirflowNotFoundException):
            return BaseHook.get_connection(conn_id)
        _require_airflow(conn_id)
        return BaseHook.get_connection(conn_id)
    except AirflowNotFoundException:
        why = "it is neither in Airflow's database, nor in the environment or secrets backend of this worker"
    except PermissionError as error:
        why = str(error)
    raise ConfigurationError(
        f'connection "{conn_id}" does not exist',
        [Problem("", f"does not exist: {why}")],
        "Create it in the UI under Admin, Connections, or from a file by: airflow connections import",
    )


def _require_airflow(conn_id: str) -> None:
    """Make sure that Airflow answers: its SDK says *not defined* also when it could not ask.

    A command asks the metadata database, and has no other way to ask.
    """
    if os.environ.get("_AIRFLOW_PROCESS_CONTEXT") == "server":
        return
    try:
        len(Variable.keys(prefix="sinks.owner"))  # any question does, if its failure is not swallowed
    except Exception as error:
        raise UnavailableError(
            f'connection "{conn_id}" could not be read',
            f"Airflow did not answer: {type(error).__name__}: {error}",
            "Look at Airflow's API server.",
        ) from error


def fields(conn_id: str) -> ConnectionFields:
    """Return a connection as it is stored, for validation; Airflow hides its secrets in logs from then on.

    :raises ConfigurationError: when there is none.
    :raises UnavailableError: when Airflow did not answer.
    """
    return _fields(connection(conn_id))


def spark_connection(conn_id: str) -> Connection:
    """Return a Spark connection; a missing one is an error, where the provider takes YARN instead."""
    return of_type(conn_id, *SPARK_TYPES)


def resolve(spec: SinkSpec, needed: Mapping[str, str] | None = None) -> ResolvedConnections:
    """Return the options of each connection that a sink names, with the text of files in them.

    :param needed: the connections that are needed and their types; all of them unless given.
    :raises ConfigurationError: with the problems of all of them.
    """
    options: dict[str, ConnectionOptions] = {}
    problems: list[Problem] = []
    broken: list[str] = []
    for conn_id, conn_type in (connection_types(spec) if needed is None else needed).items():
        try:
            options[conn_id] = usable_options(conn_id, conn_type)
        except ConfigurationError as error:
            problems += [_in_connection(conn_id, problem) for problem in error.problems]
            problems += [] if error.problems else [Problem(conn_id, error.primary, error.hint)]
            broken.append(conn_id)
    if problems:
        primary = f'the connections of sink "{spec.name}" cannot be used'
        raise ConfigurationError(primary, problems).of(*broken)
    return ResolvedConnections(options)


def options_of(spec: SinkSpec, conn_id: str) -> ConnectionOptions:
    """Return the options of one connection of a sink; see :func:`usable_options`."""
    return usable_options(conn_id, connection_types(spec)[conn_id])


def usable_options(conn_id: str, conn_type: str) -> ConnectionOptions:
    """Return the options of a connection as a driver would get them now, with the text of files in them.

    :param conn_type: the type that it must have.
    :raises ConfigurationError: there is no such connection, or it cannot be used.
    """
    return _fields(of_type(conn_id, conn_type)).options().usable()


def of_type(conn_id: str, *types: str) -> Connection:
    """Return a connection that must be of one of some types.

    :raises ConfigurationError: there is none, or it is of another type.
    """
    found = connection(conn_id)
    if found.conn_type not in types:
        raise of_another_type(conn_id, found.conn_type, types[0])
    return found


def extra_of(found: Connection) -> Mapping[str, Any]:
    """Return the extra of a connection.

    :raises ConfigurationError: it is not a JSON object.
    """
    return read_extra(found.conn_id, found.extra)


def _fields(found: Connection) -> ConnectionFields:
    made = ConnectionFields(
        found.conn_id,
        found.conn_type or "",
        host=found.host,
        port=found.port,
        login=found.login,
        password=found.password,
        schema=found.schema,
        extra=found.extra,
        masked_words=_masked_words(),
    )
    if found.password:
        mask_secret(found.password)
    with contextlib.suppress(ConfigurationError):
        extra = extra_of(found)
        for name in secret_names() & set(extra):  # whatever the type says: it may have become generic
            mask_secret(str(extra[name]))  # by value: Airflow itself masks by name, and knows only some
    return made


def _masked_words() -> tuple[str, ...]:
    """Return what Airflow was told to mask in the extra of connections, by words in names."""
    if not conf.getboolean("core", "hide_sensitive_var_conn_fields", fallback=True):
        return ()
    names = conf.get("core", "sensitive_var_conn_names", fallback="").lower().split(",")
    return tuple(name.strip() for name in names if name.strip())


def _in_connection(conn_id: str, problem: Problem) -> Problem:
    return Problem(f"{conn_id}: {problem.where}" if problem.where else conn_id, problem.what, problem.hint)
