"""From a connection of type ``postgres`` to the options of Spark's JDBC writer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from airflow_provider_sinks.connectors.postgres.options import PostgresOptions
from airflow_provider_sinks.core.errors import ConfigurationError, Problem

DRIVER: Final = "org.postgresql.Driver"
_SAME: Mapping[str, str] = {
    "application_name": "ApplicationName",
    "connect_timeout": "connectTimeout",
    "gssencmode": "gssEncMode",
    "sslmode": "sslmode",
    "sslrootcert": "sslrootcert",
}
_OWN = frozenset({"host", "port", "dbname", "user", "password"})
_WITHOUT_EFFECT = frozenset(
    {"keepalives", "keepalives_count", "keepalives_idle", "keepalives_interval", "tcp_user_timeout"}
)
"""They say how soon a dead connection is noticed, which the driver has other means for."""


def jdbc_options(options: PostgresOptions, table: str) -> dict[str, str]:
    """Return what Spark's writer needs; holds the password.

    :raises ConfigurationError: the connection has what JDBC does not do.
    """
    given = options.given
    problems = [
        Problem(
            f"extra.{name}",
            "has no counterpart in format jdbc",
            "leave it out, or use target: {postgres: ...}",
        )
        for name in given
        if name not in {*_OWN, *_SAME, *_WITHOUT_EFFECT}
    ]
    if given["host"].startswith("/"):
        problems.append(Problem("host", "is a socket of this machine, and JDBC goes by TCP", "name a host"))
    if problems:
        raise ConfigurationError(f'connection "{options.conn_id}" is not valid for format jdbc', problems)
    host = f"[{given['host']}]" if ":" in given["host"] else given["host"]
    return {
        "url": f"jdbc:postgresql://{host}:{given['port']}/{quote(given['dbname'], safe='')}",
        "driver": DRIVER,
        "dbtable": ".".join(f'"{part}"' for part in table.split(".")),
        "user": given["user"],
        "password": given.get("password", ""),  # for one that is not given pgjdbc looks in ~/.pgpass
        **{_SAME[name]: value for name, value in given.items() if name in _SAME},
    }
