"""What an earlier try made of a connection, when the Variables with its secrets may be gone or changed since.

A Variable is meant to be deleted when the change is seen. So a retry takes a secret for what stands in the
connection: no value of an earlier try is kept anywhere else, nor anything made of one, which could be used
to find it out. All other options must be what was asked for, or they are somebody else's.

Only a secret that somebody edited between two tries is thus taken for ours. That is the better mistake: if
the sinks run on it, it stays. If they do not, the old options come back, as they would from ours; whoever
made the edit still has his secret, and of the old ones ``<id>.before`` was the only copy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from airflow_provider_sinks.core.alter.changes import MASK, Change, Secret, SetOption
from airflow_provider_sinks.core.connection.fields import ConnectionFields
from airflow_provider_sinks.core.connection.types import known_types


def unknown(changes: Sequence[Change]) -> dict[str, str]:
    """Return for each Variable that changes name a value that no alteration puts anywhere."""
    return {variable: MASK for _, variable in _named(changes)}


def standing(view: ConnectionFields, changes: Sequence[Change]) -> dict[str, str]:
    """Return for each Variable that changes name the value that stands in its place.

    :param view: the connection as a worker gets it now. A place that it has not holds an unknown value.
    """
    known = known_types().get(view.conn_type)
    if known is None:
        return unknown(changes)
    canonical = known.alterable.canonical
    held = {canonical(name): value for name, value in view.whole_extra().items()}
    held |= {name: getattr(view, name) for name in known.alterable.columns}
    return {variable: _known(held.get(canonical(name))) for name, variable in _named(changes)}


def _named(changes: Sequence[Change]) -> Iterator[tuple[str, str]]:
    for change in changes:
        if isinstance(change, SetOption) and isinstance(change.value, Secret):
            yield change.name, change.value.variable


def _known(value: object) -> str:
    return value if isinstance(value, str) and value.strip() else MASK
