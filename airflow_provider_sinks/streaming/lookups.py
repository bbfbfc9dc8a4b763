"""Lookup tables: read by the driver, refreshed on time, and known to queries as views."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from airflow_provider_sinks.connectors.postgres.options import PostgresOptions
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.errors import ConfigurationError, JobFailedError, Problem
from airflow_provider_sinks.core.evolution import OPTION, OnSchemaChange
from airflow_provider_sinks.core.query.analysis import MATCHED_COLUMN
from airflow_provider_sinks.core.query.lookup_keys import lookup_keys
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.streaming.driver_log import say
from airflow_provider_sinks.streaming.patience import Patience

if TYPE_CHECKING:
    from airflow_provider_sinks.connectors.postgres.client import PostgresClient


class Lookups:
    """The lookups of one sink, as temporary views of their names.

    A running driver waits for a database that is silent. Any other refresh that fails fails the epoch: a row
    joined with a table that is older than the user allowed would be wrong without anybody seeing it. The
    retry reads the table again.

    The columns and their types stay those of the first read: what a sink writes does not change its form
    while it runs. A new column is not read, and one that changes its type stops the sink. Where the target
    may be altered (``on_schema_change``) the log names a new column that a star in the query takes. Where it
    may be widened, a column that changed its type ends the launch only: the next one takes it as it is.

    :param spec: names the lookups, and how old their rows may be.
    :param connections: the resolved connections of the launch.
    :param patience: for a database that does not answer, once it has.
    """

    def __init__(self, spec: SinkSpec, connections: ResolvedConnections, patience: Patience) -> None:
        self._spec = spec
        self._connections = connections
        self._patience = patience
        self._known: set[str] = set()
        self._read_at: dict[str, float] = {}
        self._lost: dict[str, tuple[str, ...]] = {}
        self._session = ""
        self._types: dict[str, dict[str, str]] = {}
        self._told: set[str] = set()
        self._policy = spec.on_schema_change
        self._told_added: set[tuple[str, str]] = set()

    def refresh(self, spark: SparkSession) -> None:
        """Read what was never read or is older than its refresh interval. Called before each epoch.

        :param spark: the session in which the query will run; a streaming query has one of its own.
        """
        session = str(spark._jsparkSession.sessionUUID())  # noqa: SLF001  PySpark shows no id of a session
        if session != self._session:
            self._session, self._read_at = session, {}
        for name in self._spec.lookups:
            if self._is_due(name):
                self._read_patiently(spark, name)
                self._read_at[name] = time.monotonic()

    def without_rows(self) -> dict[str, pa.Table]:
        """Return the tables without rows, to see whether the query fits them."""
        found = {}
        for name in self._spec.lookups:
            table = self._spec.lookups[name].postgres
            client = self._client(table.connection)
            found[name] = client.read_nothing(table.table, table.columns)
        return found

    def demand_columns(self) -> None:
        """Raise :class:`ConfigurationError` where a table has lost columns since it was read first.

        Called when Spark does not take the query any more: it names the column, and this the table.
        """
        for name, lost in self._lost.items():
            if lost:
                table = self._spec.lookups[name].postgres.table
                problem = Problem(f"lookups.{name}", f'table "{table}" has lost {_listed(lost)}')
                hint = "Give the table its column again, or leave it out of the query: nothing is lost."
                raise ConfigurationError(
                    f'lookup table "{table}" of sink "{self._spec.name}" has changed', [problem], hint
                )

    def _is_due(self, name: str) -> bool:
        if name not in self._read_at:
            return True
        refresh = self._spec.refresh_of(name)
        return refresh is not None and time.monotonic() - self._read_at[name] >= refresh.total_seconds()

    def _read_patiently(self, spark: SparkSession, name: str) -> None:
        """Read a table; a database that has never answered is an error at once."""
        if name not in self._known:
            self._read(spark, name)
            self._known.add(name)
            return
        table = self._spec.lookups[name].postgres
        database = f'table {table.table} of connection "{table.connection}"'
        self._patience.ask(database, lambda: self._read(spark, name))

    def _read(self, spark: SparkSession, name: str) -> None:
        table = self._spec.lookups[name].postgres
        client = self._client(table.connection)
        rows = client.read(table.table, table.columns, table.max_bytes)
        now = {field.name: str(field.type) for field in rows.schema}
        first = self._types.setdefault(name, now)
        _demand_same_types(table.table, first, now, self._policy)
        self._tell_added(name, table.table, [column for column in now if column not in first])
        self._lost[name] = tuple(column for column in first if column not in now)
        if self._spec.shape.columns is None:  # Spark would take a star, and rows would change their form
            self.demand_columns()
        rows = rows.select([column for column in first if column in now])
        self._tell_duplicates(name, table.table, rows)
        view(spark, name, rows)

    def _client(self, connection: str) -> PostgresClient:
        """Return the client of a database. Only a sink with lookups needs psycopg where its driver runs."""
        from airflow_provider_sinks.connectors.postgres.client import PostgresClient

        return PostgresClient(self._connections.get(connection, PostgresOptions))

    def _tell_added(self, name: str, table: str, added: Sequence[str]) -> None:
        """Say once in the log which columns the next launch will give the target."""
        new = [column for column in added if (name, column) not in self._told_added]
        if new and self._policy.adds and self._spec.shape.columns is None:
            self._told_added |= {(name, column) for column in new}
            say(
                f'lookup table "{table}" has got {_listed(tuple(new))}: this launch goes on without; '
                f"the next one reads it, and alters the target as {OPTION} is {self._policy}"
            )

    def _tell_duplicates(self, name: str, table: str, rows: pa.Table) -> None:
        """Say once in the log how many keys stand in several rows."""
        if name in self._told:
            return
        for keys in lookup_keys(self._spec.sql, name, rows.column_names):
            count = duplicate_keys(rows, keys)
            if count:
                self._told.add(name)
                say(
                    f'lookup "{name}": {count:,} keys ({", ".join(keys)}) stand in more than one row of '
                    f'table "{table}"; a source row that matches gives one output row for each of them'
                )


def duplicate_keys(rows: pa.Table, keys: tuple[str, ...]) -> int:
    """Return how many keys without a null stand in more than one row; null never matches."""
    held = rows.select(list(keys)).drop_null()
    try:
        counts = held.group_by(list(keys)).aggregate([([], "count_all")])
    except pa.ArrowNotImplementedError:  # Arrow groups by no arrays
        return 0
    return int(pc.sum(pc.greater(counts["count_all"], 1)).as_py() or 0)


def _demand_same_types(
    table: str, first: dict[str, str], now: dict[str, str], policy: OnSchemaChange
) -> None:
    """See that no column has another type.

    :raises JobFailedError: one has, and the next launch may alter the target for it.
    :raises ConfigurationError: one has.
    """
    changed = [
        Problem(f"columns: {name}", f'in table "{table}" it was {kind} and is {now[name]}')
        for name, kind in first.items()
        if now.get(name, kind) != kind
    ]
    if changed and policy.widens:
        raise JobFailedError(
            f'lookup table "{table}" changed while the sink ran',
            "; ".join(map(str, changed)),
            "The next launch takes the table as it is, and widens the target's columns where that is enough.",
        )
    if changed:
        raise ConfigurationError(
            f'lookup table "{table}" changed while the sink ran',
            changed,
            "Start the sink again: it then takes the table as it is. What was committed stays.",
        )


def view(spark: SparkSession, name: str, rows: Any) -> None:
    """Make the rows of a lookup known to queries."""
    frame = spark.createDataFrame(rows).withColumn(MATCHED_COLUMN, sql.lit(True))
    frame.createOrReplaceTempView(name)


def _listed(columns: tuple[str, ...]) -> str:
    names = ", ".join(repr(column) for column in columns)
    return f"column {names}" if len(columns) == 1 else f"columns {names}"
