"""Readings of connections that many share: each connection is read now and then, whoever asks for it.

A triggerer follows the connections of all the sinks that wait in it, and reads few connections a second.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from airflow_provider_sinks.core.connection.follow import Reading


@dataclass
class _Newest:
    """The newest reading of one connection.

    :param number: how many there were, this one included; 0 before the first.
    """

    number: int = 0
    at_seconds: float = 0.0
    value: Reading | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


class SharedReadings:
    """The newest reading of each connection.

    :param interval_seconds: a reading that is younger is not repeated.
    """

    def __init__(self, interval_seconds: float) -> None:
        self._interval_seconds = interval_seconds
        self._readings: dict[str, _Newest] = {}
        self._lock = threading.Lock()

    def newest(self, conn_id: str, read: Callable[[], Reading]) -> tuple[int, Reading | None]:
        """Return the number and the value of the newest reading; ``None`` when it could not be read.

        Two readings are told apart by their numbers: one that is seen twice is not two.

        :param read: reads the connection; called only when nobody did so lately.
        """
        with self._lock:
            reading = self._readings.setdefault(conn_id, _Newest())
        with reading.lock:
            if not reading.number or time.monotonic() - reading.at_seconds >= self._interval_seconds:
                reading.number += 1
                reading.value = _value(read)
                reading.at_seconds = time.monotonic()
            return reading.number, reading.value


def _value(read: Callable[[], Reading]) -> Reading | None:
    try:
        return read()
    except Exception:  # noqa: BLE001  whatever the reason: unreadable is not changed
        return None
