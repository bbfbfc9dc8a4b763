"""The options of a ``postgres`` connection: built from its parts, never from an address that a user wrote."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from airflow_provider_sinks.core.connection.options import ConnectionOptions
from airflow_provider_sinks.core.errors import ConfigurationError, Problem, nearest

_ALLOWED = """
    application_name connect_timeout gssencmode keepalives keepalives_count keepalives_idle
    keepalives_interval sslcert sslcrl sslkey sslmode sslrootcert target_session_attrs tcp_user_timeout
    """
ALLOWED = frozenset(_ALLOWED.split())
"""libpq's parameters that say how to connect, and to nobody else."""

DROPPED = frozenset({"cursor", "enable_log_db_messages", "log_sql", "sqlalchemy_query", "sqlalchemy_scheme"})
"""What Airflow's own hook reads, and a sink does not use."""

REFUSED = {
    "options": "it sets any parameter of the server",
    "service": "it takes parameters from a file",
    "servicefile": "it takes parameters from a file",
    "passfile": "it takes passwords from a file",
    "dbname": "the database belongs in the connection's own field",
    "host": "the host belongs in the connection's own field",
    "hostaddr": "the host belongs in the connection's own field",
    "port": "the port belongs in the connection's own field",
    "user": "the user belongs in the connection's own field",
    "password": "the password belongs in the connection's own field, where Airflow hides it",
    "sslpassword": "extra is shown to whoever may read connections; use a key without a password",
    "iam": "tokens of AWS are not supported",
    "redshift": "Redshift is not supported",
    "azure_conn_id": "tokens of Azure are not supported",
}
SECRETS = frozenset({"password"})
"""Never shown."""
FILES = frozenset({"sslcert", "sslcrl", "sslkey", "sslrootcert"})
"""They name files of the worker."""

ADDRESSES = frozenset({"host"})
"""They lead to a server."""

_HARMLESS = """
    application_name connect_timeout keepalives keepalives_count keepalives_idle keepalives_interval
    target_session_attrs tcp_user_timeout
    """
HARMLESS = frozenset(_HARMLESS.split())
"""They decide nothing about who hears the password. All others count as if they did, new ones too."""

SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
DEFAULTS = {"connect_timeout": "10", "application_name": "airflow-provider-sinks"}

_NOWHERE = "/dev/null/none"
"""No file can be there, and libpq goes on without one."""
NOTHING_OF_THE_MACHINE: Mapping[str, str] = {
    **dict.fromkeys(("password", "hostaddr", "options", "sslkey"), ""),
    **dict.fromkeys(("passfile", "sslcert"), _NOWHERE),
}
"""What libpq would take from its variables, files and services, for whatever server a connection names: a
password above all, which that server would be told. For what is given, if as nothing, it looks nowhere."""


@dataclass(frozen=True, repr=False)
class PostgresOptions(ConnectionOptions):
    """What it takes to connect to one database.

    :param conn_id: the Airflow connection that it came from.
    :param parameters: libpq's names and values, the password among them.
    """

    conn_type: ClassVar[str] = "postgres"
    undigested: ClassVar[frozenset[str]] = SECRETS

    conn_id: str
    parameters: Mapping[str, str]

    @classmethod
    def from_connection(
        cls,
        conn_id: str,
        *,
        host: str | None,
        port: int | None,
        login: str | None,
        password: str | None,
        schema: str | None,
        extra: Mapping[str, Any],
    ) -> PostgresOptions:
        """Read the fields of an Airflow connection; its ``schema`` is the database's name.

        :raises ConfigurationError: with all problems at once.
        """
        fields = {"host": host, "port": str(port or 5432), "user": login, "dbname": schema}
        problems = [*_field_problems(host, port, login, schema), *_extra_problems(extra)]
        if problems:
            raise ConfigurationError(f'connection "{conn_id}" is not valid for a sink', problems)
        more = {name: str(value) for name, value in extra.items() if name in ALLOWED}
        own = {name: value for name, value in {**fields, "password": password}.items() if value}
        return cls(conn_id, {**DEFAULTS, **more, **own})

    @property
    def given(self) -> Mapping[str, str]:
        """The names and values of libpq."""
        return self.parameters

    @property
    def summary(self) -> str:
        """Server, database and user."""
        found = self.parameters
        return f'{found["host"]}:{found["port"]}/{found["dbname"]} as "{found["user"]}"'

    @property
    def conninfo(self) -> dict[str, str]:
        """The keyword arguments for ``psycopg.connect``; what a connection does not say is nothing."""
        return {**NOTHING_OF_THE_MACHINE, **self.parameters}

    def __repr__(self) -> str:
        shown = {key: "***" if key in SECRETS else value for key, value in self.parameters.items()}
        return f"PostgresOptions(conn_id={self.conn_id!r}, parameters={shown!r})"


def _field_problems(
    host: str | None, port: int | None, login: str | None, schema: str | None
) -> Iterator[Problem]:
    if not host:
        yield Problem("host", "is missing")
    elif not re.fullmatch(r"/[^\x00=?@ ]*|[A-Za-z0-9._:%-]+", host):
        hint = "a name or an address, without port, user and options"
        yield Problem("host", "is not one host", hint)  # not shown: it may hold a password
    if port is not None and not 0 < port < 65536:
        yield Problem("port", f"{port} is out of range", "1 to 65535")
    if not login:
        yield Problem("login", "is missing")
    if not schema:
        yield Problem("schema", "is missing", "it is the name of the database")


def _extra_problems(extra: Mapping[str, Any]) -> Iterator[Problem]:
    for name, value in extra.items():
        if name in REFUSED:
            if value or name != "iam":
                yield Problem(f"extra.{name}", f"is refused: {REFUSED[name]}")
        elif name not in ALLOWED | DROPPED:
            yield Problem(f"extra.{name}", "is not known", nearest(name, ALLOWED))
        elif name in ALLOWED and (isinstance(value, bool) or not isinstance(value, str | int) or value == ""):
            yield Problem(f"extra.{name}", "must be text or a number")
    mode = extra.get("sslmode", "prefer")
    if mode not in SSL_MODES:
        hint = nearest(str(mode), SSL_MODES) or f"one of {', '.join(SSL_MODES)}"
        yield Problem("extra.sslmode", f"{mode!r} is not known", hint)
