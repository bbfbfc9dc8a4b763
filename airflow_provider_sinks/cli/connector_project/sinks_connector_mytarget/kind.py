"""The kind of target that the entry point leads to. It imports no client library, no Arrow and no Spark."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_sinks.connectors.base import HeldUp, Say
from airflow_provider_sinks.connectors.kind import ConnectorKind
from airflow_provider_sinks.core.checks.check import Check, Checks, Family
from airflow_provider_sinks.core.connection.options import ConnectionOptions
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.progress.record import WriterId
from airflow_provider_sinks.core.spec.sink import SinkSpec
from sinks_connector_mytarget.spec import MyTargetSink, mytarget_sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sinks_connector_mytarget.connector import MyTargetConnector


class MyTargetKind:
    """See :class:`.kind.ConnectorKind` for who calls what."""

    sink = MyTargetSink
    connection = None  # a SQLite file needs no Airflow connection
    form = None
    writer_module = "sinks_connector_mytarget.writer"

    def connect(
        self,
        spec: SinkSpec,
        connections: ResolvedConnections,
        read_seconds: float | None,
        held_up: HeldUp,
        say: Say,
    ) -> MyTargetConnector:
        """Return the target of a sink."""
        from sinks_connector_mytarget.connector import MyTargetConnector

        del connections, read_seconds, held_up, say
        sink = mytarget_sink(spec)
        return MyTargetConnector(sink.name, sink.target.mytarget.file, sink.tables)

    def demand_fits(self, output: DataFrame, spec: SinkSpec) -> None:
        """Do nothing: JSON takes every column."""

    def target_checks(self, spec: SinkSpec, options: ConnectionOptions | None) -> Iterable[Check]:
        """Say whether the file can be written, as far as this machine sees it."""
        del options
        checks = Checks("target mytarget", Family.PERMISSIONS)
        folder = Path(mytarget_sink(spec).target.mytarget.file).parent
        if os.access(folder, os.W_OK):
            yield checks.passes("folder", f"{folder} can be written from here")
        else:
            yield checks.unknown(
                "folder",
                f"{folder} cannot be written from here",
                "The job may run elsewhere, as another user.",
            )

    def end_abandoned(
        self,
        spec: SinkSpec,
        connections: ResolvedConnections,
        run: str,
        writers: Iterable[WriterId],
        seconds: float,
    ) -> None:
        """Do nothing: a process that dies leaves no transaction open."""


KIND: ConnectorKind = MyTargetKind()
