"""Where a sink is known: in Airflow's own metadata, as an asset that carries its spec.

A task that runs a sink has the outlet ``sink:<name>`` and one inlet ``connection:<id>`` for each connection
that the sink uses, so that ``GET /assets`` answers which sinks there are and which of them a connection
feeds, for paused DAGs too. No registry of our own.

Where the spec is certain when the DAG file is read, its connections are those of the parsed sink. Where it
still holds templates it is read as the user wrote it; what depends on one is left out.

A task that is mapped over sinks has no assets by itself: Airflow takes them from ``partial(...)``, before it
makes an operator of each sink. Then nobody lists its sinks, its successes are no events, and Airflow's memory
of a sink is the Variable alone. Naming the assets makes it whole::

    SubmitSinkJobOperator.partial(task_id="submit", outlets=sink_assets(sinks)).expand(sink=sinks)
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeGuard

from airflow.sdk import Asset

from airflow_provider_sinks.arguments import is_template, plain
from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.core.spec.sink import SinkSpec

if TYPE_CHECKING:
    from pydantic import JsonValue

_PREFIX = "sink:"
_NAMING = ("connection", "catalog", "registry")
"""What names a connection in an end of a sink that cannot be parsed: a template is in it, or a mistake."""


def sink_asset(sink: object, parsed: object = None) -> Asset | None:
    """Return the asset of a sink, or ``None`` when its name is not known before the task runs.

    :param sink: a spec as a mapping, or a template for one.
    :param parsed: what judging the argument made of it: a :class:`SinkSpec`, or still a template.
    """
    name = sink.get("name") if isinstance(sink, Mapping) else None
    if not _is_literal(name):
        return None
    # As text: inside an asset's extra Airflow shows the value of keys such as "token" as ***.
    extra: dict[str, JsonValue] = {
        "spec": json.dumps(sink, sort_keys=True),
        "connections": list(connection_ids(sink, parsed)),
    }
    return Asset(f"{_PREFIX}{name}", extra=extra)


def sink_assets(sinks: Iterable[object]) -> list[Asset]:
    """Return the assets of some sinks, for the ``outlets`` or ``inlets`` of a task that is mapped over them.

    :param sinks: specs, each a ``Sink`` or a mapping; those whose name is a template are left out.
    """
    return [asset for sink in sinks if (asset := sink_asset(plain(sink), _parsed(sink))) is not None]


def outlets_of_one(given: Iterable[object], own: Asset | None) -> list[Any]:
    """Return the outlets of a task that runs one sink: what the user gave, its own, and no other sink's.

    Each instance of a mapped task is given the assets of all its sinks, and its success would be the event of
    all of them.

    :param own: the asset of the sink; ``None`` when its name is not known yet, and nothing can be told.
    """
    if own is None:
        return list(given)
    others = [asset for asset in given if not (isinstance(asset, Asset) and asset.name.startswith(_PREFIX))]
    return [*others, own]


def connection_assets(sink: object, parsed: object = None) -> list[Asset]:
    """Return one asset for each connection that a sink names.

    :param sink: a spec as a mapping, or a template for one.
    :param parsed: as in :func:`sink_asset`.
    """
    return [Asset(f"connection:{conn_id}") for conn_id in connection_ids(sink, parsed)]


def connection_ids(sink: object, parsed: object = None) -> list[str]:
    """Return the ids of the connections that a sink names, sorted.

    :param sink: a spec as a mapping, or a template for one.
    :param parsed: as in :func:`sink_asset`.
    """
    if isinstance(parsed, SinkSpec):
        return list(parsed.connections)
    if not isinstance(sink, Mapping):
        return []
    lookups = sink.get("lookups")
    ends = [
        sink.get("source"),
        sink.get("target"),
        *(lookups.values() if isinstance(lookups, Mapping) else ()),
    ]
    return sorted({conn_id for end in ends for conn_id in _connections_of(end)})


def _parsed(sink: object) -> SinkSpec | None:
    """Return a sink as it is parsed, or nothing where only its task can tell what is wrong with it."""
    if isinstance(sink, SinkSpec):
        return sink
    if not isinstance(sink, Mapping) or is_template(sink):
        return None
    try:
        return SinkSpec.parse(sink)
    except ConfigurationError:
        return None


def _connections_of(end: object) -> Iterator[str]:
    """Yield those of ``{kafka: {connection: ..., registry: ...}}``, or that of ``connection/topic``."""
    if _is_literal(end):
        yield from _of_short_form(end)
    elif isinstance(end, Mapping):
        for service in end.values():
            if isinstance(service, Mapping):
                yield from filter(_is_literal, map(service.get, _NAMING))
            elif _is_literal(service):
                yield from _of_short_form(service)


def _of_short_form(text: str) -> Iterator[str]:
    """Yield the connection of ``connection/topic``; the path of a table names none."""
    conn_id = text.rpartition("/")[0]
    if conn_id and "://" not in text and not text.startswith("/"):
        yield conn_id


def _is_literal(text: object) -> TypeGuard[str]:
    return isinstance(text, str) and "{{" not in text and "{%" not in text
