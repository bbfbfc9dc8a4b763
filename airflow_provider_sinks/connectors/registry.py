"""Makes the connector of a sink: the one that its spec names, behind the interface of all."""

from __future__ import annotations

from airflow_provider_sinks.connectors.base import ConnectorKind, HeldUp, Say, SinkConnector
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.spec.kinds import load
from airflow_provider_sinks.core.spec.sink import SinkSpec


def kind(spec: SinkSpec) -> ConnectorKind:
    """Return the kind of a sink's target.

    :raises ConfigurationError: nobody has registered it, or it cannot be loaded.
    """
    found: ConnectorKind = load(spec.target_kind)
    return found


def connect(
    spec: SinkSpec,
    connections: ResolvedConnections,
    read_seconds: float | None = None,
    held_up: HeldUp = lambda _: None,
    say: Say = lambda _: None,
) -> SinkConnector:
    """Return the target of a sink.

    :param connections: what its connection ids stand for.
    :param read_seconds: how long reading the progress may take; ``None`` is as long as the target needs.
    :param held_up: told once when reading takes some seconds, and why.
    :param say: told what a person should know although nothing stops.
    """
    return kind(spec).connect(spec, connections, read_seconds, held_up, say)
