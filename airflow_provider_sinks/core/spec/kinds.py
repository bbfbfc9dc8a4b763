"""Which kinds of target there are: found by their entry points, also our own, and known here by no name.

An entry point of the group :data:`GROUP` has the name under which a spec writes the target, and leads to a
connector's kind (:class:`airflow_provider_sinks.connectors.kind.ConnectorKind`). On a cluster our own come
with the library that is sent to the driver; another package's must be installed where the driver runs, as its
code must.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, Protocol

from airflow_provider_sinks.core.errors import ConfigurationError, Problem

if TYPE_CHECKING:
    from airflow_provider_sinks.core.spec.sink import SinkSpec

GROUP = "airflow_provider_sinks.connectors"
SOURCE = "kafka"
"""The kind of every source."""
LOOKUP = "postgres"
"""The kind of every lookup."""
SHORT = SOURCE
"""What ``connection/name`` alone stands for: as a source, and so as a target."""
_OURS = "airflow_provider_sinks."


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
        raise ConfigurationError("there is no such target", [not_installed(name)])
    value = points()[name].value
    try:
        kind = points()[name].load()
        kind.sink, kind.connection  # noqa: B018  whoever lacks them is told here, and not where they are used
    except Exception as error:  # another package's code may raise anything while it is imported
        problem = Problem(
            "target", f"{name!r} cannot be loaded from {value}", f"{type(error).__name__}: {error}"
        )
        raise ConfigurationError("a target cannot be loaded", [problem]) from error
    return kind


def is_ours(name: str) -> bool:
    """Whether a kind is part of this package."""
    return points()[name].value.startswith(_OURS)


def unknown_kind(target: Any) -> str | None:
    """Return what a user has written as a kind of target, if that is none and near to none.

    :param target: as the user wrote it.
    """
    name = str(next(iter(target))) if isinstance(target, Mapping) and len(target) == 1 else None
    return None if name is None or name in points() or _near(name) else name


def not_installed(name: str) -> Problem:
    """Return what is wrong with a kind of target that nobody has registered."""
    hint = f"known are {', '.join(points())}; another comes in a package that must be installed here too"
    return Problem(f"target.{name}", "is no kind of target that is installed", hint)


def sink_model(target: Any) -> type[SinkSpec]:
    """Return the spec by which a sink with this target is judged, as far as it says which one it is.

    :param target: as the user wrote it.
    """
    named = list(target) if isinstance(target, Mapping) else []
    near = _near(str(named[0])) if named else []
    known = [name for name in named if name in points()]
    kind: SpecKind = load(next(iter([*known, *near]), SHORT))
    return kind.sink


def _near(name: str) -> list[str]:
    return difflib.get_close_matches(name, list(points()), n=1)
