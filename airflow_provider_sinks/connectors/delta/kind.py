"""Delta as a kind of target: what its entry point leads to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from airflow_provider_sinks.connectors.base import HeldUp, Say
from airflow_provider_sinks.connectors.delta.connection_type import DELTA
from airflow_provider_sinks.connectors.delta.options import NO_CONNECTION, DeltaOptions
from airflow_provider_sinks.connectors.delta.places import PATH_PATTERN
from airflow_provider_sinks.connectors.delta.spec import DeltaSink, delta_sink
from airflow_provider_sinks.connectors.kind import ConnectorKind
from airflow_provider_sinks.connectors.table_format.spec import Mode
from airflow_provider_sinks.connectors.target_form import MODE_AND_KEY, TargetForm, mode_and_key
from airflow_provider_sinks.core.checks.check import Check
from airflow_provider_sinks.core.connection.options import ConnectionOptions
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.errors import JobFailedError
from airflow_provider_sinks.core.progress.record import WriterId
from airflow_provider_sinks.core.spec.fields import CONN_ID_PATTERN
from airflow_provider_sinks.core.spec.sink import SinkSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from airflow_provider_sinks.connectors.delta.connector import DeltaConnector
    from airflow_provider_sinks.connectors.delta.stored_letters import DeltaLetters

_FORM = TargetForm(
    fields={
        "target": {
            "type": "string",
            "pattern": PATH_PATTERN,
            "title": "Target table",
            "description": "Its folder, or s3://bucket/folder; it must be there.",
        },
        "storage": {
            "type": ["null", "string"],
            "default": None,
            "pattern": f"^$|{CONN_ID_PATTERN}",
            "title": "Connection to the storage",
            "description": "One of type delta; a folder of the machine needs none.",
        },
        **mode_and_key([mode.value for mode in Mode]),
    },
    target=(
        '{"delta": {"path": {{ params.target | tojson }},'
        ' "connection": {{ (params.storage or none) | tojson }}, '
        f"{MODE_AND_KEY}}}}}"
    ),
    storage="storage",
    path="target",
)
_MAINTENANCE = "OPTIMIZE and VACUUM"


class DeltaKind:
    """See :class:`.kind.ConnectorKind`."""

    sink = DeltaSink
    connection = DELTA
    form = _FORM
    writer_module = "airflow_provider_sinks.connectors.delta.data_files"

    def connect(
        self,
        spec: SinkSpec,
        connections: ResolvedConnections,
        read_seconds: float | None,
        held_up: HeldUp,
        say: Say,
    ) -> DeltaConnector:
        """Return the Delta target of a sink; reading its progress waits for nobody."""
        del read_seconds, held_up
        sink = delta_sink(spec)
        return _connector(sink, _options(sink, connections), say)

    def letters(self, spec: SinkSpec, connections: ResolvedConnections) -> DeltaLetters:
        """Return the letters of the sink's table of dead letters."""
        from airflow_provider_sinks.connectors.delta.stored_letters import DeltaLetters

        sink = delta_sink(spec)
        assert sink.dead_letter is not None  # noqa: S101  whoever asks has looked
        return DeltaLetters(_options(sink, connections), sink.dead_letter.path)

    def demand_fits(self, output: DataFrame, spec: SinkSpec) -> None:
        """See that the columns that are named are there, and that a table to be made has types for all."""
        from airflow_provider_sinks.connectors.delta.fit import demand_named, new_table
        from airflow_provider_sinks.connectors.table_format.encoding import types_of

        given, target = types_of(output), delta_sink(spec).target.delta
        demand_named(given, target)
        if target.create:
            new_table(given, target)

    def target_checks(self, spec: SinkSpec, options: ConnectionOptions | None) -> Iterable[Check]:
        """Look at the tables, with the keys of the connection."""
        from airflow_provider_sinks.connectors.table_format.preflight import table_checks

        sink = delta_sink(spec)
        connector = _connector(sink, options or NO_CONNECTION)
        try:
            service = sink.target.delta.connection or "target delta"
            return list(table_checks(service, sink, connector.identify(), _MAINTENANCE))
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


def _options(sink: DeltaSink, connections: ResolvedConnections) -> DeltaOptions:
    name = sink.target.delta.connection
    return connections.get(name, DeltaOptions) if name is not None else NO_CONNECTION


def _connector(sink: DeltaSink, options: ConnectionOptions, say: Say = lambda _: None) -> DeltaConnector:
    from airflow_provider_sinks.connectors.delta.connector import DeltaConnector
    from airflow_provider_sinks.connectors.table_format.sink_tables import SinkTables

    if not isinstance(options, DeltaOptions):
        raise JobFailedError(f'connection "{sink.target.delta.connection}" is not of type delta')
    dead = sink.dead_letter.path if sink.dead_letter else None
    tables = SinkTables(sink.name, sink.target.delta.path, dead, sink.trigger.every, sink.source_has_deletes)
    return DeltaConnector(tables, sink.target.delta, options, say)


KIND: ConnectorKind = DeltaKind()
