"""What an alteration reads through Airflow's Task SDK: connections as a worker gets them, secrets and all."""

from __future__ import annotations

import os
from collections.abc import Iterable

from airflow.sdk import Variable
from airflow.sdk.log import mask_secret

from airflow_provider_sinks.core.alteration import Change, Secret, SetOption
from airflow_provider_sinks.core.altered_options import options_of_type
from airflow_provider_sinks.core.checks.fields import ConnectionFields, read_extra
from airflow_provider_sinks.hooks.connections import connection


def view_of(conn_id: str) -> ConnectionFields:
    """Return a connection as a worker gets it, secrets and all, and mask its secrets in logs.

    :raises ConfigurationError: there is none, or it is not readable.
    """
    found = connection(conn_id)
    fields = ConnectionFields(
        conn_id,
        found.conn_type or "",
        found.host,
        found.port,
        found.login,
        found.password,
        found.schema,
        read_extra(conn_id, found.extra),
    )
    mask(fields)
    return fields


def mask(fields: ConnectionFields) -> None:
    """Have the secrets of a connection masked in logs by value; Airflow knows only some of their names."""
    options = options_of_type(fields.conn_type)
    extra = read_extra(fields.conn_id, fields.extra)
    for name in options.secrets if options else ():
        if value := extra.get(name) or (fields.password if name == "password" else None):
            mask_secret(str(value))


def environment_variable(conn_id: str) -> str:
    """Return the environment variable of this worker that defines a connection; empty if there is none."""
    name = f"AIRFLOW_CONN_{conn_id.upper()}"
    return name if name in os.environ else ""


def secrets_of(changes: Iterable[Change]) -> dict[str, str]:
    """Return the values of the Variables that changes name, as far as they are there, masked in logs."""
    wanted = {
        change.value.variable
        for change in changes
        if isinstance(change, SetOption) and isinstance(change.value, Secret)
    }
    values = {name: Variable.get(name, default=None) for name in sorted(wanted)}
    found = {name: str(value) for name, value in values.items() if value}
    for value in found.values():
        mask_secret(value)
    return found
