"""Iceberg as a kind of target: what its entry point leads to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from airflow_provider_sinks.connectors.base import HeldUp, Say
from airflow_provider_sinks.connectors.iceberg.connection_type import ICEBERG
from airflow_provider_sinks.connectors.iceberg.options import IcebergOptions
from airflow_provider_sinks.connectors.iceberg.spec import TABLE_PATTERN, IcebergSink, iceberg_sink
from airflow_provider_sinks.connectors.kind import ConnectorKind
from airflow_provider_sinks.connectors.table_format.spec import Mode
from airflow_provider_sinks.connectors.target_form import MODE_AND_KEY, TargetForm, mode_and_key
from airflow_provider_sinks.core.checks.check import Check
from airflow_provider_sinks.core.connection.options import ConnectionOptions
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.errors import JobFailedError
from airflow_provider_sinks.core.progress.record import WriterId
from airflow_provider_sinks.core.spec.sink import SinkSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from airflow_provider_sinks.connectors.iceberg.connector import IcebergConnector
    from airflow_provider_sinks.connectors.iceberg.stored_letters import IcebergLetters

_FORM = TargetForm(
    fields={
        "target": {
            "type": "string",
            "pattern": TABLE_PATTERN,
            "title": "Target table",
            "description": "namespace.table; it must be there.",
        },
        **mode_and_key([mode.value for mode in Mode]),
    },
    target=(
        '{"iceberg": {"catalog": {{ params.target_connection | tojson }},'
        ' "table": {{ params.target | tojson }}, '
        f"{MODE_AND_KEY}}}}}"
    ),
    connection="Iceberg catalog",
)
_MAINTENANCE = "rewrite_data_files and expire_snapshots"


class IcebergKind:
    """See :class:`.kind.ConnectorKind`."""

    sink = IcebergSink
    connection = ICEBERG
    form = _FORM
    writer_module = "airflow_provider_sinks.connectors.iceberg.data_files"

    def connect(
        self,
        spec: SinkSpec,
        connections: ResolvedConnections,
        read_seconds: float | None,
        held_up: HeldUp,
        say: Say,
    ) -> IcebergConnector:
        """Return the Iceberg target of a sink; reading its progress waits for nobody."""
        del read_seconds, held_up
        sink = iceberg_sink(spec)
        return _connector(sink, connections.get(sink.target.iceberg.connection, IcebergOptions), say)

    def letters(self, spec: SinkSpec, connections: ResolvedConnections) -> IcebergLetters:
        """Return the letters of the sink's table of dead letters."""
        from airflow_provider_sinks.connectors.iceberg.stored_letters import IcebergLetters

        sink = iceberg_sink(spec)
        options = connections.get(sink.target.iceberg.connection, IcebergOptions)
        assert sink.dead_letter is not None  # noqa: S101  whoever asks has looked
        return IcebergLetters(options, sink.dead_letter.table)

    def demand_fits(self, output: DataFrame, spec: SinkSpec) -> None:
        """See that the columns that are named are there, and that a table to be made has types for all."""
        from airflow_provider_sinks.connectors.iceberg.fit import demand_named, new_table
        from airflow_provider_sinks.connectors.table_format.encoding import types_of

        given, target = types_of(output), iceberg_sink(spec).target.iceberg
        demand_named(given, target)
        if target.create:
            new_table(given, target)

    def target_checks(self, spec: SinkSpec, options: ConnectionOptions | None) -> Iterable[Check]:
        """Look at the tables, with the login of the connection."""
        from airflow_provider_sinks.connectors.table_format.preflight import table_checks

        sink = iceberg_sink(spec)
        connector = _connector(sink, options)
        try:
            seen = connector.identify()
            return list(table_checks(sink.target.iceberg.connection, sink, seen, _MAINTENANCE))
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
        """Do nothing: nobody waits for staged files."""


def _connector(
    sink: IcebergSink, options: ConnectionOptions | None, say: Say = lambda _: None
) -> IcebergConnector:
    from airflow_provider_sinks.connectors.iceberg.connector import IcebergConnector
    from airflow_provider_sinks.connectors.table_format.sink_tables import SinkTables

    if not isinstance(options, IcebergOptions):
        raise JobFailedError(f'connection "{sink.target.iceberg.connection}" is not of type iceberg')
    dead = sink.dead_letter.table if sink.dead_letter else None
    tables = SinkTables(
        sink.name, sink.target.iceberg.table, dead, sink.trigger.every, sink.source_has_deletes
    )
    return IcebergConnector(tables, sink.target.iceberg, options, say)


KIND: ConnectorKind = IcebergKind()
