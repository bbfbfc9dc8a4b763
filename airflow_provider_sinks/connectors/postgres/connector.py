"""The Postgres target of one sink: a transaction per writer and epoch, with the progress row last in it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from airflow_provider_sinks.connectors.base import Capabilities, CommitsOn, Health, MetricValue, Run, Say
from airflow_provider_sinks.connectors.plain import PlainConnector
from airflow_provider_sinks.connectors.postgres import observe as look
from airflow_provider_sinks.connectors.postgres import progress_table
from airflow_provider_sinks.connectors.postgres.altering import PostgresEvolution
from airflow_provider_sinks.connectors.postgres.creation import DEAD_LETTER_COLUMNS, CreateTable
from airflow_provider_sinks.connectors.postgres.factory import PostgresWriterFactory, TablePlan
from airflow_provider_sinks.connectors.postgres.fit import demand_fit, new_table, written
from airflow_provider_sinks.connectors.postgres.known_tables import Shape
from airflow_provider_sinks.connectors.postgres.observe import Layout
from airflow_provider_sinks.connectors.postgres.options import PostgresOptions
from airflow_provider_sinks.connectors.postgres.progress_table import Reached
from airflow_provider_sinks.connectors.postgres.resetting import reset_table
from airflow_provider_sinks.connectors.postgres.session import (
    Connection,
    ControlConnection,
    Result,
    Session,
    SessionName,
)
from airflow_provider_sinks.connectors.postgres.tables import SinkTables, create_table
from airflow_provider_sinks.core.decision.facts import (
    Creation,
    Existence,
    Observation,
    ResourceFacts,
    Role,
    demand_makeable,
)
from airflow_provider_sinks.core.errors import JobFailedError, SinkError
from airflow_provider_sinks.core.evolution import demanded
from airflow_provider_sinks.core.lifecycle.steps import DeleteOutput, EmptyOutput
from airflow_provider_sinks.core.progress.history import History
from airflow_provider_sinks.core.progress.identity import ResourceKind
from airflow_provider_sinks.core.progress.record import DRIVER, ProgressRecord, WriterId
from airflow_provider_sinks.core.spec.parts import Tombstones

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class PostgresConnector(PlainConnector):
    """See :class:`.base.SinkConnector` for who calls what, and when.

    :param sink: what is written where.
    :param options: how to connect; holds secrets.
    :param say: told what a person should know.
    """

    def __init__(self, sink: SinkTables, options: PostgresOptions, say: Say = lambda _: None) -> None:
        self._sink = sink
        self._options = options
        self._say = say
        self._run: Run | None = None
        self._generation = 0
        self._has_taken = False
        self._known = Reached()
        self._columns: Mapping[str, str] = {}
        self._layout: Layout | None = None
        self._version = ""
        self._control = ControlConnection(self._session(""))

    @property
    def service(self) -> str:
        """Which database this is, for a sentence."""
        given = self._options.conninfo
        return f"Postgres at {given['host']}:{given['port']}/{given['dbname']}"

    def capabilities(self) -> Capabilities:
        """Return that each writer commits by itself."""
        return Capabilities(CommitsOn.EXECUTOR)

    def suggested_timeout(self) -> timedelta:
        """Return after what time the server ends a transaction that is idle."""
        return self._sink.timeout

    def schema(self) -> Mapping[str, str]:
        """Return the types of the table's columns, or nothing where it is still to be made."""
        found = self._ask(lambda connection: look.layout(connection, self._sink.target.table))
        return {name: column.kind for name, column in found.columns.items()} if found else {}

    def expect(self, output: DataFrame) -> None:
        """Keep the query's columns for a table that is still to be made; compare them with one that is."""
        from airflow_provider_sinks.connectors.postgres.encoding import types_of

        self._columns = types_of(output)
        if self._existing().columns:
            demanded(self._evolution.difference(self._columns))
        else:
            new_table(self._columns, self._sink.target)

    def project(self, output: DataFrame) -> DataFrame:
        """Return the columns with exactly the types of the table."""
        from airflow_provider_sinks.connectors.postgres.encoding import encode, types_of

        self._columns = types_of(output)
        table = self._fitting(self._columns)
        target = self._sink.target
        columns = {name: table.columns[name] for name in written(list(self._columns), target)}
        return encode(output, columns, target.key, keeps_raw=self._sink.dead_letter is not None)

    def observe(self, source: ResourceFacts) -> Observation:
        """Look at the tables and read the progress."""
        sink = self._sink

        def ask(connection: Connection) -> Observation:
            self._version = str(connection.info.server_version)
            return look.observe(connection, sink.tables, sink.needs, sink.name, source)

        return self._ask(ask)

    def identify(self) -> Mapping[Role, ResourceFacts]:
        """Look at the tables."""
        return self._ask(
            lambda connection: look.look_to_stage(connection, self._sink.tables, self._sink.needs)
        )

    def open(self, run: Run, writers: Iterable[WriterId], looked: Observation) -> bool:
        """Take every row of the sink under the lock of the driver's, once; it is told whether that is done.

        Where the progress table is missing nobody can commit. What a start makes there it takes by its
        announcement, which only one of two first starts can make.
        """
        del writers
        if self._has_taken:
            self.demand_in_force()
            return True
        self._run = run
        self._control.close()
        self._control = ControlConnection(self._session(DRIVER))
        self._ask(lambda connection: progress_table.end_sessions(connection, self._name(DRIVER)))
        if looked.progress.existence is Existence.MISSING:
            return True
        self._ask(lambda connection: progress_table.take_run(connection, self._sink.place, run.id))
        self._has_taken = True
        return False

    def ensure(self, creation: Creation) -> None:
        """Make a table, unless it is there."""
        if not isinstance(creation, CreateTable):
            raise JobFailedError(f"{creation} is not for Postgres")
        if creation.role is Role.DATA and not creation.columns and self._columns:
            table = new_table(self._columns, self._sink.target)
            creation = creation.with_columns({name: column.kind for name, column in table.columns.items()})
        demand_makeable(creation, ResourceKind.TABLE)
        self._ask(lambda connection: create_table(connection, creation))
        self._layout = None

    def announce(self, record: ProgressRecord) -> None:
        """Write the driver's record, and a row for each writer that it names.

        The table is looked at anew: until now others could alter it.
        """
        self._ask(lambda connection: self._announce(connection, record))
        self._has_taken, self._generation, self._layout = True, record.generation, None

    def as_schema_evolvable(self) -> PostgresEvolution:
        """Return what alters the table."""
        return self._evolution

    def demand_in_force(self) -> None:
        """Raise :class:`FencedError` when a newer run took the sink.

        :raises RefusedError: an older one has it again.
        """
        if not self._has_taken:
            return
        run, known = self._live_run.id, self._known
        found = self._ask(lambda it: progress_table.who_is_in_force(it, self._sink.place))
        if found is None or found[0] != run:
            raise progress_table.overtaken(self._sink.name, run, known, found)
        self._known = max(self._known, found[1])  # this run's writers have committed it

    def factory(self) -> PostgresWriterFactory:
        """Return what makes writers under the announced run."""
        sink, target = self._sink, self._sink.target
        table = self._fitting(self._columns) if self._columns else self._existing()
        names = written(list(self._columns or table.columns), target)
        dead_columns, dead_shape = self._dead_columns()
        plan = TablePlan(
            target.table,
            {name: table.columns[name] for name in names},
            target.key,
            target.tombstones is Tombstones.DELETE,
            sink.dead_letter,
            self._live_run.circumstances(self._generation),
            dead_columns,
            {target.table: table.shape(names), **dead_shape},
            sink.has_deletes,
        )
        return PostgresWriterFactory(
            sink.place, self._live_run.id, self._generation, plan, sink.timeout, self._options, self._known
        )

    def progress(self) -> History:
        """Read the progress table."""
        return self._ask(lambda connection: progress_table.read(connection, self._sink.place))

    def end_open(self, writers: Iterable[WriterId]) -> None:
        """End this run's own transactions, so that nobody waits for their locks."""
        with contextlib.suppress(SinkError):  # then the time-out ends them
            self.end_of(self._live_run.id, {*writers} - {DRIVER})

    def end_of(self, run: str, writers: Iterable[WriterId]) -> None:
        """End what the writers of a run have open.

        :raises SinkError: the server did not do it.
        """
        for writer in sorted({*writers}):
            name = SessionName(self._sink.place.table, self._sink.name, run, writer)
            self._ask(partial(progress_table.end_now, name=name))

    def settings(self, output: ResourceFacts) -> Mapping[str, str]:
        """Return the types of the columns; what else was set for a table is lost with it."""
        found = self._ask(lambda connection: look.layout(connection, output.name))
        return {name: column.kind for name, column in found.columns.items()} if found else {}

    def reset(self, step: EmptyOutput | DeleteOutput) -> None:
        """Empty a table, or drop it, if its oid is still the same and this run holds the sink."""
        run, place, known = self._live_run.id, self._sink.place, self._known
        self._ask(lambda connection: reset_table(connection, place, run, known, step))
        self._layout = None

    def health_check(self) -> Health:
        """Ask the server for anything."""
        try:
            self._ask(lambda connection: connection.execute("SELECT 1"))
        except SinkError as error:
            return Health(False, error.detail or error.primary)
        return Health(True)

    def metrics(self) -> Mapping[str, MetricValue]:
        """Return the server's version."""
        return {"server_version": self._version}

    def close(self) -> None:
        """Drop the connection."""
        self._control.close()

    @property
    def _live_run(self) -> Run:
        assert self._run is not None  # noqa: S101  open comes first
        return self._run

    def _dead_columns(self) -> tuple[tuple[str, ...], Mapping[str, Shape]]:
        """Return which columns of dead letters are written: those that the table has; and its shape, by name.

        One that an earlier release made is not altered: that takes its owner, and waits for writers.
        """
        dead = self._sink.dead_letter
        if dead is None:
            return (), {}
        known = set(DEAD_LETTER_COLUMNS) - {"at"}
        found = self._ask(lambda connection: look.layout(connection, dead))
        there = found.columns if found else known
        if missing := [name for name in DEAD_LETTER_COLUMNS if name in known and name not in there]:
            added = ", ".join(f"ADD {name} {DEAD_LETTER_COLUMNS[name]}" for name in missing)
            self._say(
                f'table "{dead}" lacks {", ".join(missing)}: dead letters are written without. '
                f"To have them: ALTER TABLE {dead} {added}"
            )
        names = tuple(name for name in DEAD_LETTER_COLUMNS if name in known and name in there)
        return names, {dead: found.shape(names)} if found else {}

    @property
    def _evolution(self) -> PostgresEvolution:
        return PostgresEvolution(self._sink.target, self._control, self._announce_altered)

    def _announce(self, connection: Connection, record: ProgressRecord) -> None:
        run, place = self._live_run.id, self._sink.place
        self._known = progress_table.announce(connection, place, run, record, self._known)

    def _announce_altered(self, connection: Connection, record: ProgressRecord) -> None:
        """Announce a run whose table is altered behind it, in the same transaction."""
        self._announce(connection, record)
        self._has_taken, self._generation, self._layout = True, record.generation, None

    def _ask(self, question: Callable[[Connection], Result]) -> Result:
        return self._control.ask(question)

    def _name(self, writer: WriterId) -> SessionName:
        run = self._run.id if self._run else ""
        return SessionName(self._sink.place.table, self._sink.name, run, writer)

    def _session(self, writer: WriterId) -> Session:
        return Session(self._options, self._name(writer), self._sink.timeout)

    def _existing(self) -> Layout:
        if self._layout is None:
            self._layout = self._ask(lambda connection: look.layout(connection, self._sink.target.table))
        return self._layout or Layout({})

    def _fitting(self, given: Mapping[str, str]) -> Layout:
        """Return the table, or what it will be, if the query's columns fit it."""
        table = self._existing()
        if table.columns:
            demand_fit(given, self._sink.target, table)
            return table
        return new_table(given, self._sink.target)
