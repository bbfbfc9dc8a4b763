"""The target of one sink, on the driver: looks, fences, announces, resets. Executors commit."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from airflow_provider_sinks.connectors.base import Capabilities, CommitsOn, Health, Run
from airflow_provider_sinks.connectors.epoch_writer import InDoubtError
from airflow_provider_sinks.connectors.plain import PlainConnector
from airflow_provider_sinks.core.decision.facts import (
    Creation,
    Existence,
    Observation,
    ResourceFacts,
    Role,
    Unfit,
)
from airflow_provider_sinks.core.errors import RefusedError, SinkError, UnavailableError
from airflow_provider_sinks.core.lifecycle.steps import DeleteOutput, EmptyOutput
from airflow_provider_sinks.core.progress.history import NO_HISTORY, History
from airflow_provider_sinks.core.progress.identity import ResourceKind
from airflow_provider_sinks.core.progress.record import DRIVER, ProgressFormatError, ProgressRecord, WriterId
from sinks_connector_mytarget import database
from sinks_connector_mytarget.database import Database
from sinks_connector_mytarget.spec import resource_name
from sinks_connector_mytarget.writer import MyTargetWriterFactory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SYSTEM = "sqlite"
_TIMEOUT = timedelta(minutes=15)
_FOREIGN = Unfit(
    "was not made by a sink",
    "Nothing tells whether it is still the same table tomorrow.",
    "Name a table that is not there yet: the sink makes it.",
)


class MyTargetConnector(PlainConnector):
    """See :class:`.base.SinkConnector` for who calls what.

    :param sink: the sink's name.
    :param tables: of its outputs and its progress.
    """

    def __init__(self, sink: str, file: str, tables: Mapping[Role, str]) -> None:
        self._sink = sink
        self._database = Database(file)
        self._tables = tables
        self._run = ""
        self._generation = 0

    @property
    def service(self) -> str:
        """Who is asked."""
        return f"SQLite file {self._database.file}"

    def capabilities(self) -> Capabilities:
        """Return that each writer commits by itself."""
        return Capabilities(CommitsOn.EXECUTOR)

    def suggested_timeout(self) -> timedelta:
        """Return how long an epoch may be open; nothing here ends one."""
        return _TIMEOUT

    def project(self, output: DataFrame) -> DataFrame:
        """Return one column: the row as JSON."""
        from pyspark.sql import functions as sql

        from airflow_provider_sinks.connectors import rows
        from airflow_provider_sinks.connectors.encoding import as_json, named, own_columns

        whole = as_json(sql.struct(*map(named, own_columns(output))))
        raw = rows.RAW if Role.DEAD_LETTER in self._tables else ()
        return output.select(*rows.COORDINATES, whole.alias("row"), *raw)

    def observe(self, source: ResourceFacts) -> Observation:
        """Look at the tables, and read the progress. Changes nothing."""
        if not self._database.is_there:
            seen = {role: self._missing(role) for role in self._tables}
            return Observation(
                source, seen[Role.DATA], seen[Role.PROGRESS], seen.get(Role.DEAD_LETTER), NO_HISTORY
            )
        with self._database.reading() as connection:
            seen = {role: self._sized(connection, role) for role in self._tables}
            is_there = seen[Role.PROGRESS].existence is Existence.PRESENT
            history = self._history(connection) if is_there else NO_HISTORY
        return Observation(source, seen[Role.DATA], seen[Role.PROGRESS], seen.get(Role.DEAD_LETTER), history)

    def identify(self) -> Mapping[Role, ResourceFacts]:
        """Look at the tables."""
        if not self._database.is_there:
            return {role: self._missing(role) for role in self._tables}
        with self._database.reading() as connection:
            return {role: self._facts(connection, role) for role in self._tables}

    def open(self, run: Run, writers: Iterable[WriterId], looked: Observation) -> bool:
        """Put this run in force, once. That fences every older driver and all of its writers."""
        del writers, looked
        if self._run == run.id:
            self.demand_in_force()
            return True
        with self._database.changing(makes=True) as connection:
            database.take_run(connection, self._sink, run.id)
        self._run = run.id
        return False

    def ensure(self, creation: Creation) -> None:
        """Make a table, unless it is there."""
        with self._database.changing(makes=True) as connection:
            database.make(connection, creation.role, self._tables[creation.role])

    def announce(self, record: ProgressRecord) -> None:
        """Write the driver's record. The same one again changes nothing."""
        try:
            with self._database.changing() as connection:
                database.demand_run(connection, self._sink, self._run)
                database.take_writer(connection, self._sink, DRIVER, self._run)
                holders = (self._run, self._run)
                database.write_record(connection, self._sink, DRIVER, holders, record.encode())
        except InDoubtError as doubt:
            raise UnavailableError(doubt.primary, doubt.detail) from doubt
        self._generation = record.generation

    def demand_in_force(self) -> None:
        """Raise :class:`FencedError` when a newer run took over."""
        with self._database.reading() as connection:
            database.demand_run(connection, self._sink, self._run)

    def factory(self) -> MyTargetWriterFactory:
        """Return what makes the writers of the announced run."""
        data, dead = self._tables[Role.DATA], self._tables.get(Role.DEAD_LETTER)
        return MyTargetWriterFactory(self._database, self._sink, self._run, self._generation, data, dead)

    def progress(self) -> History:
        """Read the last record of each writer."""
        with self._database.reading() as connection:
            return self._history(connection)

    def reset(self, step: EmptyOutput | DeleteOutput) -> None:
        """Empty a table or drop it, if it is still the one that was looked at and this run is in force."""
        with self._database.changing() as connection:
            database.demand_run(connection, self._sink, self._run)
            for role, table in self._tables.items():
                found = self._facts(connection, role)
                if found.name != step.facts.name or found.existence is Existence.MISSING:
                    continue
                if found.id != step.facts.id:
                    raise RefusedError(f"{found.name} is not the table any more that was looked at")
                verb = "DELETE FROM" if isinstance(step, EmptyOutput) else "DROP TABLE"
                connection.execute(f"{verb} {database.quoted(table)}")

    def health_check(self) -> Health:
        """Return whether the file can be read."""
        try:
            with self._database.reading() as connection:
                connection.execute("SELECT 1 FROM sqlite_schema")
        except SinkError as error:
            return Health(False, error.detail)
        return Health(True)

    def _history(self, connection: sqlite3.Connection) -> History:
        try:
            found = database.records(connection, self._sink)
            return History({writer: ProgressRecord.decode(record) for writer, record in found.items()})
        except ProgressFormatError as error:
            raise UnavailableError(
                f'the progress of sink "{self._sink}" cannot be read', str(error)
            ) from error

    def _missing(self, role: Role) -> ResourceFacts:
        name = resource_name(self._database.file, self._tables[role])
        return ResourceFacts(name, Existence.MISSING, _SYSTEM, kind=ResourceKind.TABLE)

    def _facts(self, connection: sqlite3.Connection, role: Role) -> ResourceFacts:
        facts, statement = self._missing(role), database.definition(connection, self._tables[role])
        if statement is None:
            return facts
        found = database.id_of(statement)
        return replace(facts, existence=Existence.PRESENT, id=found, unfit=None if found else _FOREIGN)

    def _sized(self, connection: sqlite3.Connection, role: Role) -> ResourceFacts:
        """Return what is seen of a table, of an output also how much is in it."""
        facts = self._facts(connection, role)
        if role is Role.PROGRESS or facts.existence is Existence.MISSING or facts.unfit:
            return facts
        return replace(facts, size_bytes=database.size_bytes(connection, role, self._tables[role]))
