"""Which targets there are: found by their entry points, also our own, and known to nobody else by name.

An entry point of the group :data:`GROUP` has the name under which a spec writes the target, and leads to a
:class:`.base.ConnectorKind`. On a cluster our own come with the library that is sent to the driver; another
package's must be installed where the driver runs, as its code must.
"""

from __future__ import annotations

import functools
from importlib.metadata import EntryPoint, entry_points

from airflow_provider_sinks.connectors.base import ConnectorKind, HeldUp, Say, SinkConnector
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.errors import ConfigurationError, Problem, nearest
from airflow_provider_sinks.core.spec.sink import SinkSpec

GROUP = "airflow_provider_sinks.connectors"


@functools.cache
def _found() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


@functools.cache
def kind(name: str) -> ConnectorKind:
    """Return the target of a name.

    :raises ConfigurationError: nobody has registered it, or it cannot be loaded.
    """
    point = _found().get(name)
    if point is None:
        problem = Problem("target", f"{name!r} is not known", nearest(name, _found()))
        raise ConfigurationError(
            "there is no such target", [problem], f"Known are {', '.join(sorted(_found()))}."
        )
    try:
        loaded: ConnectorKind = point.load()
    except ImportError as error:
        problem = Problem("target", f"{name!r} cannot be loaded from {point.value}", str(error))
        raise ConfigurationError("a target cannot be loaded", [problem]) from error
    return loaded


def connect(
    spec: SinkSpec,
    connections: ResolvedConnections,
    read_seconds: float | None = None,
    held_up: HeldUp = lambda _: None,
    say: Say = lambda _: None,
) -> SinkConnector:
    """Return the target of a sink, behind its interface.

    :param connections: what its connection ids stand for.
    :param read_seconds: how long reading the progress may take; ``None`` is as long as the target needs.
    :param held_up: told once when reading takes some seconds, and why.
    :param say: told what a person should know although nothing stops.
    """
    return kind(spec.target_kind).connect(spec, connections, read_seconds, held_up, say)
