"""The SQLite file: transactions, tables, and who is in force. Nothing else here is about SQLite.

::

    _sinks_runs      sink, run                    which run of each sink is in force
    _sinks_progress  sink, writer, holder, record whose turn it is to write the next record, and the last one
    <table>          row                          the rows, as JSON

A table carries its id in its own definition, as a comment: one that somebody makes anew is another one.
"""

from __future__ import annotations

import re
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from airflow_provider_sinks.connectors.epoch_writer import InDoubtError
from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.errors import FencedError, SinkError, UnavailableError
from airflow_provider_sinks.core.progress.record import WriterId

_BUSY_SECONDS = 30.0
_COLUMNS = {
    Role.DATA: "row TEXT NOT NULL",
    Role.DEAD_LETTER: "source_partition INTEGER, source_offset INTEGER, error TEXT NOT NULL, value BLOB",
    Role.PROGRESS: "sink TEXT, writer TEXT, holder TEXT, record TEXT, PRIMARY KEY (sink, writer)",
}
_ID = re.compile(r"/\* id (\w+) \*/")


@dataclass(frozen=True)
class Database:
    """One file. Each question and each change connects anew: a file that was replaced is seen at once."""

    file: str

    @property
    def is_there(self) -> bool:
        """Whether there is such a file."""
        return Path(self.file).exists()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Give a connection that sees one state of the file.

        :raises UnavailableError: the file could not be read.
        """
        with self._explained(), closing(self._connect("ro")) as connection:
            connection.execute("BEGIN")
            yield connection

    @contextmanager
    def changing(self, *, makes: bool = False) -> Iterator[sqlite3.Connection]:
        """Give a transaction, and commit it at the end. Nobody else changes the file meanwhile.

        :param makes: the file may be missing, and is made.
        :raises UnavailableError: something failed before the commit; nothing has changed.
        :raises InDoubtError: nobody knows whether it was committed.
        """
        with self._explained(), closing(self._connect("rwc" if makes else "rw")) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            commit(connection)

    def _connect(self, mode: str) -> sqlite3.Connection:
        uri = f"{Path(self.file).as_uri()}?mode={mode}"
        return sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise UnavailableError(f"{self.file} could not be used", str(error)) from error


def commit(connection: sqlite3.Connection) -> None:
    """Commit. From here on only the file knows whether it happened."""
    try:
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise InDoubtError("a commit was not confirmed", str(error)) from error


def quoted(name: str) -> str:
    """Return the name of a table as a statement takes it."""
    return '"' + name.replace('"', '""') + '"'


def definition(connection: sqlite3.Connection, table: str) -> str | None:
    """Return the statement that made a table; ``None`` if there is no such table."""
    asked = "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?"
    found = connection.execute(asked, [table]).fetchone()
    return str(found[0]) if found else None


def id_of(statement: str) -> str:
    """Return the id in a table's definition; empty for a table that no sink has made."""
    found = _ID.search(statement)
    return found[1] if found else ""


def make(connection: sqlite3.Connection, role: Role, table: str) -> None:
    """Make a table, unless it is there."""
    columns = f"{_COLUMNS[role]} /* id {uuid.uuid4().hex} */"
    connection.execute(f"CREATE TABLE IF NOT EXISTS {quoted(table)} ({columns})")


def take_run(connection: sqlite3.Connection, sink: str, run: str) -> None:
    """Put a run in force: no other one of the sink commits from here on."""
    connection.execute("CREATE TABLE IF NOT EXISTS _sinks_runs (sink TEXT PRIMARY KEY, run TEXT NOT NULL)")
    connection.execute("INSERT OR REPLACE INTO _sinks_runs VALUES (?, ?)", [sink, run])


def demand_run(connection: sqlite3.Connection, sink: str, run: str) -> None:
    """Raise :class:`FencedError` when another run is in force."""
    found = connection.execute("SELECT run FROM _sinks_runs WHERE sink = ?", [sink]).fetchone()
    if found != (run,):
        newest = found[0] if found else "none"
        raise FencedError(
            f'a newer start of sink "{sink}" took over', f"Run {newest} is in force; this is run {run}."
        )


def take_writer(connection: sqlite3.Connection, sink: str, writer: WriterId, holder: str) -> str | None:
    """Give a writer's next record to a new holder, and return its last record."""
    connection.execute(
        "INSERT INTO _sinks_progress VALUES (?, ?, ?, NULL)"
        " ON CONFLICT (sink, writer) DO UPDATE SET holder = excluded.holder",
        [sink, writer, holder],
    )
    asked = "SELECT record FROM _sinks_progress WHERE sink = ? AND writer = ?"
    record: str | None = connection.execute(asked, [sink, writer]).fetchone()[0]
    return record


def write_record(
    connection: sqlite3.Connection, sink: str, writer: WriterId, holders: tuple[str, str], record: bytes
) -> None:
    """Write a writer's record, if its last holder is still the one that is given.

    :param holders: the one before, and the one of the next record.
    :raises SinkError: an attempt beside this one has opened since; a later one opens anew.
    """
    before, after = holders
    changed = connection.execute(
        "UPDATE _sinks_progress SET holder = ?, record = ? WHERE sink = ? AND writer = ? AND holder = ?",
        [after, record.decode(), sink, writer, before],
    )
    if changed.rowcount != 1:
        raise _overtaken(sink, writer)


def records(connection: sqlite3.Connection, sink: str) -> dict[WriterId, bytes]:
    """Return the last record of each writer of a sink."""
    asked = "SELECT writer, record FROM _sinks_progress WHERE sink = ? AND record IS NOT NULL"
    return {writer: record.encode() for writer, record in connection.execute(asked, [sink])}


def size_bytes(connection: sqlite3.Connection, role: Role, table: str) -> int:
    """Return what the rows of a table take; 0 tells that there is none."""
    column = "row" if role is Role.DATA else "error"
    asked = f"SELECT coalesce(sum(length({column}) + 1), 0) FROM {quoted(table)}"  # noqa: S608  both are quoted
    return int(connection.execute(asked).fetchone()[0])


def _overtaken(sink: str, writer: WriterId) -> SinkError:
    return UnavailableError(f'writer {writer} of sink "{sink}" was fenced by another attempt')
