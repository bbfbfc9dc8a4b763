"""A kind of target: what the entry point of a connector leads to, before anything is connected."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from airflow_provider_sinks.connectors.base import HeldUp, Say, SinkConnector
from airflow_provider_sinks.connectors.connection_checks import CheckedConnectionType
from airflow_provider_sinks.connectors.target_form import TargetForm
from airflow_provider_sinks.core.progress.record import WriterId

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from airflow_provider_sinks.core.checks.check import Check
    from airflow_provider_sinks.core.connection.options import ConnectionOptions
    from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
    from airflow_provider_sinks.core.spec.sink import SinkSpec


class ConnectorKind(Protocol):
    """A kind of target. Its module imports no client library, no Arrow and no Spark."""

    @property
    def sink(self) -> type[SinkSpec]:
        """The spec of a sink with such a target, with its rules."""

    @property
    def connection(self) -> CheckedConnectionType | None:
        """The type of its Airflow connection: its own, or one of another connector; ``None`` for none."""

    @property
    def form(self) -> TargetForm | None:
        """What the form that runs a sink once asks about such a target; ``None``: it has none."""

    @property
    def writer_module(self) -> str:
        """What its writers are made of; executors load it before their first task."""

    def connect(
        self,
        spec: SinkSpec,
        connections: ResolvedConnections,
        read_seconds: float | None,
        held_up: HeldUp,
        say: Say,
    ) -> SinkConnector:
        """Return the target of one sink; see :func:`.registry.connect`."""

    def demand_fits(self, output: DataFrame, spec: SinkSpec) -> None:
        """Compare the columns of a query with the target's options, without any I/O.

        Called before a start, and by validation, in a Spark that has no connection to anything.

        :param output: the query's columns with the source columns behind them, without rows.
        :raises ConfigurationError: when they do not fit.
        """

    def target_checks(self, spec: SinkSpec, options: ConnectionOptions | None) -> Iterable[Check]:
        """Judge outputs and progress place, beside the checks of the connection itself. No side effects.

        Called by a validation once the connection was seen to work; it limits the time.

        :param options: of the target's connection, with its address judged already; ``None`` without one.
        :raises SinkError: they could not be looked at.
        """

    def end_abandoned(
        self,
        spec: SinkSpec,
        connections: ResolvedConnections,
        run: str,
        writers: Iterable[WriterId],
        seconds: float,
    ) -> None:
        """End what the writers of a run left open, unless a newer run of the sink is in force.

        Called by Airflow behind a driver that was ended hard, so that no reader waits for its transactions.

        :param run: the uuid of the run that is over.
        :param writers: every writer that can have something open.
        :param seconds: how long all of it may take.
        :raises SinkError: it did not work out in time; the target ends them by itself, later.
        """
