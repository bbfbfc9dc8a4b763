"""The options of all connections of a launch: read once from Airflow, handed to the job in a private file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from airflow_provider_sinks.core.connection.options import ConnectionOptions
from airflow_provider_sinks.core.connection.types import known_types
from airflow_provider_sinks.core.errors import ConfigurationError, Problem, nearest

Options = TypeVar("Options", bound=ConnectionOptions)


@dataclass(frozen=True)
class ResolvedConnections:
    """Connection ids and what they stand for. Its JSON holds secrets; its ``repr`` does not.

    :param options: by connection id.
    """

    options: Mapping[str, ConnectionOptions]

    def get(self, conn_id: str, wanted: type[Options]) -> Options:
        """Return the options of a connection.

        :param wanted: the class of options that its type has.
        :raises ConfigurationError: it is not there, or of another type.
        """
        if conn_id not in self.options:
            problem = Problem("", f"there is no connection {conn_id!r}", nearest(conn_id, self.options))
            raise ConfigurationError(f'connection "{conn_id}" is not known', [problem])
        found = self.options[conn_id]
        if not isinstance(found, wanted):
            raise ConfigurationError(f'connection "{conn_id}" is not of type {wanted.conn_type}')
        return found

    def visible_digests(self) -> dict[str, str]:
        """Return by connection id what tells its options apart, as far as they are no secret.

        For places where a secret, or a guess at one, must not stand: another process can compare with what a
        driver got, and misses only a change of secrets alone.
        What files hold is left out too: it may differ from machine to machine.
        """
        return {conn_id: _visible_digest(found) for conn_id, found in self.options.items()}

    def to_json(self) -> str:
        """Write everything, secrets too: for a file that only its owner may read."""
        written = {
            conn_id: {found.conn_type: dict(found.given)} for conn_id, found in sorted(self.options.items())
        }
        return json.dumps(written)

    @classmethod
    def from_json(cls, text: str) -> ResolvedConnections:
        """Read what ``to_json`` wrote, and check it again.

        :raises ConfigurationError: it is something else.
        """
        try:
            written = json.loads(text)
            return cls({conn_id: _read(conn_id, entry) for conn_id, entry in written.items()})
        except (ValueError, KeyError, TypeError, AttributeError):  # from None: the text holds secrets
            raise ConfigurationError("the connections of this launch cannot be read") from None


def _visible_digest(found: ConnectionOptions) -> str:
    shown = {name: "" if name in found.undigested else value for name, value in found.given.items()}
    return hashlib.sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest()[:32]


def _read(conn_id: str, entry: Mapping[str, Mapping[str, str]]) -> ConnectionOptions:
    [(conn_type, given)] = entry.items()
    return known_types()[conn_type].restore(conn_id, {str(name): str(value) for name, value in given.items()})
