"""Spark's formats as a kind of target: what its entry point leads to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from airflow_provider_sinks.connectors.base import HeldUp, Say
from airflow_provider_sinks.connectors.kind import ConnectorKind
from airflow_provider_sinks.connectors.postgres.connection_type import POSTGRES
from airflow_provider_sinks.connectors.postgres.options import PostgresOptions
from airflow_provider_sinks.connectors.spark_format.formats import JDBC
from airflow_provider_sinks.connectors.spark_format.spec import SparkSink, spark_sink
from airflow_provider_sinks.core.checks.check import Check, Checks, Family
from airflow_provider_sinks.core.connection.options import ConnectionOptions
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.decision.facts import Existence, ResourceFacts, Role
from airflow_provider_sinks.core.errors import JobFailedError
from airflow_provider_sinks.core.progress.record import WriterId
from airflow_provider_sinks.core.spec.sink import SinkSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from airflow_provider_sinks.connectors.spark_format.connector import SparkFormatConnector


class SparkKind:
    """See :class:`.kind.ConnectorKind`."""

    sink = SparkSink
    connection = POSTGRES
    form = None
    writer_module = ""

    def connect(
        self,
        spec: SinkSpec,
        connections: ResolvedConnections,
        read_seconds: float | None,
        held_up: HeldUp,
        say: Say,
    ) -> SparkFormatConnector:
        """Return the target of a sink; reading its progress waits for nobody."""
        del read_seconds, held_up, say
        sink = spark_sink(spec)
        name = sink.target_connection
        return _connector(sink, connections.get(name, PostgresOptions) if name is not None else None)

    def demand_fits(self, output: DataFrame, spec: SinkSpec) -> None:
        """See that the format has a form for all columns."""
        from airflow_provider_sinks.connectors.spark_format.encoding import demand_writable

        demand_writable(output, spark_sink(spec).target.spark.kind)

    def target_checks(self, spec: SinkSpec, options: ConnectionOptions | None) -> Iterable[Check]:
        """Look at output and progress as they are reached from here, and say what Spark guarantees."""
        sink = spark_sink(spec)
        checks = Checks(sink.target_connection or "target spark", Family.DATABASE)
        yield checks.passes("guarantee", sink.engine_guarantee)
        connector = _connector(sink, options)
        try:
            for role, facts in connector.identify().items():
                yield _seen(checks, role, facts, sink)
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
        """Do nothing: nobody waits for what Spark's writer has open."""


def _connector(sink: SparkSink, options: ConnectionOptions | None) -> SparkFormatConnector:
    from airflow_provider_sinks.connectors.spark_format.connector import SparkFormatConnector
    from airflow_provider_sinks.connectors.spark_format.jdbc import jdbc_options
    from airflow_provider_sinks.connectors.spark_format.outputs import FolderOutput, JdbcOutput, UnseenOutput
    from airflow_provider_sinks.connectors.spark_format.progress_folder import ProgressFolder
    from airflow_provider_sinks.connectors.spark_format.storage import storage_of

    target, kept = sink.target.spark, sink.progress_folder
    spelled = {target.kind.checked_option(name): value for name, value in target.options.items()}
    folder = ProgressFolder(storage_of(kept), kept)
    if target.kind.is_files and target.path is not None:
        output = FolderOutput(storage_of(target.path), target.path, sink.name)
        return SparkFormatConnector(sink, output, folder, spelled)
    if target.format != JDBC:
        return SparkFormatConnector(sink, UnseenOutput(sink.output), folder, spelled)
    if not isinstance(options, PostgresOptions) or target.table is None:
        raise JobFailedError(f'connection "{target.connection}" is not of type postgres')
    table = JdbcOutput(options, target.table)
    return SparkFormatConnector(sink, table, folder, {**spelled, **jdbc_options(options, target.table)})


def _seen(checks: Checks, role: Role, facts: ResourceFacts, sink: SparkSink) -> Check:
    name, hindrance = facts.title(role), sink.creations()[role].hindrance
    if facts.existence is Existence.UNKNOWN:
        return checks.fails(name, facts.reason, facts.grant, retryable=True)
    if facts.unfit is not None:
        return checks.fails(name, f"{facts.unfit.what}: {facts.unfit.why}", facts.unfit.repair)
    if facts.existence is Existence.PRESENT:
        return checks.passes(name, "is there")
    if hindrance is None:
        return checks.passes(name, "is not there; the sink makes it")
    return checks.fails(name, f"does not exist, and {hindrance.what}: {hindrance.why}", hindrance.repair)


KIND: ConnectorKind = SparkKind()
