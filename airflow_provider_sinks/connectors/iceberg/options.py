"""The options of an ``iceberg`` connection: a catalog, and the storage that its tables lie on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import urlsplit

from airflow_provider_sinks.connectors.iceberg.option_names import (
    ADDRESSES,
    ALLOWED,
    DROPPED,
    FIELDS_ONLY_OF,
    ONLY_OF,
    REFUSED,
    SECRETS,
    SSL_MODES,
    STORAGE,
    CatalogKind,
)
from airflow_provider_sinks.core.connection.options import ConnectionOptions
from airflow_provider_sinks.core.errors import ConfigurationError, Problem, nearest

_PLACED = frozenset({"database", "port"})
_PORTS = {CatalogKind.JDBC: 5432, CatalogKind.HIVE: 9083}
_CONNECT_SECONDS = "10"
_ON_SERVERS = frozenset({"abfs", "abfss", "hdfs", "http", "https", "viewfs", "wasb", "wasbs", "webhdfs"})
"""The schemes of folders whose address names a server, and no bucket."""
_AZURE = "dfs.core.windows.net"
_HTTPS = 443


@dataclass(frozen=True, repr=False)
class IcebergOptions(ConnectionOptions):
    """What it takes to reach a catalog and its storage.

    :param conn_id: the Airflow connection that it came from.
    :param parameters: by the names of the connection's fields and of its extra; secrets among them.
    """

    conn_type: ClassVar[str] = "iceberg"
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
    ) -> IcebergOptions:
        """Read the fields of an Airflow connection; of a JDBC catalog its ``schema`` is the database.

        Airflow's form of this type hides port and schema: they may stand in the extra, as ``port`` and
        ``database``.

        :raises ConfigurationError: with all problems at once.
        """
        columns = {"host": host, "port": port, "login": login, "password": password, "schema": schema}
        problems = [*_extra_problems(extra, columns)]
        given = {name: value for name, value in columns.items() if value}
        columns |= {"port": port or _number(extra.get("port")), "schema": schema or extra.get("database")}
        problems += _foreign_problems(_kind(extra), given, extra)
        problems += _field_problems(_kind(extra), columns, extra)
        if problems:
            raise ConfigurationError(f'connection "{conn_id}" is not valid for a sink', problems)
        kind = CatalogKind(_kind(extra) or CatalogKind.JDBC)
        first: dict[str, Any] = {"catalog": kind, "name": conn_id, "port": _PORTS.get(kind)}
        more = {name: _text(value) for name, value in extra.items() if name in ALLOWED - _PLACED}
        own = {name: value for name, value in {**first, **columns}.items() if value not in (None, "")}
        own["port"] = columns["port"] or first["port"]
        return cls(conn_id, {name: str(value) for name, value in {**own, **more}.items() if value})

    @property
    def given(self) -> Mapping[str, str]:
        """The names and values of the connection."""
        return self.parameters

    @property
    def kind(self) -> CatalogKind:
        """What the catalog is."""
        return CatalogKind(self.parameters["catalog"])

    @property
    def name(self) -> str:
        """The catalog's own name; a JDBC catalog keeps its tables under it."""
        return self.parameters["name"]

    @property
    def address(self) -> str:
        """Where the catalog is, without login and secrets."""
        found = self.parameters
        match self.kind:
            case CatalogKind.JDBC:
                return f"{found['host']}:{found['port']}/{found['schema']}"
            case CatalogKind.REST:
                return found["host"]
            case CatalogKind.HIVE:
                return f"{found['host']}:{found['port']}"

    @property
    def further_servers(self) -> dict[str, tuple[str, int]]:
        """Host and port of each server beside the catalog that it names, by the option; no bucket is one."""
        found = {name: _server(name, self.parameters.get(name, "")) for name in sorted(ADDRESSES - {"host"})}
        return {name: place for name, place in found.items() if place is not None}

    @property
    def service(self) -> str:
        """Which catalog this is, for a sentence. No secrets."""
        return f'Iceberg catalog "{self.name}" at {self.address}'

    @property
    def summary(self) -> str:
        """Kind, place, name and warehouse."""
        warehouse = self.parameters.get("warehouse", "its own")
        return f'{self.kind} catalog "{self.name}" at {self.address}, warehouse {warehouse}'

    @property
    def storage(self) -> dict[str, str]:
        """The options that writers need: those of the storage, and none of the catalog."""
        return {name: value for name, value in self.parameters.items() if name in STORAGE}

    @property
    def conninfo(self) -> dict[str, str]:
        """The keyword arguments for ``psycopg.connect``, of a JDBC catalog."""
        names = {
            "host": "host",
            "port": "port",
            "login": "user",
            "password": "password",
            "schema": "dbname",
            "sslmode": "sslmode",
            "sslrootcert": "sslrootcert",
        }
        own = {to: self.parameters[name] for name, to in names.items() if name in self.parameters}
        return {"connect_timeout": _CONNECT_SECONDS, "application_name": "airflow-provider-sinks", **own}

    def __repr__(self) -> str:
        shown = {key: "***" if key in SECRETS else value for key, value in self.parameters.items()}
        return f"IcebergOptions(conn_id={self.conn_id!r}, parameters={shown!r})"


def _server(name: str, value: str) -> tuple[str, int] | None:
    """Return where an option leads to; ``None`` where it names no server."""
    if name == "adls.account-name":
        value = f"{value}.{_AZURE}" if value else ""
    if name == "warehouse" and urlsplit(value).scheme not in _ON_SERVERS:
        return None
    parts = urlsplit(value if "://" in value else f"//{value}")
    try:
        return (parts.hostname, parts.port or _HTTPS) if parts.hostname else None
    except ValueError:  # what is no port is the client's to refuse
        return (parts.hostname, _HTTPS) if parts.hostname else None


def _kind(extra: Mapping[str, Any]) -> str:
    return str(extra.get("catalog", CatalogKind.JDBC))


def _number(value: Any) -> int | None:
    """Return a port of the extra; -1 for what is none."""
    if value is None:
        return None
    return int(value) if str(value).isdecimal() else -1


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _field_problems(kind: str, columns: Mapping[str, Any], extra: Mapping[str, Any]) -> Iterator[Problem]:
    if kind not in list(CatalogKind):
        return
    needed = {
        CatalogKind.JDBC: ("host", "login", "schema"),
        CatalogKind.REST: ("host",),
        CatalogKind.HIVE: ("host",),
    }[CatalogKind(kind)]
    for name in needed:
        if not columns[name]:
            hint = "it is the name of the database" if name == "schema" else ""
            yield Problem(name, f"is missing: a {kind} catalog needs it", hint)
    yield from _host_problems(kind, str(columns["host"] or ""))
    port = columns["port"]
    if port is not None and not 0 < port < 65536:
        yield Problem("port", f"{port} is out of range", "1 to 65535")
    if kind == CatalogKind.REST and port is not None:
        yield Problem("port", "belongs into the address of a REST catalog", "host: https://server:port/path")
    if kind in (CatalogKind.JDBC, CatalogKind.HIVE) and not extra.get("warehouse"):
        yield Problem("extra.warehouse", "is missing", "where new tables lie: s3://bucket/folder")


def _foreign_problems(kind: str, given: Iterable[str], extra: Mapping[str, Any]) -> Iterator[Problem]:
    """Say what another kind of catalog would take, and this one would not even look at."""
    if kind not in list(CatalogKind):
        return
    found = {f"extra.{name}": ONLY_OF[name] for name in extra if name in ONLY_OF}
    found |= {name: kinds for name, kinds in FIELDS_ONLY_OF.items() if name in given}
    for where, kinds in found.items():
        if kind not in kinds:
            yield Problem(
                where, f"is of a {' or '.join(kinds)} catalog, and this is a {kind} one", "leave it out"
            )
    if kind == CatalogKind.REST and len(one := {"login", "password"} & set(given)) == 1:
        (missing,) = {"login", "password"} - one
        (other,) = one
        what = f"is missing: without it nothing is done with the {other}"
        yield Problem(missing, what, "id and secret, or leave both out")


def _host_problems(kind: str, host: str) -> Iterator[Problem]:
    """Say what is wrong with an address; it is not shown, for it may hold a password."""
    if not host:
        return
    if kind != CatalogKind.REST:
        if not re.fullmatch(r"[A-Za-z0-9._:%-]+", host):
            yield Problem("host", "is not one host", "a name or an address, without port, user and options")
        return
    address = urlsplit(host)
    if address.scheme not in ("http", "https") or not address.hostname:
        yield Problem("host", "is no address of a REST catalog", "https://server/path")
    elif address.username is not None or address.query or address.fragment:
        yield Problem("host", "holds a login or a query", "id and secret belong in login and password")


def _extra_problems(extra: Mapping[str, Any], columns: Mapping[str, Any]) -> Iterator[Problem]:
    for name, value in extra.items():
        if (other := {"database": "schema", "port": "port"}.get(name)) and columns[other]:
            yield Problem(f"extra.{name}", f"stands in the field {other} too", "write it once")
        elif name in REFUSED:
            yield Problem(f"extra.{name}", f"is refused: {REFUSED[name]}")
        elif name not in ALLOWED | DROPPED:
            yield Problem(f"extra.{name}", "is not known", nearest(name, ALLOWED))
        elif name in ALLOWED and (not isinstance(value, str | int | bool) or value == ""):
            yield Problem(f"extra.{name}", "must be text or a number")
    if _kind(extra) not in list(CatalogKind):
        hint = nearest(_kind(extra), list(CatalogKind)) or f"one of {', '.join(CatalogKind)}"
        yield Problem("extra.catalog", f"{_kind(extra)!r} is not known", hint)
    mode = extra.get("sslmode", "prefer")
    if mode not in SSL_MODES:
        hint = nearest(str(mode), SSL_MODES) or f"one of {', '.join(SSL_MODES)}"
        yield Problem("extra.sslmode", f"{mode!r} is not known", hint)
    warehouse = str(extra.get("warehouse", "/"))
    if _kind(extra) != CatalogKind.REST and not re.match(r"/|[a-z0-9]+://?", warehouse):
        yield Problem(
            "extra.warehouse", f"{warehouse!r} is no place", "s3://bucket/folder, or file:///folder"
        )
