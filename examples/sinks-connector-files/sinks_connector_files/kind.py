"""Files as a kind of target: what the entry point leads to. It imports no Arrow and no Spark."""

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
from airflow_provider_sinks.core.progress.identity import ResourceKind
from airflow_provider_sinks.core.progress.record import WriterId
from airflow_provider_sinks.core.spec.sink import SinkSpec
from sinks_connector_files.spec import FilesSink, files_sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sinks_connector_files.connector import FilesConnector


class FilesKind:
    """See :class:`.kind.ConnectorKind`."""

    sink = FilesSink
    connection = None
    form = None
    writer_module = "sinks_connector_files.writer"

    def connect(
        self,
        spec: SinkSpec,
        connections: ResolvedConnections,
        read_seconds: float | None,
        held_up: HeldUp,
        say: Say,
    ) -> FilesConnector:
        """Return the target of a sink; there is nothing to connect to."""
        from sinks_connector_files.connector import FilesConnector

        del connections, read_seconds, held_up, say
        return FilesConnector(spec.name, files_sink(spec).resources)

    def demand_fits(self, output: DataFrame, spec: SinkSpec) -> None:
        """Do nothing: every column is taken."""

    def target_checks(self, spec: SinkSpec, options: ConnectionOptions | None) -> Iterable[Check]:
        """Say whether the folders can be written, as far as this machine sees them."""
        del options
        checks = Checks("target files", Family.PERMISSIONS)
        for role, name in spec.resources.items():
            folder = next(path for path in (Path(name), *Path(name).parents) if path.exists())
            title = f'{role.called(ResourceKind.TABLE)} "{name}"'
            if os.access(folder, os.W_OK):
                yield checks.passes(title, f"{folder} can be written from here")
            else:
                what = f"{folder} cannot be written from here"
                yield checks.unknown(title, what, "The job may run elsewhere, as another user.")

    def end_abandoned(
        self,
        spec: SinkSpec,
        connections: ResolvedConnections,
        run: str,
        writers: Iterable[WriterId],
        seconds: float,
    ) -> None:
        """Do nothing: nobody waits for staged files."""


KIND: ConnectorKind = FilesKind()
