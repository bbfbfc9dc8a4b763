"""Which kinds of target there are: found by their entry points, also our own, and known here by no name.

An entry point of the group :data:`GROUP` has the name under which a spec writes the target, and leads to a
connector's kind (:class:`airflow_provider_sinks.connectors.base.ConnectorKind`). On a cluster our own come
with the library that is sent to the driver; another package's must be installed where the driver runs, as its
code must.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, Protocol

from airflow_provider_sinks.core.errors import ConfigurationError, Problem, nearest

if TYPE_CHECKING:
    from airflow_provider_sinks.core.spec.sink import SinkSpec

GROUP = "airflow_provider_sinks.connectors"
SHORT = "kafka"
"""What ``connection/name`` alone stands for."""


class SpecKind(Protocol):
    """What a spec needs of a connector's kind."""

    @property
    def sink(self) -> type[SinkSpec]:
        """The spec of a sink with such a target."""


@functools.cache
def points() -> Mapping[str, EntryPoint]:
    """Return the entry points of all kinds, by the name of the kind."""
    return {point.name: point for point in sorted(entry_points(group=GROUP), key=lambda point: point.name)}


@functools.cache
def load(name: str) -> Any:
    """Return what the entry point of a kind leads to.

    :raises ConfigurationError: nobody has registered it, or it cannot be loaded.
    """
    if name not in points():
        problem = Problem("target", f"{name!r} is not known", nearest(name, points()))
        raise ConfigurationError("there is no such target", [problem], f"Known are {', '.join(points())}.")
    try:
        return points()[name].load()
    except ImportError as error:
        problem = Problem("target", f"{name!r} cannot be loaded from {points()[name].value}", str(error))
        raise ConfigurationError("a target cannot be loaded", [problem]) from error


def sink_model(target: Any) -> type[SinkSpec]:
    """Return the spec by which a sink with this target is judged, as far as it says which one it is.

    :param target: as the user wrote it.
    """
    named = list(target) if isinstance(target, Mapping) else []
    near = difflib.get_close_matches(str(named[0]), list(points()), n=1) if named else []
    known = [name for name in named if name in points()]
    kind: SpecKind = load(next(iter([*known, *near]), SHORT))
    return kind.sink
