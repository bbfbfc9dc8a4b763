"""One connection of a writer: Arrow rows go in by binary ``COPY``, through ADBC.

ADBC is told to commit each statement, and ``BEGIN`` is said by us: only so does it let a failed statement be
taken back to a savepoint. ``COMMIT`` in a failed transaction is answered like a success, and rolls back; so
nothing is committed behind an error that was not taken back.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pyarrow as pa
from adbc_driver_postgresql import dbapi

from airflow_provider_sinks.connectors.epoch_writer import RejectedRowError
from airflow_provider_sinks.connectors.postgres import row_errors
from airflow_provider_sinks.connectors.postgres.client import connect_error, name_of
from airflow_provider_sinks.connectors.postgres.session import REFUSED_FOR_GOOD, Session
from airflow_provider_sinks.core.errors import SinkError, UnavailableError

_CANCELED = "57014"
_TOO_LONG = (
    "A retry goes on where this stopped. If it ends here again: raise `transaction_timeout`, which is what a"
    " statement may take, or lower `max_offsets_per_epoch` of the source, so that an epoch has fewer rows."
)


class StatementError(Exception):
    """A statement that the server refused, or that it did not answer.

    :param state: its SQLSTATE, or empty.
    """

    def __init__(self, message: str, state: str) -> None:
        super().__init__(message)
        self.message = message
        self.state = state

    @property
    def is_of_a_row(self) -> bool:
        """A row may be the cause, so that others may be taken."""
        return row_errors.is_of_a_row(self.state)

    @property
    def is_for_good(self) -> bool:
        """No other try would do better, with no row in the statement."""
        return row_errors.is_for_good(self.state)

    @property
    def may_be_of_a_cast(self) -> bool:
        """A text that some type does not take may be the cause."""
        return row_errors.may_be_of_a_cast(self.state)


class CopyConnection:
    """A connection of its own, with at most one transaction open."""

    def __init__(self, session: Session) -> None:
        self.session = session
        try:
            self._connection = dbapi.connect(session.conninfo, autocommit=True)
        except dbapi.Error as error:
            raise connect_error(session.options, psycopg.OperationalError(str(error))) from None
        self._cursor = self._connection.cursor()
        try:
            self.backend_pid = int(self.ask(session.settings())[0][0])
        except StatementError as error:  # it was ended at once, such as by a newer start
            self.close()
            raise self.failure(error) from error

    def run(self, statement: str) -> int:
        """Run a statement, and return how many rows it changed.

        :raises StatementError: it failed.
        """
        with self._translated():
            call = self._cursor.adbc_statement
            call.set_sql_query(statement)
            return int(call.execute_update())

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """Return what a query answers.

        :raises StatementError: it failed.
        """
        with self._translated():
            self._cursor.execute(query)
            return [tuple(row) for row in self._cursor.fetchall()]

    def read(self, query: str) -> list[pa.RecordBatch]:
        """Return what a query answers, as Arrow.

        :raises StatementError: it failed.
        """
        with self._translated():
            self._cursor.execute(query)
            found: list[pa.RecordBatch] = self._cursor.fetch_arrow_table().to_batches()
            return found

    def copy(self, table: str, rows: pa.RecordBatch, *, temporary: bool = False) -> None:
        """Copy rows into the columns of their names.

        :param table: with its schema, unless it is temporary.
        :raises StatementError: it failed.
        """
        schema, _, name = table.rpartition(".")
        where: dict[str, Any] = {"temporary": True} if temporary else {"db_schema_name": schema}
        with self._translated():
            self._cursor.adbc_ingest(name, rows, mode="append", **where)

    @contextmanager
    def savepoint(self, *, casts: bool = False) -> Iterator[None]:
        """Take back what was done inside if it fails because of a row; the transaction stays good.

        :param casts: texts are cast inside.
        """
        self.run("SAVEPOINT sinks_rows")
        try:
            yield
        except StatementError as error:
            if error.is_of_a_row or (casts and error.may_be_of_a_cast):
                self.run("ROLLBACK TO SAVEPOINT sinks_rows")
            raise
        self.run("RELEASE SAVEPOINT sinks_rows")

    def close(self) -> None:
        """Drop the connection; what was not committed is rolled back by the server."""
        for part in (self._cursor, self._connection):
            with contextlib.suppress(dbapi.Error):  # the server is gone, and with it what there was to close
                part.close()

    def failure(self, error: StatementError) -> SinkError:
        """Return our error for a statement that no row can be blamed for: it may work next time, or never."""
        options = self.session.options
        postgres = f"Postgres of {name_of(options)}"
        if error.is_for_good:
            primary = f"{postgres} refuses what a sink writes"
            return RejectedRowError(primary, error.message, REFUSED_FOR_GOOD).of(options.conn_id)
        again = "Check the server; a retry goes on where this stopped."
        return UnavailableError(
            f"{postgres} did not take a sink's rows",
            error.message,
            _TOO_LONG if error.state == _CANCELED else again,
        ).of(options.conn_id)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except dbapi.Error as error:
            raise StatementError(_message(str(error)), getattr(error, "sqlstate", None) or "") from error


def _message(text: str) -> str:
    """Return what the server said, without the words of the driver and without the row's own values."""
    said = text.partition("ERROR:")[2] or text.partition("FATAL:")[2] or text
    return re.split(r"\n|DETAIL:|CONTEXT:|SQLSTATE:", said.strip())[0].strip().rstrip(".")
