"""What an alteration reads through Airflow's Task SDK: connections as a worker gets them, secrets and all."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace

from airflow.sdk import Variable
from airflow.sdk.log import mask_secret

from airflow_provider_sinks.core.connection.fields import ConnectionFields, read_extra
from airflow_provider_sinks.hooks.connections import fields


def view_of(conn_id: str) -> ConnectionFields:
    """Return a connection as a worker gets it, secrets and all, and mask its secrets in logs.

    :raises ConfigurationError: there is none, or it is not readable.
    """
    found = fields(conn_id)
    return replace(found, extra=read_extra(conn_id, found.extra))


def environment_variable(conn_id: str) -> str:
    """Return the environment variable of this worker that defines a connection; empty if there is none."""
    name = f"AIRFLOW_CONN_{conn_id.upper()}"
    return name if name in os.environ else ""


def secrets_of(variables: Iterable[str]) -> dict[str, str]:
    """Return the values of Variables as far as they are there, masked in logs."""
    values = {name: Variable.get(name, default=None) for name in sorted(variables)}
    found = {name: str(value) for name, value in values.items() if value}
    for value in found.values():
        mask_secret(value)
    return found
