"""The fields that forms share, with what Airflow's own check of a form refuses."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from airflow.sdk import Param

from airflow_provider_sinks.core.errors import Problem, nearest
from airflow_provider_sinks.core.spec.fields import CONN_ID_PATTERN, NAME_PATTERN
from airflow_provider_sinks.core.spec.sink import SinkSpec

Sinks = Sequence[SinkSpec | Mapping[str, Any] | str]
"""Sinks, or their names."""


def sink_field(sinks: Sinks = (), **more: Any) -> Param:
    """Return the field that names a sink.

    :param sinks: are suggested; another name can be written too, and is looked up when the form is run.
    """
    names = sorted({name for sink in sinks if (name := _name(sink)) is not None})
    described = {"title": "Sink", "description": "Its name, as the list of assets shows it behind `sink:`."}
    suggested = {"examples": names} if names else {}
    return Param(**{"type": "string", "pattern": NAME_PATTERN, **described, **suggested, **more})


def sink_problems(sinks: object) -> Iterator[Problem]:
    """Judge the sinks that a form suggests."""
    if not isinstance(sinks, list | tuple):
        yield Problem("sinks", f"is {sinks!r}", "a list of sinks or of their names")
        return
    for sink in sinks:
        name = _name(sink)
        if name is None or not re.fullmatch(NAME_PATTERN, name):
            yield Problem("sinks", f"holds {sink!r}", "a sink, or its name")


def connection_field(connections: Sequence[str] | None, never: Collection[str] = (), **more: Any) -> Param:
    """Return the field that names a connection.

    :param connections: those that may be chosen; ``None`` means any.
    :param never: those that may not be chosen in any case.
    """
    allowed: dict[str, Any] = {"pattern": CONN_ID_PATTERN}
    if connections is not None:
        allowed = {"enum": list(connections)}
    elif never:
        allowed["not"] = {"enum": sorted(never)}
    return Param(**{"type": "string", "title": "Connection", **allowed, **more})


def connection_problems(connections: object, argument: str = "connections") -> Iterator[Problem]:
    """Judge the connections that a form offers.

    :param argument: the one that names them.
    """
    hint = 'ids of connections: ["kafka_prod"]'
    if connections is not None and not _are_texts(connections):
        yield Problem(argument, f"is {connections!r}", hint)
    elif isinstance(connections, list | tuple):
        wrong = [conn_id for conn_id in connections if not re.fullmatch(CONN_ID_PATTERN, conn_id)]
        yield from (Problem(argument, f"holds {conn_id!r}", hint) for conn_id in wrong)


def server_rule(servers: Sequence[str]) -> dict[str, Any]:
    """Return what an option that names servers must be like: one of these, or several with commas between."""
    one = "|".join(re.escape(server) for server in servers)
    return {"type": "string", "pattern": rf"^({one})(\s*,\s*({one}))*$"}


def server_problems(servers: object) -> Iterator[Problem]:
    """Judge the servers that new options may lead to."""
    if servers is not None and not _are_texts(servers):
        yield Problem("servers", f"is {servers!r}", 'addresses: ["new:9093"]')


def preset(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return what a field holds before anybody fills it in; nothing means that it must be filled in."""
    return {"default": values[name]} if name in values else {}


def preset_problems(values: object, names: Sequence[str]) -> Iterator[Problem]:
    """Judge the names of the fields that are filled in beforehand."""
    if not isinstance(values, Mapping):
        yield Problem("values", f"is {values!r}", f"values of fields by name: {', '.join(names)}")
        return
    for name in values:
        if name not in names:
            yield Problem(f"values.{name}", "is no field of this form", nearest(str(name), names))


def _are_texts(value: object) -> bool:
    """Tell a list of texts from one text, which would count as many of one letter each."""
    texts = isinstance(value, list | tuple) and all(isinstance(one, str) and one for one in value)
    return texts and bool(value)


def _name(sink: object) -> str | None:
    if isinstance(sink, SinkSpec):
        return sink.name
    name = sink.get("name") if isinstance(sink, Mapping) else sink
    return name if isinstance(name, str) else None
