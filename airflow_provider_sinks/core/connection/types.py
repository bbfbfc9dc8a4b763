"""The types of Airflow connections that a sink can use: each is brought by the connector that needs it."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.core.spec.kinds import is_ours, load, points

if TYPE_CHECKING:
    from airflow_provider_sinks.core.connection.alterable import AlterableOptions
    from airflow_provider_sinks.core.connection.fields import ConnectionFields
    from airflow_provider_sinks.core.connection.options import ConnectionOptions


class ConnectionType(ABC):
    """One type of Airflow connection. Stateless, without I/O; imports no client library."""

    name: str
    """As Airflow stores it."""
    package: str
    """What to install so that Airflow knows the type."""
    alterable: AlterableOptions
    """What may be altered, and what of it is secret."""

    @abstractmethod
    def read(self, fields: ConnectionFields) -> ConnectionOptions:
        """Check a connection as it is stored. Called by Airflow's side, for each launch and each look.

        :raises ConfigurationError: with all problems at once.
        """

    @abstractmethod
    def restore(self, conn_id: str, given: Mapping[str, str]) -> ConnectionOptions:
        """Return the options that told themselves so. Called by the driver, once.

        :param given: see :attr:`.options.ConnectionOptions.given`.
        :raises ConfigurationError: these are none.
        """

    def whole_extra(self, fields: ConnectionFields) -> dict[str, Any]:
        """Return the extra, and with it options that stand in other fields of the connection.

        :raises ConfigurationError: it is not a JSON object.
        """
        return dict(fields.stored_extra())

    def placed(
        self, before: ConnectionFields, columns: Mapping[str, Any], extra: Mapping[str, Any]
    ) -> ConnectionFields:
        """Return a connection as it is to be stored.

        :param columns: the fields that change.
        :param extra: all of :meth:`whole_extra`, with its changes.
        """
        return replace(before, **columns, extra=dict(extra))


@functools.cache
def known_types() -> Mapping[str, ConnectionType]:
    """Return all types by their names. Nobody can take a name of ours for a type of his own."""
    found: dict[str, ConnectionType] = {}
    for name in sorted(points(), key=lambda name: (not is_ours(name), name)):
        with suppress(ConfigurationError):  # said where a sink names the target that cannot be loaded
            kind = load(name)
            beside: Sequence[ConnectionType] = getattr(kind, "connections_beside", ())
            for brought in filter(None, [kind.connection, *beside]):
                found.setdefault(brought.name, brought)
    return found


def secret_names() -> frozenset[str]:
    """Return the names of all options that are secret in any type."""
    return frozenset().union(*(known.alterable.secrets for known in known_types().values()))


def all_secret_names() -> frozenset[str]:
    """Return the same, with second names."""
    return frozenset().union(*(known.alterable.secret_names for known in known_types().values()))


def all_address_names() -> frozenset[str]:
    """Return all names of the options that lead to a server in any type."""
    return frozenset().union(*(known.alterable.address_names for known in known_types().values()))
