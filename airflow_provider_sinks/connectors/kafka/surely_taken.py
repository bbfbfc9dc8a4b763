"""Which rows their topic takes for sure, so that nobody needs their source records any more."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airflow_provider_sinks.core.errors import UnavailableError

if TYPE_CHECKING:
    from airflow_provider_sinks.connectors.kafka.factory import KafkaWriterFactory
    from airflow_provider_sinks.connectors.kafka.limits import TopicLimit
    from airflow_provider_sinks.connectors.kafka.time_limits import TimeLimits

_LOWERED_AT_MOST = 16
"""To which part of it the limit of a topic may be lowered under a sink whose letters are to be whole."""
LAST_TIME_MS = 2**63 - 1
_REMEMBERED_SECONDS = 60.0


@dataclass(frozen=True)
class SurelyTaken:
    """What the data topic takes for sure; only what it may refuse keeps the record's own key and value.

    :param size_bytes: of key, value and headers.
    :param times_ms: the times of messages, first and last, in milliseconds since 1970.
    :param without_key: whether messages without a key are among it.
    """

    size_bytes: int
    times_ms: tuple[int, int] = (0, LAST_TIME_MS)
    without_key: bool = True


class KnownLimits:
    """The limits of the data topic as the driver knows them: a letter has its record only if that came along.

    :param has_time: whether messages have times that a topic may refuse.
    """

    def __init__(self, *, has_time: bool) -> None:
        self._has_time = has_time
        self._size_bytes: int | None = None
        self._limit: TopicLimit | None = None
        self._asked_at = 0.0
        self._times: TimeLimits | None = None

    def surely_taken(self, factory: KafkaWriterFactory) -> SurelyTaken:
        """Return which rows no writer sets aside, by the size of when it was first asked, and times of now.

        Whether the topic is compacted is asked once a minute: a letter of a minute has no record with it, but
        its place.

        :raises UnavailableError: the limits could not be asked for, and were never known.
        """
        limit = self._newest_limit(factory)
        if self._size_bytes is None:
            self._size_bytes = limit.surely_taken_bytes // _LOWERED_AT_MOST
        taken = SurelyTaken(self._size_bytes, without_key=limit.is_compacted is False)
        if not self._has_time:
            return taken
        now_ms = int(time.time() * 1000)
        return replace(taken, times_ms=self._newest_times(factory).taken_for_long_ms(now_ms))

    def _newest_limit(self, factory: KafkaWriterFactory) -> TopicLimit:
        if self._limit is None or time.monotonic() - self._asked_at > _REMEMBERED_SECONDS:
            self._asked_at = time.monotonic()
            try:
                self._limit = factory.limit()
            except UnavailableError:
                if self._limit is None:
                    raise
        return self._limit

    def _newest_times(self, factory: KafkaWriterFactory) -> TimeLimits:
        try:
            self._times = factory.time_limits()
        except UnavailableError:
            if self._times is None:
                raise
        return self._times
