"""A connection as Airflow stores it, in memory: what validation takes, whether it is stored yet or not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_provider_sinks.core.connection.options import ConnectionOptions
from airflow_provider_sinks.core.connection.types import ConnectionType, known_types
from airflow_provider_sinks.core.errors import ConfigurationError, Problem, SinkError

GENERIC = "generic"
"""What Airflow's commands and pages make of a type whose provider is not installed, with a warning."""

_BRINGS = {
    "http": "apache-airflow-providers-http",
    "spark": "apache-airflow-providers-apache-spark",
}
"""What to install so that Airflow knows a type that is no source's and no target's."""


@dataclass(frozen=True, repr=False)
class ConnectionFields:
    """The fields of an Airflow connection.

    :param extra: a mapping, or the JSON text of one.
    :param masked_words: Airflow masks each key of the extra that has one of these words in it, beside those
        that it knows itself.
    """

    conn_id: str
    conn_type: str
    host: str | None = None
    port: int | None = None
    login: str | None = None
    password: str | None = None
    schema: str | None = None
    extra: Mapping[str, Any] | str | None = None
    masked_words: tuple[str, ...] = ()

    def options(self) -> ConnectionOptions:
        """Return what a sink gets of it.

        :raises ConfigurationError: with all problems at once.
        """
        return self.of_known_type().read(self)

    def of_known_type(self) -> ConnectionType:
        """Return its type.

        :raises ConfigurationError: it is none that a sink uses.
        """
        known = known_types()
        if self.conn_type not in known:
            raise of_another_type(self.conn_id, self.conn_type, *sorted(known))
        return known[self.conn_type]

    def stored_extra(self) -> Mapping[str, Any]:
        """Return the extra alone.

        :raises ConfigurationError: it is not a JSON object.
        """
        return read_extra(self.conn_id, self.extra)

    def whole_extra(self) -> dict[str, Any]:
        """Return the extra, and with it the options that stand in other fields.

        :raises ConfigurationError: it is not a JSON object.
        """
        known = known_types().get(self.conn_type)
        return known.whole_extra(self) if known else dict(self.stored_extra())

    def __repr__(self) -> str:
        return f"ConnectionFields(conn_id={self.conn_id!r}, conn_type={self.conn_type!r})"


Given = ConnectionFields | ConnectionOptions | SinkError
"""A connection to validate: as it is stored, as a driver gets it, or why it could not be read."""


def of_another_type(conn_id: str, found: str | None, *needed: str) -> ConfigurationError:
    """Return the error of a connection that is of none of the types that are needed."""
    hint = f"{' or '.join(needed)} is needed here"
    if found == GENERIC:
        brings = {**_BRINGS, **{name: known.package for name, known in known_types().items()}}
        packages = " ".join(f'"{brings[name]}"' for name in needed if name in brings)
        hint += (
            "; Airflow makes a type generic when it does not know it: "
            f"pip install {packages}, then delete the connection and add it again"
        )
    problem = Problem("conn_type", f"is {found}", hint)
    return ConfigurationError(f'connection "{conn_id}" is of another type', [problem])


def read_extra(conn_id: str, extra: Mapping[str, Any] | str | None) -> Mapping[str, Any]:
    """Return the extra of a connection; Airflow's own reading takes broken JSON for an empty one.

    :raises ConfigurationError: it is not a JSON object.
    """
    if isinstance(extra, Mapping):
        return extra
    try:
        read = json.loads(extra or "{}")
    except ValueError as error:
        what = f"is not JSON: {error}"
    else:
        if isinstance(read, dict):
            return read
        what = "is not a JSON object"
    raise ConfigurationError(f'connection "{conn_id}" cannot be read', [Problem("extra", what)])
