"""The options of a connection to a schema registry: Airflow's type ``http``, more fields in its extra.

>>> RegistryOptions("r", {"url": "http://one:8081,http://two:8081", "login": "u", "password": "p"}).summary
'http://one:8081, http://two:8081 as "u"'
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import urlsplit

from airflow_provider_sinks.clients.pem_files import PEM_FILES, with_pem_files_read
from airflow_provider_sinks.core.connection.options import ConnectionOptions
from airflow_provider_sinks.core.errors import ConfigurationError, Problem, nearest

ALLOWED = frozenset({"urls", *PEM_FILES})
"""What may stand in the extra."""
SECRETS = frozenset({"password"})
ADDRESSES = frozenset({"host", "urls"})
"""They lead to servers."""
HARMLESS: frozenset[str] = frozenset()
REFUSED = {
    "token": "extra is shown to whoever may read connections; write it as the password, and no login",
    "password": "it belongs in the connection's own field, where Airflow hides it",
    "basic.auth.user.info": "user and password have fields of their own",
    "ssl.key.password": "extra is shown to whoever may read connections; use a key without a password",
}
_MOST_URLS = 16


@dataclass(frozen=True, repr=False)
class RegistryOptions(ConnectionOptions):
    """What it takes to connect to one registry.

    :param conn_id: the Airflow connection that it came from.
    :param options: ``url`` (several with commas), ``login`` and ``password``, or a ``password`` alone that is
        a bearer token; ``ssl.*``.
    """

    conn_type: ClassVar[str] = "http"
    undigested: ClassVar[frozenset[str]] = SECRETS | set(PEM_FILES.values())

    conn_id: str
    options: Mapping[str, str]

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
    ) -> RegistryOptions:
        """Read the fields of an Airflow connection, as its HTTP hook does: a host may carry the scheme.

        :raises ConfigurationError: with all problems at once.
        """
        problems = [*_extra_problems(extra)]
        urls = _urls(host, port, schema, extra)
        problems += _url_problems(urls, "extra.urls" if extra.get("urls") else "host")
        if login and not password:
            problems.append(Problem("password", "is missing", f"the password of user {login!r}"))
        if ("ssl.key.location" in extra) and "ssl.certificate.location" not in extra:
            problems.append(Problem("extra.ssl.certificate.location", "is missing", "a key needs one"))
        if problems:
            raise ConfigurationError(f'connection "{conn_id}" is not valid for a schema registry', problems)
        files = {name: str(extra[name]) for name in PEM_FILES if extra.get(name)}
        named = {"url": ",".join(urls), "login": login or "", "password": password or ""}
        return cls(conn_id, {name: value for name, value in {**named, **files}.items() if value})

    @property
    def given(self) -> Mapping[str, str]:
        """All of it."""
        return self.options

    @property
    def urls(self) -> tuple[str, ...]:
        """The addresses, in the order in which they are tried."""
        return tuple(self.options["url"].split(","))

    @property
    def summary(self) -> str:
        """Addresses and user."""
        login = self.options.get("login")
        user = f' as "{login}"' if login else " with a token" if "password" in self.options else ""
        return ", ".join(self.urls) + user

    def usable(self) -> RegistryOptions:
        """Take the text of the PEM files into the options, so that no other machine needs the files."""
        return RegistryOptions(self.conn_id, with_pem_files_read(self.conn_id, self.options, "extra."))

    def __repr__(self) -> str:
        return f"RegistryOptions(conn_id={self.conn_id!r}, url={self.options.get('url')!r})"


def _urls(
    host: str | None, port: int | None, schema: str | None, extra: Mapping[str, Any]
) -> tuple[str, ...]:
    listed = extra.get("urls")
    if listed:
        given = listed.split(",") if isinstance(listed, str) else listed
        return tuple(str(url).strip().rstrip("/") for url in given)
    if not host:
        return ()
    found = []
    for one in host.split(","):
        parts = urlsplit(one.strip() if "://" in one else f"{schema or 'http'}://{one.strip()}")
        place = (
            f"{parts.netloc}:{port}" if port and ":" not in parts.netloc.rpartition("]")[2] else parts.netloc
        )
        found.append(f"{parts.scheme}://{place}{parts.path}".rstrip("/"))
    return tuple(found)


def _url_problems(urls: Sequence[str], where: str) -> Iterator[Problem]:
    if not urls:
        yield Problem("host", "is missing", "the address of the registry, such as https://registry:8081")
    if len(urls) > _MOST_URLS:
        yield Problem(where, f"names {len(urls)} registries", f"at most {_MOST_URLS}")
    for url in urls:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not re.fullmatch(r"[A-Za-z0-9._:\[\]-]+", parts.netloc):
            # not shown: it may hold a password
            yield Problem(where, "is no address of a registry", "http:// or https://, a name and a port")
        elif parts.query or parts.fragment:
            yield Problem(where, "has ? or # in it", "the address that the API begins at")


def _extra_problems(extra: Mapping[str, Any]) -> Iterator[Problem]:
    for name, value in extra.items():
        if name in REFUSED:
            yield Problem(f"extra.{name}", f"is refused: {REFUSED[name]}")
        elif name not in ALLOWED:
            yield Problem(f"extra.{name}", "is not known", nearest(name, ALLOWED))
        elif name == "urls" and not isinstance(value, str | list):
            yield Problem("extra.urls", "must be a list, or text with commas")
        elif name != "urls" and not isinstance(value, str):
            yield Problem(f"extra.{name}", "must be text")
