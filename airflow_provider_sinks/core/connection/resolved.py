"""The options of all connections of a launch: read once from Airflow, handed to the job in a private file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from airflow_provider_sinks.core.connection.kafka_names import SECRETS
from airflow_provider_sinks.core.connection.kafka_options import PEM_FILES, KafkaOptions
from airflow_provider_sinks.core.connection.postgres_options import SECRETS as POSTGRES_SECRETS
from airflow_provider_sinks.core.connection.postgres_options import PostgresOptions
from airflow_provider_sinks.core.errors import ConfigurationError, Problem, nearest

ConnectionOptions = KafkaOptions | PostgresOptions


@dataclass(frozen=True)
class ResolvedConnections:
    """Connection ids and what they stand for. Its JSON holds secrets; its ``repr`` does not.

    :param options: by connection id.
    """

    options: Mapping[str, ConnectionOptions]

    def kafka(self, conn_id: str) -> KafkaOptions:
        """Return the options of a Kafka connection.

        :raises ConfigurationError: it is not there, or of another type.
        """
        found = self._find(conn_id)
        if not isinstance(found, KafkaOptions):
            raise ConfigurationError(f'connection "{conn_id}" is not of type kafka')
        return found

    def postgres(self, conn_id: str) -> PostgresOptions:
        """Return the options of a Postgres connection.

        :raises ConfigurationError: it is not there, or of another type.
        """
        found = self._find(conn_id)
        if not isinstance(found, PostgresOptions):
            raise ConfigurationError(f'connection "{conn_id}" is not of type postgres')
        return found

    def _find(self, conn_id: str) -> ConnectionOptions:
        if conn_id not in self.options:
            problem = Problem("", f"there is no connection {conn_id!r}", nearest(conn_id, self.options))
            raise ConfigurationError(f'connection "{conn_id}" is not known', [problem])
        return self.options[conn_id]

    def visible_digests(self) -> dict[str, str]:
        """Return by connection id what tells its options apart, as far as they are no secret.

        For places where a secret, or a guess at one, must not stand: another process can compare with what a
        driver got, and misses only a change of secrets alone.
        What files hold is left out too: it may differ from machine to machine.
        """
        return {conn_id: _visible_digest(found) for conn_id, found in self.options.items()}

    def to_json(self) -> str:
        """Write everything, secrets too: for a file that only its owner may read."""
        return json.dumps({conn_id: _written(found) for conn_id, found in sorted(self.options.items())})

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
    if isinstance(found, KafkaOptions):
        given, hidden = found.options, SECRETS | set(PEM_FILES.values())
    else:
        given, hidden = found.parameters, POSTGRES_SECRETS
    shown = {name: "" if name in hidden else value for name, value in given.items()}
    return hashlib.sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest()[:32]


def _written(found: ConnectionOptions) -> dict[str, object]:
    if isinstance(found, KafkaOptions):
        return {"kafka": dict(found.options)}
    return {"postgres": dict(found.parameters)}


def _read(conn_id: str, entry: Mapping[str, Mapping[str, str]]) -> ConnectionOptions:
    if "kafka" in entry:
        return KafkaOptions.from_connection_extra(entry["kafka"], conn_id)
    return PostgresOptions(conn_id, {str(name): str(value) for name, value in entry["postgres"].items()})


__all__ = ["ConnectionOptions", "KafkaOptions", "PostgresOptions", "ResolvedConnections"]
