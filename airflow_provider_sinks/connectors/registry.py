"""Makes source and target of a sink, those that its spec names, and tells what connections the sink needs."""

from __future__ import annotations

from functools import cache

from airflow_provider_sinks.connectors.base import HeldUp, Say, SinkConnector
from airflow_provider_sinks.connectors.connection_checks import CheckedConnectionType
from airflow_provider_sinks.connectors.kind import ConnectorKind
from airflow_provider_sinks.connectors.schema_registry.connection_type import SCHEMA_REGISTRY
from airflow_provider_sinks.connectors.source import SinkSource, SourceKind
from airflow_provider_sinks.core.connection.options import ConnectionOptions
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.connection.types import known_types
from airflow_provider_sinks.core.spec.kinds import LOOKUP, SOURCE, load
from airflow_provider_sinks.core.spec.sink import SinkSpec


def kind(spec: SinkSpec) -> ConnectorKind:
    """Return the kind of a sink's target.

    :raises ConfigurationError: nobody has registered it, or it cannot be loaded.
    """
    found: ConnectorKind = load(spec.target_kind)
    return found


def connection_types(spec: SinkSpec) -> dict[str, str]:
    """Return the connections that a sink names, the source's first, and the type that each must have."""
    lookups = {lookup.postgres.connection: _type_of(LOOKUP) for lookup in spec.lookups.values()}
    return end_types(spec) | lookups | dict.fromkeys(spec.registries, SCHEMA_REGISTRY.name)


def end_types(spec: SinkSpec) -> dict[str, str]:
    """Return the same without lookups and schema registries: what it takes to look at source and target."""
    ends, brought = {spec.source_connection: _type_of(SOURCE)}, kind(spec).connection
    if spec.target_connection and brought:
        ends[spec.target_connection] = brought.name
    return ends


@cache
def _type_of(named: str) -> str:
    """Return the type of the connections of a kind of ours that has one."""
    found: ConnectorKind = load(named)
    assert found.connection is not None  # noqa: S101  sources and lookups are on a connection
    return found.connection.name


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


def source_of(spec: SinkSpec, connections: ResolvedConnections) -> SinkSource:
    """Return the source of a sink.

    :param connections: what its connection ids stand for.
    :raises ConfigurationError: its connection is not among them, or of another type.
    """
    found: SourceKind = load(SOURCE)
    return found.source(spec, connections)


def source_on(spec: SinkSpec, options: ConnectionOptions) -> SinkSource:
    """Return the source of a sink as it is reached by these options of its connection.

    :raises ConfigurationError: they are of another type.
    """
    return source_of(spec, ResolvedConnections({spec.source_connection: options}))
