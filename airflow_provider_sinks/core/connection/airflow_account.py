"""Who we are to Airflow's own REST API: an address and the credentials of a user."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from airflow_provider_sinks.core.errors import ConfigurationError, Problem

CONN_ID = "airflow_api_default"


@dataclass(frozen=True)
class AirflowAccount:
    """A user of Airflow's REST API.

    :param url: where Airflow is, without ``/api/v2``, such as ``https://airflow.example:8080``.
    :param login: the user's name; empty when there is a token.
    :param token: a token that somebody made for this user; empty when there is a password.
    :param conn_id: the Airflow connection that says all this, for messages.
    """

    url: str
    login: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    conn_id: str = CONN_ID

    @classmethod
    def from_connection(
        cls,
        conn_id: str,
        *,
        host: str | None,
        port: int | None = None,
        schema: str | None = None,
        login: str | None = None,
        password: str | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> AirflowAccount:
        """Read an Airflow connection of type ``http``, as its hook does: a host may carry the scheme.

        :param extra: may hold ``token``, instead of login and password.
        :raises ConfigurationError: with all problems.
        """
        token = (extra or {}).get("token") or ""
        problems = []
        if not host:
            problems.append(Problem("host", "is not set", "such as https://airflow.example"))
        if schema not in (None, "", "http", "https"):
            problems.append(Problem("schema", f"is {schema}", "http or https"))
        if not isinstance(token, str):
            problems.append(Problem("extra: token", f"is a {type(token).__name__}", "a text"))
        elif not token and not (login and password):
            problems.append(Problem("login", "neither login and password nor a token is set", "set one"))
        if problems:
            raise ConfigurationError(f'connection "{conn_id}" does not lead to an Airflow', problems)
        return cls(_url(host or "", port, schema), login or "", password or "", token, conn_id)


def account_problems(conn_id: object, account: object) -> Iterator[Problem]:
    """Say that a connection is our own account at Airflow's API, which nobody may lead to another server.

    Whoever did would hear all that is sent there next: the password of this account, and in the next
    alteration the secrets of the connection that it alters.

    :param conn_id: of the connection that is to be altered; compared as a database may, without case.
    :param account: the account of who asks; that by the usual id is meant as well.
    """
    accounts = {name.casefold() for name in (CONN_ID, account) if isinstance(name, str)}
    if isinstance(conn_id, str) and conn_id.strip().casefold() in accounts:
        what = f"{conn_id!r} leads to Airflow's own API, and is altered by nobody who uses it"
        yield Problem("conn_id", what, "change it in Airflow's UI")


def _url(host: str, port: int | None, schema: str | None) -> str:
    """Return the address, with the port where the host names none."""
    parts = urlsplit(host if "://" in host else f"{schema or 'http'}://{host}")
    place = parts.netloc if parts.port or not port else f"{parts.netloc}:{port}"
    return f"{parts.scheme}://{place}{parts.path}".rstrip("/").removesuffix("/api/v2")
