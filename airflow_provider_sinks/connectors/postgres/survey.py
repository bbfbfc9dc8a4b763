"""Looks at a Postgres database by steps: the way to it, then who we are there and what we may read."""

from __future__ import annotations

import socket
import ssl
import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import psycopg

from airflow_provider_sinks.clients.reach import StoppedError, Trail, connect, follow, shake_hands
from airflow_provider_sinks.clients.time_limit import Deadline, within
from airflow_provider_sinks.connectors.postgres.client import NO_FILE, PostgresClient, connect_error
from airflow_provider_sinks.connectors.postgres.options import PostgresOptions
from airflow_provider_sinks.core.checks.database import DatabaseFacts, TableFacts
from airflow_provider_sinks.core.checks.network import Layer, ServerFacts, Stop, Way
from airflow_provider_sinks.core.spec.parts import PostgresLookup

WAY = Way(
    (Layer.NAME, Layer.TCP, Layer.PROTOCOL, Layer.TLS),
    {Stop.NOT_TRUSTED: "Name the CA that signed it: sslrootcert."},
)
"""Up to the login. Postgres is asked for TLS in its own protocol."""

_TLS_REQUEST = struct.pack(">ii", 8, 80877103)
_WITHOUT_TLS = ("disable", "allow")
_STATEMENT_SECONDS = 10.0
_SETTINGS = ("statement_timeout", "server_encoding")

_DATABASE = """
    SELECT current_database(), current_user, current_setting('server_version'), pg_is_in_recovery()"""
_TABLE = """
    SELECT c.oid, n.nspname, has_schema_privilege(n.oid, 'USAGE'), has_table_privilege(c.oid, 'SELECT'),
           row_security_active(c.oid), pg_table_size(c.oid)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'v', 'm', 'p', 'f') AND c.relname = %(table)s
      AND (n.nspname = %(schema)s OR (%(schema)s::text IS NULL AND n.nspname = ANY(current_schemas(true))))
    ORDER BY array_position(current_schemas(true), n.nspname) NULLS LAST LIMIT 1"""
_COLUMNS = """
    SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
    WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped ORDER BY attnum"""
_OTHERS = """
    SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'v', 'm', 'p', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
      AND n.nspname !~ '^pg_' AND has_table_privilege(c.oid, 'SELECT') LIMIT 10000"""


def is_local(options: PostgresOptions) -> bool:
    """Return whether the server is on this machine, behind a socket in a folder."""
    return options.conninfo["host"].startswith("/")


def uses_tls(options: PostgresOptions) -> bool:
    """Return whether a connection asks for TLS; ``prefer`` goes on without it."""
    return options.conninfo.get("sslmode", "prefer") not in _WITHOUT_TLS and not is_local(options)


def reach(options: PostgresOptions, deadline: Deadline) -> ServerFacts:
    """Follow the way to the server: name, TCP, protocol, TLS."""
    given = options.conninfo
    return follow(f"{given['host']}:{given['port']}", deadline, lambda trail: _go(options, trail))


def survey(
    options: PostgresOptions, address: str, tables: Sequence[str], deadline: Deadline
) -> DatabaseFacts:
    """Log in, read only, and look at some tables.

    :param address: of the server, as it was judged; empty for a server on this machine.
    :raises SinkError: the server does not let us in.
    """
    return within(deadline.left(_STATEMENT_SECONDS + 5), lambda: _survey(options, address, tables))


def types(
    options: PostgresOptions, address: str, lookups: Mapping[str, PostgresLookup], deadline: Deadline
) -> dict[str, bytes]:
    """Return the columns and types of tables as a job would read them, each as an Arrow schema.

    No row is read, and nothing of a view is computed.

    :param address: of the server, as it was judged; empty for a server on this machine.
    :param lookups: by name.
    :raises SinkError: a table cannot be read.
    """
    pinned = {**options.parameters, **({"hostaddr": address} if address else {})}
    client = PostgresClient(replace(options, parameters=pinned))

    def read() -> dict[str, bytes]:
        tables = {name: client.read_nothing(lookup.table, lookup.columns) for name, lookup in lookups.items()}
        return {name: table.schema.serialize().to_pybytes() for name, table in tables.items()}

    return within(deadline.left(_STATEMENT_SECONDS), read)


def _survey(options: PostgresOptions, address: str, tables: Sequence[str]) -> DatabaseFacts:
    begun = time.monotonic()
    more: dict[str, Any] = {"hostaddr": address} if address else {}
    try:
        connection = psycopg.connect(**{**options.conninfo, **more, "connect_timeout": 5})
    except psycopg.OperationalError as error:
        raise connect_error(options, error) from None
    with connection:
        connection.read_only = True
        limit = f"SET LOCAL statement_timeout = {int(_STATEMENT_SECONDS * 1000)}"
        settings = {name: _one(connection, f"SHOW {name}")[0] for name in _SETTINGS}
        connection.execute(limit)
        database, user, version, in_recovery = _one(connection, _DATABASE)
        seen = {table: _table(connection, table) for table in tables}
    took = time.monotonic() - begun
    return DatabaseFacts(database, user, version.split()[0], in_recovery, settings, seen, took)


def _table(connection: psycopg.Connection[Any], name: str) -> TableFacts:
    begun, (schema, _, table) = time.monotonic(), name.rpartition(".")
    found = connection.execute(_TABLE, {"schema": schema or None, "table": table}).fetchone()
    if found is None:
        others = [str(other) for (other,) in connection.execute(_OTHERS).fetchall()]
        return TableFacts(others=others, seconds=time.monotonic() - begun)
    oid, schema, may_enter, may_read, row_security, size_bytes = found
    columns = dict(connection.execute(_COLUMNS, [oid]).fetchall())
    took = time.monotonic() - begun
    return TableFacts(schema, may_enter, may_read, columns, row_security, size_bytes, (), took)


def _one(connection: psycopg.Connection[Any], query: str) -> tuple[Any, ...]:
    row = connection.execute(query).fetchone()
    if row is None:
        raise RuntimeError("a query for one row gave none")
    return tuple(row)


def _go(options: PostgresOptions, trail: Trail) -> None:
    given = options.conninfo
    connected = connect(given["host"], int(given["port"]), trail)
    try:
        with trail.step(Layer.PROTOCOL):
            offers_tls = _ask_for_tls(connected, trail)
        if not uses_tls(options):
            return
        if offers_tls:
            connected = shake_hands(connected, _context(options), given["host"], trail)
        elif given.get("sslmode", "prefer") != "prefer":
            raise StoppedError(Stop.NO_TLS, f"the server offers no TLS, and sslmode is {given['sslmode']}")
    finally:
        connected.close()


def _ask_for_tls(connected: socket.socket, trail: Trail) -> bool:
    """Ask in the protocol's first words; anything but yes or no comes from something else."""
    try:
        connected.settimeout(trail.patience())
        connected.sendall(_TLS_REQUEST)
        answer = connected.recv(1)
    except TimeoutError:
        raise StoppedError(Stop.NO_ANSWER, "it accepted the connection and did not answer") from None
    except OSError:
        answer = b""
    if not answer:
        raise StoppedError(Stop.NO_ANSWER, "it closed the connection instead of answering")
    if answer not in (b"S", b"N"):
        raise StoppedError(Stop.OTHER_PROTOCOL, "what answers does not speak Postgres")
    return answer == b"S"


def _context(options: PostgresOptions) -> ssl.SSLContext:
    """Return TLS as libpq would do it with these options."""
    given = options.parameters
    mode, roots = given.get("sslmode", "prefer"), given.get("sslrootcert")
    try:
        context = ssl.create_default_context(cafile=None if roots in (None, "system") else roots)
        if mode != "verify-full":
            context.check_hostname = False
        if mode in ("prefer", "require") and not roots:
            context.verify_mode = ssl.CERT_NONE
        if "sslcert" in given:
            context.load_cert_chain(given["sslcert"], given.get("sslkey"), password="")
    except (ssl.SSLError, OSError):  # for one reason or another: no message tells what files there are
        raise StoppedError(Stop.OUR_CERTIFICATE, f"{NO_FILE}: sslrootcert, sslcert or sslkey") from None
    return context
