"""Does a worker get the connection that Airflow's API changes? It does not when something stands before it.

A worker looks into its environment, then into secrets backends, and only then into Airflow's database, which
is what the API changes: the change would be accepted, and nothing would happen.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from airflow_provider_sinks.core.alter.changes import MASK
from airflow_provider_sinks.core.connection.alterable import COLUMNS
from airflow_provider_sinks.core.connection.fields import ConnectionFields, read_extra
from airflow_provider_sinks.core.errors import ConfigurationError, Problem

_HINT = "Alter it there, or remove it there so that the connection of the database counts."


def overridden(conn_id: str, variable: str, row: ConnectionFields | None, view: ConnectionFields) -> None:
    """Refuse a connection that the API cannot change for the workers.

    :param variable: the environment variable of this worker that defines the connection, or empty.
    :param row: the connection as the API shows it, or ``None`` when it does not have it.
    :param view: the connection as a worker gets it.
    :raises ConfigurationError: with where it really stands, as far as that can be told.
    """
    if variable:
        what = f"is defined by the environment variable {variable} of this worker"
        raise _not_alterable(conn_id, [Problem("", what)])
    if row is None:
        what = (
            "is not in Airflow's database: it comes from a secrets backend, or another worker's environment"
        )
        raise _not_alterable(conn_id, [Problem("", what)])
    problems = [*_differences(row, view)]
    if problems:
        raise _not_alterable(conn_id, problems)


def _differences(row: ConnectionFields, view: ConnectionFields) -> Iterator[Problem]:
    """Yield what the API shows otherwise than the worker gets it; a masked value may be anything."""
    what = "is not for the worker what Airflow's database says: a secrets backend comes before it"
    for name in ("conn_type", *COLUMNS):
        if _differ(getattr(row, name), getattr(view, name)):
            yield Problem(name, what)
    shown, got = read_extra(row.conn_id, row.extra), read_extra(view.conn_id, view.extra)
    for key in sorted(shown.keys() | got.keys()):
        if (key in shown) != (key in got) or _differ(shown[key], got[key]):
            yield Problem(key, what)


def _differ(shown: Any, got: Any) -> bool:
    if isinstance(shown, str) and MASK in shown:
        return False
    if isinstance(shown, dict) and isinstance(got, dict):
        return shown.keys() != got.keys() or any(_differ(shown[key], got[key]) for key in shown)
    if isinstance(shown, list) and isinstance(got, list):
        return len(shown) != len(got) or any(map(_differ, shown, got))
    return (None if shown == "" else shown) != (None if got == "" else got)


def _not_alterable(conn_id: str, problems: list[Problem]) -> ConfigurationError:
    return ConfigurationError(f'connection "{conn_id}" cannot be altered through Airflow', problems, _HINT)
