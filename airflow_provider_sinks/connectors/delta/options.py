"""The options of a ``delta`` connection: the storage that its tables lie on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import urlsplit

from airflow_provider_sinks.core.connection.alterable import Service
from airflow_provider_sinks.core.connection.options import ConnectionOptions
from airflow_provider_sinks.core.errors import ConfigurationError, Problem, nearest

_OF_STORAGE = """
    aws_access_key_id aws_allow_http aws_endpoint aws_region aws_secret_access_key aws_session_token
    aws_virtual_hosted_style_request azure_client_id azure_client_secret azure_endpoint
    azure_storage_account_key azure_storage_account_name azure_storage_sas_key azure_tenant_id
    connect_timeout google_service_account_key timeout
    """
ALLOWED = frozenset(_OF_STORAGE.split())
"""delta-rs's names of what it takes to read and write files."""
SECRETS = frozenset(
    {
        "aws_secret_access_key",
        "aws_session_token",
        "azure_client_secret",
        "azure_storage_account_key",
        "azure_storage_sas_key",
        "google_service_account_key",
    }
)
"""Never shown."""
ADDRESSES = frozenset({"aws_endpoint", "azure_endpoint", "azure_storage_account_name"})
"""They lead to servers."""
SERVICES = (
    Service(frozenset({"aws_endpoint"}), (frozenset({"aws_access_key_id", "aws_secret_access_key"}),)),
    Service(
        frozenset({"azure_endpoint", "azure_storage_account_name"}),
        (
            frozenset({"azure_storage_account_key"}),
            frozenset({"azure_storage_sas_key"}),
            frozenset({"azure_client_id", "azure_client_secret", "azure_tenant_id"}),
        ),
    ),
)
"""Without a whole login delta-rs takes one from variables, or the machine's role."""
HARMLESS = frozenset({"connect_timeout", "timeout"})
"""They decide nothing about who hears a secret, nor where rows go."""
DROPPED = frozenset({"__fields__"})
REFUSED = {
    "allow_unsafe_rename": "two commits could take one version of the log, and one would be lost",
    "aws_s3_allow_unsafe_rename": "two commits could take one version of the log, and one would be lost",
    "mount_allow_unsafe_rename": "two commits could take one version of the log, and one would be lost",
    "conditional_put": "without it two commits could take one version of the log",
    "aws_conditional_put": "without it two commits could take one version of the log",
    "aws_s3_locking_provider": "commits go by conditional put, and by no table of locks",
    "allow_invalid_certificates": "anybody could read what is written",
    "google_application_credentials": "it names a file of one machine; write google_service_account_key",
    "proxy_url": "a proxy would hear all that is written",
}
_GOOGLE = frozenset(
    {
        *("auth_provider_x509_cert_url", "auth_uri", "client_email", "client_id", "client_x509_cert_url"),
        *("private_key", "private_key_id", "project_id", "token_uri", "type", "universe_domain"),
    }
)
_FIELDS = ("host", "port", "login", "password", "schema")
_AZURE = "dfs.core.windows.net"
_HTTPS = 443


@dataclass(frozen=True, repr=False)
class DeltaOptions(ConnectionOptions):
    """What it takes to reach a storage.

    :param conn_id: the Airflow connection that it came from; empty for a folder of the machine.
    :param parameters: by delta-rs's names; secrets among them.
    """

    conn_type: ClassVar[str] = "delta"
    undigested: ClassVar[frozenset[str]] = SECRETS

    conn_id: str
    parameters: Mapping[str, str]

    @classmethod
    def from_connection(cls, conn_id: str, extra: Mapping[str, Any], **columns: Any) -> DeltaOptions:
        """Read the fields of an Airflow connection: all of it stands in the extra.

        :raises ConfigurationError: with all problems at once.
        """
        problems = [
            Problem(name, "is no option of a storage", "all options stand in the extra")
            for name in _FIELDS
            if columns.get(name)
        ]
        problems += _problems(extra)
        if problems:
            raise ConfigurationError(f'connection "{conn_id}" is not valid for a sink', problems)
        given = {name: value for name, value in extra.items() if name in ALLOWED}
        return cls(conn_id, {name: _text(value) for name, value in given.items()})

    @property
    def given(self) -> Mapping[str, str]:
        """The names and values of the connection."""
        return self.parameters

    @property
    def further_servers(self) -> dict[str, tuple[str, int]]:
        """Host and port of each server that it names, by the option; the clouds' own are none of them."""
        found = {name: _server(name, self.parameters.get(name, "")) for name in sorted(ADDRESSES)}
        return {name: place for name, place in found.items() if place is not None}

    @property
    def summary(self) -> str:
        """What it names, and no secret."""
        shown = [f"{name}={value}" for name, value in sorted(self.parameters.items()) if name not in SECRETS]
        return f"storage with {', '.join(shown)}" if shown else "storage, by the machine's own role"

    def __repr__(self) -> str:
        shown = {key: "***" if key in SECRETS else value for key, value in self.parameters.items()}
        return f"DeltaOptions(conn_id={self.conn_id!r}, parameters={shown!r})"


NO_CONNECTION = DeltaOptions("", {})
"""A folder of the machine needs none."""


def _server(name: str, value: str) -> tuple[str, int] | None:
    """Return where an option leads to."""
    if name == "azure_storage_account_name":
        value = f"{value}.{_AZURE}" if value else ""
    parts = urlsplit(value if "://" in value else f"//{value}")
    try:
        return (parts.hostname, parts.port or _HTTPS) if parts.hostname else None
    except ValueError:  # what is no port is the client's to refuse
        return (parts.hostname, _HTTPS) if parts.hostname else None


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _problems(extra: Mapping[str, Any]) -> Iterator[Problem]:
    for name, value in extra.items():
        if name.lower() in REFUSED:
            yield Problem(f"extra.{name}", f"is refused: {REFUSED[name.lower()]}")
        elif name not in ALLOWED | DROPPED:
            yield Problem(f"extra.{name}", "is not known", nearest(name, ALLOWED))
        elif name in ALLOWED and (not isinstance(value, str | int | bool) or value == ""):
            yield Problem(f"extra.{name}", "must be text or a number")
    for name in ("aws_endpoint", "azure_endpoint"):
        if name in extra:
            yield from _address_problems(name, str(extra[name]), extra)
    if not re.fullmatch(r"[A-Za-z0-9-]{1,64}", str(extra.get("aws_region", "a"))):
        yield Problem("extra.aws_region", "is no name of a region", "letters, digits and -")
    if isinstance(key := extra.get("google_service_account_key"), str) and key:
        yield from _google_problems(key)
    account = str(extra.get("azure_storage_account_name", "a"))
    if not re.fullmatch(r"[a-z0-9]{1,24}", account):
        yield Problem("extra.azure_storage_account_name", "is no name of an account", "letters and digits")


def _google_problems(text: str) -> Iterator[Problem]:
    """Say what is wrong with a key of Google's: what leads its holder to another server is no part of one."""
    where = "extra.google_service_account_key"
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        yield Problem(where, "is no JSON object", "the content of the file that Google gives")
        return
    for name in sorted(map(str, found.keys() - _GOOGLE)):
        yield Problem(f"{where}.{name[:40]}", "is no part of such a key", "leave it out")


def _address_problems(name: str, value: str, extra: Mapping[str, Any]) -> Iterator[Problem]:
    """Say what is wrong with an address; it is not shown, for it may hold a password."""
    address = urlsplit(value)
    if address.scheme not in ("http", "https") or not address.hostname:
        yield Problem(f"extra.{name}", "is no address", "https://server:port")
    elif address.username is not None or address.query or address.fragment:
        yield Problem(f"extra.{name}", "holds a login or a query", "keys belong in options of their own")
    elif name == "azure_endpoint" and address.scheme == "http":
        yield Problem(f"extra.{name}", "is not encrypted", "https://")
    elif name == "aws_endpoint" and address.scheme == "http" and _text(extra.get("aws_allow_http")) != "true":
        yield Problem(f"extra.{name}", "is not encrypted", "https://, or aws_allow_http: true")
