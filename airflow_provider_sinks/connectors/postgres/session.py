"""How a sink's connections call themselves, and what holds in each of them."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeAlias, TypeVar

import psycopg
from psycopg import sql

from airflow_provider_sinks.connectors.postgres.client import TEXTS, connect_error, name_of
from airflow_provider_sinks.connectors.postgres.options import PostgresOptions
from airflow_provider_sinks.connectors.postgres.row_errors import is_for_good
from airflow_provider_sinks.core.errors import ConfigurationError, Problem, SinkError, UnavailableError

Connection: TypeAlias = psycopg.Connection[Any]
Result = TypeVar("Result")

_NAME_BYTES_MAX = 63
_LOCK_SECONDS_MAX = 30.0
_CLOSE_SECONDS = 2.0
_WHOLE_TRANSACTION = "transaction_timeout"
REFUSED_FOR_GOOD = (
    "A retry does not help. Mend what refuses it: a trigger, an event trigger or a constraint; of a published"
    " table the missing primary key, or `REPLICA IDENTITY`."
)
"""What helps where a statement with no row of the sink in it is refused."""


@dataclass(frozen=True)
class SessionName:
    """The ``application_name`` of a connection: by it a start finds and ends those of older runs.

    Postgres cuts names at 63 bytes, so sink and progress table stand in it as a digest, and what a person
    reads stands last.

    :param run: empty for somebody who only looks, whom no start ends.
    """

    progress_table: str
    sink: str
    run: str
    writer: str

    @property
    def of_sink(self) -> str:
        """What all connections of the sink begin with."""
        digest = hashlib.sha256(f"{self.progress_table}\0{self.sink}".encode()).hexdigest()[:12]
        return f"sinks/{digest}/" if self.run else f"sinks-look/{digest}/"

    @property
    def of_run(self) -> str:
        """What all connections of the run begin with."""
        return f"{self.of_sink}{self.run[:8]}/"

    @property
    def of_writer(self) -> str:
        """What all connections of the run's writer begin with."""
        return f"{self.of_run}{self.writer}/"

    def __str__(self) -> str:
        whole = f"{self.of_writer}{self.sink}".encode()[:_NAME_BYTES_MAX]
        return whole.decode(errors="ignore")


@dataclass(frozen=True)
class Session:
    """What it takes to open a connection of a sink.

    :param timeout: after which a statement, or an idle transaction, ends by itself.
    """

    options: PostgresOptions = field(repr=False)
    name: SessionName
    timeout: timedelta

    @property
    def conninfo(self) -> str:
        """How to connect; holds the password."""
        patience = str(int(self.timeout.total_seconds() * 1000))
        alive = {"keepalives_idle": "10", "keepalives_interval": "5", "tcp_user_timeout": patience}
        own = {**alive, **self.options.conninfo, **TEXTS, "application_name": str(self.name)}
        return psycopg.conninfo.make_conninfo(**own)

    def settings(self) -> str:
        """Return the statement that makes a connection fit for a sink's transactions.

        A frozen process must not hold its locks for ever, a commit must be on disk before it is answered,
        and the compare-and-set must see what others committed since its transaction began. An epoch is one
        transaction of many statements. Each has its limit of time; one of the whole, which Postgres 17 and
        later know, would end each try of a long epoch.
        """
        milliseconds = str(int(self.timeout.total_seconds() * 1000))
        lock = str(int(min(self.timeout.total_seconds() / 2, _LOCK_SECONDS_MAX) * 1000))
        values = {
            "statement_timeout": milliseconds,
            "idle_in_transaction_session_timeout": milliseconds,
            "lock_timeout": lock,
            "default_transaction_isolation": "read committed",
            "client_min_messages": "warning",
        }
        whole = (
            f"CASE WHEN current_setting('{_WHOLE_TRANSACTION}', true) IS NOT NULL"
            f" THEN set_config('{_WHOLE_TRANSACTION}', '0', false) END"
        )
        calls = [
            sql.SQL("set_config({}, {}, false)").format(sql.Literal(name), sql.Literal(value))
            for name, value in values.items()
        ]
        durable = (
            "set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'"
            " ELSE current_setting('synchronous_commit') END, false)"
        )
        return f"SELECT pg_backend_pid(), {durable}, {whole}, {sql.SQL(', ').join(calls).as_string(None)}"

    def connect(self) -> Connection:
        """Open a connection that commits each statement.

        :raises SinkError: there is no way in.
        """
        try:
            connection = psycopg.connect(self.conninfo, autocommit=True)
            connection.execute(self.settings().encode())
        except psycopg.OperationalError as error:
            raise connect_error(self.options, error) from None
        return connection


class ControlConnection:
    """The driver's own connection: made when it is needed, made again when it broke. Safe for threads."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._lock = threading.RLock()
        self._connection: Connection | None = None

    def ask(self, question: Callable[[Connection], Result]) -> Result:
        """Ask something that changes nothing, or that may happen twice; once more if the connection broke.

        :raises SinkError: no answer.
        """
        with self._lock:
            was_open = self._connection is not None and not self._connection.closed
            try:
                return self._once(question)
            except UnavailableError:
                if not was_open or (self._connection is not None and not self._connection.closed):
                    raise
                return self._once(question)

    def close(self) -> None:
        """Drop the connection.

        One that another thread waits for is left: a driver whose database is silent for too long shall end.
        """
        if not self._lock.acquire(timeout=_CLOSE_SECONDS):
            return
        try:
            if self._connection is not None:
                self._connection.close()
        finally:
            self._lock.release()

    def _once(self, question: Callable[[Connection], Result]) -> Result:
        if self._connection is None or self._connection.closed:
            self._connection = self.session.connect()
        with translated(self.session.options):
            return question(self._connection)


@contextmanager
def translated(options: PostgresOptions) -> Iterator[None]:
    """Turn what psycopg raises into our errors."""
    try:
        yield
    except psycopg.errors.InsufficientPrivilege as error:
        raise _unavailable(options, error, "Grant it, or use a login that has it.") from error
    except psycopg.Error as error:
        if is_for_good(error.sqlstate or ""):
            raise _refused(options, error) from error
        raise _unavailable(options, error, "Check the server; a retry goes on where this stopped.") from error


def _unavailable(options: PostgresOptions, error: psycopg.Error, hint: str) -> SinkError:
    primary = f"Postgres of {name_of(options)} did not do what a sink asked"
    return UnavailableError(primary, str(error).strip(), hint).of(options.conn_id)


def _refused(options: PostgresOptions, error: psycopg.Error) -> SinkError:
    problem = Problem("", str(error).strip())
    primary = f"Postgres of {name_of(options)} refuses what a sink asks"
    return ConfigurationError(primary, [problem], REFUSED_FOR_GOOD).of(options.conn_id)
