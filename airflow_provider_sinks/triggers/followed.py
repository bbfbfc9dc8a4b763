"""The connections of a sink that waits in the triggerer: which of them changed since its driver got them.

A triggerer knows what a driver got only as far as it is no secret. A change of a secret alone, in the seconds
between the launch and the first look or while no triggerer runs, is not noticed here: the broker refuses the
driver sooner or later, and its task launches it again.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial

from airflow_provider_sinks.connectors.registry import connection_types
from airflow_provider_sinks.core.connection.follow import Fingerprint, Following, Reading, unlike
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.hooks.connections import options_of
from airflow_provider_sinks.triggers.shared_readings import SharedReadings

_READINGS = SharedReadings(interval_seconds=10)
"""Of this triggerer: one reading serves every sink that uses a connection."""


_OTHER: Fingerprint = "what the driver got, and nobody here has read"


class FollowedConnections:
    """Follows the connections of one sink.

    :param spec: the sink.
    :param launched: by connection id, what tells the options apart that the driver got.
    """

    def __init__(self, spec: SinkSpec, launched: Mapping[str, str]) -> None:
        self._spec = spec
        self._launched = launched
        self._numbers: dict[str, int] = {}
        self._first: dict[str, Fingerprint] = {}
        self._following: Following | None = None

    def changed(self) -> tuple[str, ...]:
        """Read what was not read lately, and return the connections for whose sake to launch again."""
        reading = {conn_id: self._newer(conn_id) for conn_id in connection_types(self._spec)}
        if self._following is None:
            self._first |= {
                conn_id: self._got(conn_id, value) for conn_id, value in reading.items() if value is not None
            }
            if self._first.keys() == reading.keys():
                self._following = Following(self._first, time.monotonic())
            return ()
        values = {conn_id: value.fingerprint if value else None for conn_id, value in reading.items()}
        self._following = self._following.read(values)
        return self._following.changed(time.monotonic())

    @property
    def unlike(self) -> tuple[str, ...]:
        """The connections that never looked, here, like what the driver got."""
        return tuple(conn_id for conn_id, value in self._first.items() if value == _OTHER)

    def _got(self, conn_id: str, first: Reading) -> Fingerprint:
        """Return the fingerprint of what the driver got: the first that is read, if that looks the same."""
        return _OTHER if unlike(self._launched, {conn_id: first.visible}) else first.fingerprint

    def _newer(self, conn_id: str) -> Reading | None:
        """Return a reading that was not seen yet, or ``None``."""
        number, value = _READINGS.newest(conn_id, partial(_read, self._spec, conn_id))
        if number == self._numbers.get(conn_id):
            return None
        self._numbers[conn_id] = number
        return value


def _read(spec: SinkSpec, conn_id: str) -> Reading:
    return Reading.of(conn_id, options_of(spec, conn_id))
