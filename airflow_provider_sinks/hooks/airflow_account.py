"""The way to Airflow's REST API from a task or a command: an Airflow connection of type ``http``.

Airflow's Task SDK reads connections, and reads and writes Variables and a task's own stores. Pausing a DAG,
ending a task of another DAG or writing a connection takes the REST API, and a user with the rights for it.
"""

from __future__ import annotations

from airflow_provider_sinks.clients.airflow_api import TIMEOUT_SECONDS, AirflowApi
from airflow_provider_sinks.core.connection.airflow_account import CONN_ID, AirflowAccount
from airflow_provider_sinks.hooks.connections import extra_of, of_type

HTTP_TYPES = ("http", "https")
"""A connection given as a URI has the scheme as its type."""


def airflow_api(conn_id: str = CONN_ID, timeout_seconds: float = TIMEOUT_SECONDS) -> AirflowApi:
    """Return a client of Airflow's REST API. Asks nothing yet.

    :param conn_id: the id of a connection with host and port, and login and password, or ``token`` in extra.
    :param timeout_seconds: how long one answer may take.
    :raises ConfigurationError: there is no such connection, or it does not lead to an Airflow.
    """
    found = of_type(conn_id, *HTTP_TYPES)
    schema = found.schema or ("https" if found.conn_type == "https" else None)
    account = AirflowAccount.from_connection(
        conn_id,
        host=found.host,
        port=found.port,
        schema=schema,
        login=found.login,
        password=found.password,
        extra=extra_of(found),
    )
    return AirflowApi(account, timeout_seconds)
