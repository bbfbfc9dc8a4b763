"""Makes the connector of a sink, the one that its spec names, and tells what connections the sink needs."""

from __future__ import annotations

from airflow_provider_sinks.connectors.base import HeldUp, Say, SinkConnector
from airflow_provider_sinks.connectors.connection_checks import CheckedConnectionType
from airflow_provider_sinks.connectors.kafka.connection_type import KAFKA
from airflow_provider_sinks.connectors.kind import ConnectorKind
from airflow_provider_sinks.connectors.postgres.connection_type import POSTGRES
from airflow_provider_sinks.connectors.schema_registry.connection_type import SCHEMA_REGISTRY
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.connection.types import known_types
from airflow_provider_sinks.core.spec.kinds import load
from airflow_provider_sinks.core.spec.sink import SinkSpec


def kind(spec: SinkSpec) -> ConnectorKind:
    """Return the kind of a sink's target.

    :raises ConfigurationError: nobody has registered it, or it cannot be loaded.
    """
    found: ConnectorKind = load(spec.target_kind)
    return found


def connection_types(spec: SinkSpec) -> dict[str, str]:
    """Return the connections that a sink names, the source's first, and the type that each must have."""
    lookups = {lookup.postgres.connection: POSTGRES.name for lookup in spec.lookups.values()}
    return end_types(spec) | lookups | dict.fromkeys(spec.registries, SCHEMA_REGISTRY.name)


def end_types(spec: SinkSpec) -> dict[str, str]:
    """Return the same without lookups and schema registries: what it takes to look at source and target."""
    ends, brought = {spec.source.kafka.connection: KAFKA.name}, kind(spec).connection
    if spec.target_connection and brought:
        ends[spec.target_connection] = brought.name
    return ends


def checked_type(name: str) -> CheckedConnectionType:
    """Return a known type of connection, with its checks."""
    found = known_types()[name]
    assert isinstance(found, CheckedConnectionType)  # noqa: S101  what a connector's kind brings
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
