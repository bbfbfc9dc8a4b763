"""Tells the outside how a launch is doing: the status document, and the driver's own words for its log."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from airflow_provider_sinks.connectors.base import MetricValue
from airflow_provider_sinks.core.errors import SinkError, UnavailableError
from airflow_provider_sinks.core.launch.files import LaunchFiles
from airflow_provider_sinks.core.launch.status import SinkState, SinkStatus
from airflow_provider_sinks.core.progress.record import WriterId
from airflow_provider_sinks.streaming.account import EpochResult
from airflow_provider_sinks.streaming.driver_log import say

_LAG_SECONDS = 2.0
_ALIVE_SECONDS = 10.0


class Reporter:
    """Keeps the status document of one launch.

    :param files: where the document stands.
    :param status: the first status.
    """

    def __init__(self, files: LaunchFiles, status: SinkStatus) -> None:
        self._files = files
        self._lag: Mapping[int, int] = {}
        self._lag_at = 0.0
        self._lock = threading.Lock()
        self._written_at = 0.0
        self.status = status
        self._write()

    def change(self, state: SinkState, **changes: Any) -> None:
        """Report a state with changes to the other fields."""
        with self._lock:
            self.status = self.status.transition(state, **changes)
            self._write()

    def waits(self, what: str) -> None:
        """Report what holds the driver up, until the next change says that it is over."""
        self.change(self.status.state, waits_for=what)
        say(self.status.one_line())

    def alive(
        self, waits_for: str = "", health: str = "", metrics: Mapping[str, MetricValue] | None = None
    ) -> None:
        """Say every few seconds that the driver lives, also while no epoch has anything to do.

        :param waits_for: what holds it up, which is said at once.
        :param health: how the target does; a change is said at once.
        :param metrics: figures about it.
        """
        if bool(waits_for) != bool(self.status.waits_for):
            self.waits(waits_for)
        elif health != self.status.health:
            self.change(self.status.state, health=health, metrics=dict(metrics or {}))
        elif time.monotonic() - self._written_at > _ALIVE_SECONDS:
            self.change(self.status.state, waits_for=waits_for)

    def epoch(
        self,
        result: EpochResult,
        totals: tuple[int, int],
        writers: Iterable[WriterId],
        end_offsets: Callable[[], Mapping[int, int]],
    ) -> None:
        """Report a whole epoch.

        :param totals: rows and dead letters in this generation.
        :param writers: every writer ever used.
        :param end_offsets: asks the broker for the end of each source partition; called every few seconds.
        """
        if time.monotonic() - self._lag_at > _LAG_SECONDS:
            with contextlib.suppress(UnavailableError):  # the epoch is whole, whatever comes after it
                self._lag = end_offsets()
            self._lag_at = time.monotonic()
        lag = {p: max(0, end - result.positions.get(p, 0)) for p, end in self._lag.items()}
        self.change(
            SinkState.RUNNING,
            epoch=result.epoch,
            rows=self.status.rows + result.rows,
            rows_total=totals[0],
            dead_total=totals[1],
            rows_per_second=round((result.rows + result.dead) / max(result.seconds, 0.001), 1),
            positions=dict(result.positions),
            lag=lag,
            writers=tuple(sorted(writers)),
            waits_for="",
        )
        say(self.status.one_line())

    def end(self, error: BaseException | None) -> None:
        """Report how the launch ended; the first end stays."""
        with self._lock:
            self.status = self.status.ended(error)
            self._write()
        if error is not None:
            say(str(error) if isinstance(error, SinkError) else f"{type(error).__name__}: {error}")
        say(self.status.one_line())

    def _write(self) -> None:
        self._files.write_status(self.status.to_json())
        self._written_at = time.monotonic()
