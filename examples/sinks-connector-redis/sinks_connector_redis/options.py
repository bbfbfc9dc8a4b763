"""What a connection of type ``redis`` becomes for a sink."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from airflow_provider_sinks.core.connection.fields import ConnectionFields
from airflow_provider_sinks.core.connection.options import ConnectionOptions
from airflow_provider_sinks.core.errors import ConfigurationError, Problem, nearest

PORT = 6379
IN_EXTRA = frozenset({"db"})
SECRETS = frozenset({"password"})
_TLS = ("ssl", "ssl_cert_reqs", "ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "ssl_check_hostname")
REFUSED = dict.fromkeys(_TLS, "TLS is not part of this example")


@dataclass(frozen=True, repr=False)
class RedisOptions(ConnectionOptions):
    """One server, one of its databases, and a login.

    :param options: ``host``, ``port``, ``db``, and where they are given ``login`` and ``password``.
    """

    conn_type: ClassVar[str] = "redis"
    undigested: ClassVar[frozenset[str]] = SECRETS

    conn_id: str
    options: Mapping[str, str]

    @classmethod
    def of(cls, fields: ConnectionFields) -> RedisOptions:
        """Read an Airflow connection.

        :raises ConfigurationError: with all problems at once.
        """
        extra = fields.stored_extra()
        if problems := [*_problems(fields, extra)]:
            raise ConfigurationError(f'connection "{fields.conn_id}" is not valid for a sink', problems)
        given = {
            "host": fields.host,
            "port": fields.port or PORT,
            "db": extra.get("db", 0),
            "login": fields.login,
            "password": fields.password,
        }
        return cls(
            fields.conn_id, {name: str(value) for name, value in given.items() if value not in (None, "")}
        )

    @property
    def given(self) -> Mapping[str, str]:
        """All of them."""
        return self.options

    @property
    def summary(self) -> str:
        """Server and database."""
        return f"{self.options['host']}:{self.options['port']}/{self.options['db']}"

    def __repr__(self) -> str:
        return f"RedisOptions({self.conn_id!r}, {self.summary!r})"


def _problems(fields: ConnectionFields, extra: Mapping[str, Any]) -> Iterator[Problem]:
    if not fields.host:
        yield Problem("host", "is missing")
    elif not re.fullmatch(r"[A-Za-z0-9._:%-]+", fields.host):
        yield Problem("host", "is not one host", "a name or an address, without port and login")
    if fields.port is not None and not 0 < fields.port < 65536:
        yield Problem("port", f"{fields.port} is out of range", "1 to 65535")
    for name, value in extra.items():
        if name in REFUSED and value:
            yield Problem(f"extra.{name}", f"is refused: {REFUSED[name]}")
        elif name not in IN_EXTRA and name not in REFUSED:
            yield Problem(f"extra.{name}", "is not known", nearest(name, IN_EXTRA))
    if not re.fullmatch("[0-9]{1,4}", str(extra.get("db", 0))):
        yield Problem("extra.db", f"{extra['db']!r} is no number of a database", "such as 0")
