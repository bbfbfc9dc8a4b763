"""A thread that follows the connections of a running launch, and has it launched again when they change."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Self

from airflow_provider_sinks.core.connection.follow import Fingerprint, Following, Reading
from airflow_provider_sinks.core.connection.options import ConnectionOptions
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.errors import SinkError

if TYPE_CHECKING:
    from airflow.sdk.types import Logger


class ConnectionWatch(threading.Thread):
    """Follow connections while the ``with`` block runs.

    :param connections: what the driver got.
    :param read: returns the options of a connection as a driver would get them now, by its id.
    :param interval_seconds: the time between two readings.
    :param restart: called once, with the ids of the connections that changed.
    :param log: takes a warning when a connection cannot be read.
    """

    def __init__(
        self,
        connections: ResolvedConnections,
        read: Callable[[str], ConnectionOptions],
        interval_seconds: float,
        restart: Callable[[tuple[str, ...]], None],
        log: Logger,
    ) -> None:
        super().__init__(name="sink-connections", daemon=True)
        self._following = Following.of(connections, time.monotonic())
        self._read = read
        self._interval_seconds = interval_seconds
        self._restart = restart
        self._log = log
        self._over = threading.Event()
        self._unreadable: set[str] = set()

    def run(self) -> None:
        """Read again and again. Called by :meth:`start`, in the new thread."""
        while not self._over.wait(self._interval_seconds):
            self._following = self._following.read(self._reading())
            if changed := self._following.changed(time.monotonic()):
                self._restart(changed)
                return

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop following; a restart that is under way has ended its launch by now."""
        self._over.set()
        self.join()

    def _reading(self) -> Mapping[str, Fingerprint | None]:
        return {conn_id: self._fingerprint_now(conn_id) for conn_id in self._following.launched}

    def _fingerprint_now(self, conn_id: str) -> Fingerprint | None:
        try:
            value = Reading.of(conn_id, self._read(conn_id)).fingerprint
        except Exception as error:  # noqa: BLE001  whatever the reason: unreadable is not changed
            self._say_once(conn_id, error.primary if isinstance(error, SinkError) else type(error).__name__)
            return None
        self._unreadable.discard(conn_id)
        return value

    def _say_once(self, conn_id: str, why: str) -> None:
        if conn_id not in self._unreadable:
            self._unreadable.add(conn_id)
            self._log.warning(
                "connection %s cannot be read now, so the sink goes on as it is: %s", conn_id, why
            )


def changed_meanwhile(
    launched: ResolvedConnections, read: Callable[[str], ConnectionOptions]
) -> tuple[str, ...]:
    """Return the connections that changed since a driver got them: read twice, by the thread's own rule.

    Asked right before a task begins to wait in the triggerer, which knows only what it reads itself: a change
    that falls into the time of a submit would be missed.
    """
    following = Following.of(launched, -math.inf)  # how long ago it was launched does not matter
    for _ in range(2):
        following = following.read({conn_id: _fingerprint_by(read, conn_id) for conn_id in launched.options})
        if not following.newer:
            break
    return following.changed(time.monotonic())


def _fingerprint_by(read: Callable[[str], ConnectionOptions], conn_id: str) -> Fingerprint | None:
    try:
        return Reading.of(conn_id, read(conn_id)).fingerprint
    except SinkError:  # unreadable is not changed
        return None
