"""Asks the target how it does, beside the epochs, for the status of the sink."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from airflow_provider_sinks.connectors.base import Health, MetricValue, SinkConnector

_AGAIN_SECONDS = 10.0
_WELL = "well"


class HealthWatch(threading.Thread):
    """Asks at once, and then every few seconds, from a thread of its own: an answer may take its time.

    :param target: the sink's target; its answers never raise.
    """

    def __init__(self, target: SinkConnector) -> None:
        super().__init__(name="health", daemon=True)
        self._target = target
        self._closing = threading.Event()
        self.health = ""
        self.metrics: Mapping[str, MetricValue] = {}

    def run(self) -> None:
        """Ask until :meth:`close`. Called by ``start``."""
        while True:
            self.metrics = dict(self._target.metrics())
            self.health = _told(self._target.health_check())
            if self._closing.wait(_AGAIN_SECONDS):
                return

    def close(self) -> None:
        """Ask no more."""
        self._closing.set()


def _told(health: Health) -> str:
    return _WELL if health.is_well else health.detail
