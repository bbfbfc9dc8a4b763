"""What a sink asks of Postgres: does a table exist, which columns has it, and all of its rows as Arrow."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
import pyarrow as pa
from psycopg import sql

from airflow_provider_sinks.connectors.postgres.options import PostgresOptions
from airflow_provider_sinks.core.errors import (
    AuthenticationError,
    ConfigurationError,
    Problem,
    SinkError,
    UnavailableError,
    nearest,
)

_DECIMAL_DIGITS_MAX = 38
_DECIMAL_SCALE_DEFAULT = 18
TEXTS: Mapping[str, str] = {"client_encoding": "UTF8"}
"""How all texts go to and from a server: Arrow has no other. The server alone may think of another one."""
NO_FILE = "a file that the connection names cannot be used by this worker"
_CAST_TO_TEXT = frozenset({"uuid", "json", "jsonb", "inet", "cidr", "interval", "xml", "money"})


class PostgresClient:
    """Reads one database; changes nothing in it.

    :param options: how to connect.
    """

    def __init__(self, options: PostgresOptions) -> None:
        self._options = options

    def ping(self) -> None:
        """Connect, and do nothing: shows that host, credentials and database are right."""
        with self.connected():
            pass

    def columns(self, table: str) -> dict[str, str]:
        """Return the columns of a table or view with their types, such as ``{"userid": "text"}``.

        :param table: ``table`` or ``schema.table``.
        :raises ConfigurationError: when the table is not there or is hidden from this user.
        """
        query = """
            SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
            WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped
              AND has_table_privilege(attrelid, 'SELECT') ORDER BY attnum"""
        with self.connected() as connection:
            found = connection.execute(query, [self._identifier(table).as_string(connection)]).fetchall()
            if not found:
                raise self._missing_table(connection, table)
        return dict(found)

    def read(self, table: str, wanted: Sequence[str] | None, max_bytes: int) -> pa.Table:
        """Return a whole table as Arrow.

        :param wanted: names of columns, or ``None`` for all.
        :param max_bytes: the largest size in memory that is still taken.
        :raises ConfigurationError: when the table or a column is missing, or the table is too large.
        """
        columns = self._choose(table, self.columns(table), wanted)
        with self.connected() as connection:
            query = self._select(table, columns).as_string(connection)
        return _typed(self._read_arrow(query, table, max_bytes), columns)

    def read_nothing(self, table: str, wanted: Sequence[str] | None) -> pa.Table:
        """Return a table without its rows: the columns and types that :meth:`read` would give."""
        columns = self._choose(table, self.columns(table), wanted)
        with self.connected() as connection:
            query = (self._select(table, columns) + sql.SQL(" LIMIT 0")).as_string(connection)
        return _typed(self._read_arrow(query, table, 0), columns)

    def _choose(self, table: str, columns: Mapping[str, str], wanted: Sequence[str] | None) -> dict[str, str]:
        if wanted is None:
            return dict(columns)
        problems = [
            Problem(f"columns: {name}", f'table "{table}" has no such column', nearest(name, columns))
            for name in wanted
            if name not in columns
        ]
        if problems:
            raise ConfigurationError(f'the lookup on table "{table}" does not fit', problems)
        return {name: columns[name] for name in wanted}

    def _select(self, table: str, columns: Mapping[str, str]) -> sql.Composed:
        parts = [
            sql.SQL("{0}::text AS {0}").format(sql.Identifier(name))
            if kind in _CAST_TO_TEXT
            else sql.Identifier(name)
            for name, kind in columns.items()
        ]
        return sql.SQL("SELECT {} FROM {}").format(sql.SQL(", ").join(parts), self._identifier(table))

    def _identifier(self, table: str) -> sql.Identifier:
        return sql.Identifier(*table.split("."))

    def _read_arrow(self, query: str, table: str, max_bytes: int) -> pa.Table:
        from adbc_driver_postgresql import dbapi

        try:
            with dbapi.connect(self._conninfo) as connection, connection.cursor() as cursor:
                cursor.execute(query)
                reader = cursor.fetch_record_batch()
                batches, size_bytes = [], 0
                for batch in reader:
                    size_bytes += batch.nbytes
                    if size_bytes > max_bytes:
                        raise _too_large(table, max_bytes)
                    batches.append(batch)
                return pa.Table.from_batches(batches, reader.schema)
        except dbapi.OperationalError as error:
            raise connect_error(self._options, psycopg.OperationalError(str(error))) from None

    @property
    def _conninfo(self) -> str:
        return psycopg.conninfo.make_conninfo(**self._options.conninfo, **TEXTS)

    @contextmanager
    def connected(self) -> Iterator[psycopg.Connection[Any]]:
        """Give a connection.

        :raises SinkError: there is no way in, or it broke.
        """
        try:
            connection = psycopg.connect(self._conninfo)
        except psycopg.OperationalError as error:
            raise connect_error(self._options, error) from None
        with connection:
            try:
                yield connection
            except psycopg.OperationalError as error:
                raise connect_error(self._options, error) from None

    def _missing_table(self, connection: psycopg.Connection[Any], table: str) -> ConfigurationError:
        query = """
            SELECT CASE WHEN pg_table_is_visible(oid) THEN relname
                        ELSE relnamespace::regnamespace::text || '.' || relname END
            FROM pg_class WHERE relkind IN ('r', 'v', 'm', 'p', 'f')
              AND relnamespace::regnamespace::text NOT IN ('pg_catalog', 'information_schema', 'pg_toast')"""
        known = [str(name) for (name,) in connection.execute(query).fetchall()]
        bare = [name.rsplit(".", 1)[-1] for name in known]
        where = name_of(self._options)
        problem = Problem(
            "table",
            f'"{table}" does not exist in {where}, or this user may not read it',
            nearest(table, known) or nearest(table.rsplit(".", 1)[-1], bare),
        )
        return ConfigurationError(
            f'lookup table "{table}" cannot be read',
            [problem],
            f"Create it, or: GRANT SELECT ON {self._identifier(table).as_string(connection)} "
            f"TO {sql.Identifier(connection.info.user).as_string(connection)}",
        ).of(self._options.conn_id)


def name_of(options: PostgresOptions) -> str:
    """Name a database without its credentials."""
    settings = options.conninfo
    return f'connection "{options.conn_id}" ({settings["host"]}:{settings["port"]}/{settings["dbname"]})'


def connect_error(options: PostgresOptions, error: psycopg.OperationalError) -> SinkError:
    """Return our error for a connection that was not made."""
    text = str(error).strip().splitlines()[-1]
    if re.search(r"password authentication failed|no password supplied|role .* does not exist", str(error)):
        return AuthenticationError(
            f"Postgres refused the credentials of {name_of(options)}",
            text,
            "Correct login and password of the Airflow connection.",
        ).of(options.conn_id)
    if re.search(r"database .* does not exist", str(error)):
        problem = Problem("schema", text)
        return ConfigurationError(f"{name_of(options)} names a database that is not there", [problem]).of(
            options.conn_id
        )
    return UnavailableError(
        f"Postgres of {name_of(options)} could not be reached",
        _without_files(options, text),
        "Check host and port, and that the server is up.",
    ).of(options.conn_id)


def _without_files(options: PostgresOptions, text: str) -> str:
    """Return what libpq said, unless it is about a file: no message tells what files there are."""
    return NO_FILE if options.conninfo["host"].startswith("/") or re.search(r"\bfile\b", text) else text


def _too_large(table: str, max_bytes: int) -> ConfigurationError:
    problem = Problem("lookups", f'table "{table}" is larger than {max_bytes:,} bytes in memory')
    return ConfigurationError(
        f'lookup table "{table}" is too large to broadcast',
        [problem],
        "Name only the `columns` that the query needs, use a view with fewer rows, or raise `max_bytes` "
        "(each executor holds the whole table).",
    )


def _typed(table: pa.Table, columns: Mapping[str, str]) -> pa.Table:
    """Return the table with types that Spark knows: numeric as decimal, the rest of the unknown as text."""
    arrays = [_typed_column(table.column(name), kind) for name, kind in columns.items()]
    return pa.table(arrays, names=list(columns))


def _typed_column(column: pa.ChunkedArray, kind: str) -> pa.ChunkedArray:
    if not isinstance(column.type, pa.BaseExtensionType):
        return column
    text = pa.chunked_array([chunk.storage for chunk in column.chunks], type=column.type.storage_type)
    if not kind.startswith("numeric"):
        return text
    digits = re.fullmatch(r"numeric\((\d+),(\d+)\)", kind)
    precision, scale = map(int, digits.groups()) if digits else (_DECIMAL_DIGITS_MAX, _DECIMAL_SCALE_DEFAULT)
    return text.cast(pa.decimal128(min(precision, _DECIMAL_DIGITS_MAX), scale))
