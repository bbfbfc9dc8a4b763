"""The connections of a sink that waits in the triggerer: which of them changed since it began to wait."""

from __future__ import annotations

import time
from functools import partial

from airflow_provider_sinks.core.follow import Fingerprint, Following, fingerprint
from airflow_provider_sinks.core.options import ResolvedConnections
from airflow_provider_sinks.core.spec import SinkSpec
from airflow_provider_sinks.hooks.connections import connection_types, options_of
from airflow_provider_sinks.hooks.shared_readings import SharedReadings

_READINGS = SharedReadings(interval_seconds=10)
"""Of this triggerer: one reading serves every sink that uses a connection."""


class FollowedConnections:
    """Follows the connections of one sink. A triggerer that is restarted begins anew.

    :param spec: the sink.
    """

    def __init__(self, spec: SinkSpec) -> None:
        self._spec = spec
        self._numbers: dict[str, int] = {}
        self._first: dict[str, Fingerprint] = {}
        self._following: Following | None = None

    def changed(self) -> tuple[str, ...]:
        """Read what was not read lately, and return the connections for whose sake to launch again."""
        reading = {conn_id: self._newer(conn_id) for conn_id in connection_types(self._spec)}
        if self._following is None:
            self._first |= {conn_id: value for conn_id, value in reading.items() if value is not None}
            if self._first.keys() == reading.keys():
                self._following = Following(self._first, time.monotonic())
            return ()
        self._following = self._following.read(reading)
        return self._following.changed(time.monotonic())

    def _newer(self, conn_id: str) -> Fingerprint | None:
        """Return a reading that was not seen yet, or ``None``."""
        number, value = _READINGS.newest(conn_id, partial(_read, self._spec, conn_id))
        if number == self._numbers.get(conn_id):
            return None
        self._numbers[conn_id] = number
        return value


def _read(spec: SinkSpec, conn_id: str) -> Fingerprint:
    return fingerprint(ResolvedConnections({conn_id: options_of(spec, conn_id)}).to_json())
