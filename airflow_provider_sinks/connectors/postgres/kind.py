"""Postgres as a kind of target: what its entry point leads to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from airflow_provider_sinks.connectors.base import HeldUp, Say
from airflow_provider_sinks.connectors.kind import ConnectorKind
from airflow_provider_sinks.connectors.postgres.connection_type import POSTGRES
from airflow_provider_sinks.connectors.postgres.options import PostgresOptions
from airflow_provider_sinks.connectors.postgres.spec import Mode, PostgresSink, postgres_sink
from airflow_provider_sinks.connectors.target_form import MODE_AND_KEY, TargetForm, mode_and_key
from airflow_provider_sinks.core.checks.check import Check
from airflow_provider_sinks.core.connection.options import ConnectionOptions
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.errors import JobFailedError
from airflow_provider_sinks.core.progress.record import WriterId
from airflow_provider_sinks.core.spec.sink import SinkSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from airflow_provider_sinks.connectors.postgres.connector import PostgresConnector
    from airflow_provider_sinks.connectors.postgres.stored_letters import PostgresLetters

_FORM = TargetForm(
    fields={
        "target": {
            "type": "string",
            "pattern": r'^[^."]+\.[^."]+$',
            "title": "Target table",
            "description": "schema.table; it must be there.",
        },
        **mode_and_key([mode.value for mode in Mode]),
    },
    target=(
        '{"postgres": {"connection": {{ params.target_connection | tojson }},'
        ' "table": {{ params.target | tojson }}, '
        f"{MODE_AND_KEY}}}}}"
    ),
    connection="Postgres connection",
)


class PostgresKind:
    """See :class:`.kind.ConnectorKind`."""

    sink = PostgresSink
    connection = POSTGRES
    form = _FORM
    writer_module = "airflow_provider_sinks.connectors.postgres.writer"

    def connect(
        self,
        spec: SinkSpec,
        connections: ResolvedConnections,
        read_seconds: float | None,
        held_up: HeldUp,
        say: Say,
    ) -> PostgresConnector:
        """Return the Postgres target of a sink; reading its progress waits for nobody."""
        del read_seconds, held_up
        sink = postgres_sink(spec)
        return _connector(sink, connections.get(sink.target.postgres.connection, PostgresOptions), say)

    def letters(self, spec: SinkSpec, connections: ResolvedConnections) -> PostgresLetters:
        """Return the letters of the sink's table of dead letters."""
        from airflow_provider_sinks.connectors.postgres.stored_letters import PostgresLetters

        sink = postgres_sink(spec)
        options = connections.get(sink.target.postgres.connection, PostgresOptions)
        assert sink.dead_letter is not None  # noqa: S101  whoever asks has looked
        return PostgresLetters(sink, options, sink.dead_letter.table)

    def demand_fits(self, output: DataFrame, spec: SinkSpec) -> None:
        """See that the columns that are named are there, and that a table to be made has types for all."""
        from airflow_provider_sinks.connectors.postgres.encoding import types_of
        from airflow_provider_sinks.connectors.postgres.fit import demand_named, new_table

        given, target = types_of(output), postgres_sink(spec).target.postgres
        demand_named(given, target)
        if target.create:
            new_table(given, target)

    def target_checks(self, spec: SinkSpec, options: ConnectionOptions | None) -> Iterable[Check]:
        """Look at the tables, with the rights of the connection's login."""
        from airflow_provider_sinks.connectors.postgres.preflight import owner_check, table_checks

        sink = postgres_sink(spec)
        connector = _connector(sink, options)
        try:
            target = sink.target.postgres
            checks = list(table_checks(target.connection, sink, dict(connector.examine())))
            if target.may_change.adds:
                owner = connector.as_schema_evolvable().owner()
                checks.append(owner_check(target.connection, target.table, owner))
            return checks
        finally:
            connector.close()

    def end_abandoned(
        self,
        spec: SinkSpec,
        connections: ResolvedConnections,
        run: str,
        writers: Iterable[WriterId],
        seconds: float,
    ) -> None:
        """End the run's own connections, which rolls back what they have open and frees its locks."""
        del seconds
        connector = self.connect(spec, connections, None, lambda _: None, lambda _: None)
        try:
            connector.end_of(run, writers)
        finally:
            connector.close()


def _connector(
    sink: PostgresSink, options: ConnectionOptions | None, say: Say = lambda _: None
) -> PostgresConnector:
    from airflow_provider_sinks.connectors.postgres.connector import PostgresConnector
    from airflow_provider_sinks.connectors.postgres.tables import SinkTables

    if not isinstance(options, PostgresOptions):
        raise JobFailedError(f'connection "{sink.target.postgres.connection}" is not of type postgres')
    dead = sink.dead_letter.table if sink.dead_letter else None
    tables = SinkTables(
        sink.name, sink.target.postgres, dead, sink.transaction_timeout, sink.source_has_deletes
    )
    return PostgresConnector(tables, options, say)


KIND: ConnectorKind = PostgresKind()
