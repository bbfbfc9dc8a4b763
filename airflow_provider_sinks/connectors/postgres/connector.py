"""The Postgres target of one sink: a transaction per writer and epoch, with the progress row last in it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from airflow_provider_sinks.connectors.base import Capabilities, CommitsOn, Health, MetricValue, Run, Say
from airflow_provider_sinks.connectors.laid_columns import KeptColumns
from airflow_provider_sinks.connectors.plain import PlainConnector
from airflow_provider_sinks.connectors.postgres import observe as look
from airflow_provider_sinks.connectors.postgres import progress_table
from airflow_provider_sinks.connectors.postgres.altering import PostgresEvolution
from airflow_provider_sinks.connectors.postgres.creation import CreateTable
from airflow_provider_sinks.connectors.postgres.factory import PostgresWriterFactory
from airflow_provider_sinks.connectors.postgres.layout import Layout, layout
from airflow_provider_sinks.connectors.postgres.options import PostgresOptions
from airflow_provider_sinks.connectors.postgres.reached import Reached
from airflow_provider_sinks.connectors.postgres.resetting import reset_table
from airflow_provider_sinks.connectors.postgres.session import (
    Connection,
    ControlConnection,
    Result,
    Session,
    SessionName,
)
from airflow_provider_sinks.connectors.postgres.tables import SinkTables, create_table
from airflow_provider_sinks.connectors.postgres.written_tables import WrittenTables
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
        self._run: Run | None = None
        self._generation = 0
        self._has_taken = False
        self._known = Reached()
        self._version = ""
        self._control = ControlConnection(self._session(""))
        self._written = WrittenTables(sink, self._seen, say)
        self._kept = KeptColumns()

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
        return self._kinds(self._sink.target.table)

    def expect(self, output: DataFrame) -> None:
        """Keep the query's columns for a table that is still to be made; compare them with one that is."""
        from airflow_provider_sinks.connectors.postgres.encoding import types_of

        self._written.given = types_of(output)
        if self._written.existing().columns:
            demanded(self._evolution.difference(self._written.given))
        else:
            self._written.fitting()

    def project(self, output: DataFrame) -> DataFrame:
        """Return the columns with exactly the types of the table."""
        from airflow_provider_sinks.connectors.postgres.encoding import encode, types_of

        self._written.given = types_of(output)
        keeps_raw = self._sink.dead_letter is not None
        columns, key = self._written.columns(), self._sink.target.key
        return self._kept.over(
            output, lambda: encode(output, columns, key, keeps_raw=keeps_raw), tuple(columns.items())
        )

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

    def examine(self) -> Mapping[Role, ResourceFacts]:
        """Look at the tables, and whether each does for its role."""
        return self._ask(lambda connection: look.examine(connection, self._sink.tables, self._sink.needs))

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
        whole = self._written.complete(creation)
        demand_makeable(whole, ResourceKind.TABLE)
        self._ask(lambda connection: create_table(connection, whole))
        self._written.forget()

    def announce(self, record: ProgressRecord) -> None:
        """Write the driver's record, and a row for each writer that it names.

        The table is looked at anew: until now others could alter it.
        """
        self._ask(lambda connection: self._announce(connection, record))()

    def as_schema_evolvable(self) -> PostgresEvolution:
        """Return what alters the table."""
        return self._evolution

    def demand_in_force(self) -> None:
        """Raise :class:`FencedError` when a newer run took the sink.

        :raises RefusedError: an older one has it again.
        """
        if not self._has_taken:
            return
        run, place, known = self._live_run.id, self._sink.place, self._known
        reached = self._ask(lambda connection: progress_table.demand_held(connection, place, run, known))
        self._known = max(self._known, reached)  # this run's writers have committed it

    def factory(self) -> PostgresWriterFactory:
        """Return what makes writers under the announced run."""
        run, place, timeout = self._live_run, self._sink.place, self._sink.timeout
        plan = self._written.plan(run.circumstances(self._generation))
        return PostgresWriterFactory(
            place, run.id, self._generation, plan, timeout, self._options, self._known
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
        return self._kinds(output.name)

    def reset(self, step: EmptyOutput | DeleteOutput) -> None:
        """Empty a table, or drop it, if its oid is still the same and this run holds the sink."""
        run, place, known = self._live_run.id, self._sink.place, self._known
        self._ask(lambda connection: reset_table(connection, place, run, known, step))
        self._written.forget()

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

    @property
    def _evolution(self) -> PostgresEvolution:
        return PostgresEvolution(self._sink.target, self._control, self._announce)

    def _announce(self, connection: Connection, record: ProgressRecord) -> Callable[[], None]:
        """Announce a run, and return what is to be called when that is committed."""
        run, place = self._live_run.id, self._sink.place
        reached = progress_table.announce(connection, place, run, record, self._known)
        return partial(self._announced, record.generation, reached)

    def _announced(self, generation: int, reached: Reached) -> None:
        self._known, self._has_taken, self._generation = reached, True, generation
        self._written.forget()

    def _ask(self, question: Callable[[Connection], Result]) -> Result:
        return self._control.ask(question)

    def _name(self, writer: WriterId) -> SessionName:
        run = self._run.id if self._run else ""
        return SessionName(self._sink.place.table, self._sink.name, run, writer)

    def _session(self, writer: WriterId) -> Session:
        return Session(self._options, self._name(writer), self._sink.timeout)

    def _seen(self, table: str) -> Layout | None:
        return self._ask(lambda connection: layout(connection, table))

    def _kinds(self, table: str) -> dict[str, str]:
        found = self._seen(table)
        return {name: column.kind for name, column in found.columns.items()} if found else {}
