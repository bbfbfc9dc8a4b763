"""Redis streams as a kind of target: what the entry point leads to. Imports no client, no Arrow, no Spark."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from airflow_provider_sinks.connectors.base import HeldUp, Say
from airflow_provider_sinks.connectors.kind import ConnectorKind
from airflow_provider_sinks.connectors.target_form import TargetForm
from airflow_provider_sinks.core.checks.check import Check, Checks, Family
from airflow_provider_sinks.core.connection.options import ConnectionOptions
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.decision.facts import Existence
from airflow_provider_sinks.core.errors import JobFailedError
from airflow_provider_sinks.core.progress.record import WriterId
from airflow_provider_sinks.core.spec.sink import SinkSpec
from sinks_connector_redis.connection_type import REDIS
from sinks_connector_redis.options import RedisOptions
from sinks_connector_redis.spec import RedisSink, redis_sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sinks_connector_redis.connector import RedisConnector

_FORM = TargetForm(
    fields={"target": {"type": "string", "minLength": 1, "title": "Target stream"}},
    target=(
        '{"redis": {"connection": {{ params.target_connection | tojson }},'
        ' "stream": {{ params.target | tojson }}}}'
    ),
    connection="Redis connection",
)


class RedisKind:
    """See :class:`.kind.ConnectorKind`."""

    sink = RedisSink
    connection = REDIS
    form = _FORM
    writer_module = "sinks_connector_redis.writer"

    def connect(
        self,
        spec: SinkSpec,
        connections: ResolvedConnections,
        read_seconds: float | None,
        held_up: HeldUp,
        say: Say,
    ) -> RedisConnector:
        """Return the target of a sink; reading its progress waits for nobody."""
        from sinks_connector_redis.connector import RedisConnector

        del read_seconds, held_up
        sink = redis_sink(spec)
        return RedisConnector(sink, connections.get(sink.target.redis.connection, RedisOptions), say)

    def demand_fits(self, output: DataFrame, spec: SinkSpec) -> None:
        """Do nothing: every column has a form as text."""

    def target_checks(self, spec: SinkSpec, options: ConnectionOptions | None) -> Iterable[Check]:
        """Look at the keys."""
        from sinks_connector_redis.connector import RedisConnector

        if not isinstance(options, RedisOptions):
            raise JobFailedError(f'sink "{spec.name}" has no connection of type redis')
        checks, connector = (
            Checks(options.conn_id, Family.PERMISSIONS),
            RedisConnector(redis_sink(spec), options),
        )
        try:
            seen = connector.identify()
        finally:
            connector.close()
        for role, facts in seen.items():
            title = facts.title(role)
            if facts.unfit is not None:
                yield checks.fails(title, f"{facts.unfit.what}: {facts.unfit.why}", facts.unfit.repair)
            else:
                there = facts.existence is Existence.PRESENT
                yield checks.passes(
                    title, "is there" if there else "is not there yet: the first start makes it"
                )

    def end_abandoned(
        self,
        spec: SinkSpec,
        connections: ResolvedConnections,
        run: str,
        writers: Iterable[WriterId],
        seconds: float,
    ) -> None:
        """Do nothing: nobody waits for what is staged, and the next start sweeps it."""


KIND: ConnectorKind = RedisKind()
