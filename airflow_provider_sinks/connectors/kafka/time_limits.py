"""Which times of messages a topic takes: what its broker refuses fails a transaction, so it is known before.

A broker compares a time with its own clock when the message arrives; with ``LogAppendTime`` it puts its own
in its place, and refuses none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.kafka.surely_taken import LAST_TIME_MS

TIME_TYPE = "message.timestamp.type"
LOG_APPEND_TIME = "LogAppendTime"
AFTER = "message.timestamp.after.max.ms"
BEFORE = "message.timestamp.before.max.ms"
EITHER = "message.timestamp.difference.max.ms"
"""What brokers before Kafka 4 have for both."""
_STEP_MS = 600_000
_ON_ITS_WAY_MS = 60_000
_USUAL_AGE_MS = 3_600_000
"""A message that is older may be refused by a topic whose limits cannot be seen, for all that is known."""


@dataclass(frozen=True)
class TimeLimits:
    """How far from its broker's clock the times of a topic's messages may be.

    :param before_ms: how long ago at most; ``None`` where there is no bound, or it cannot be seen.
    :param after_ms: how far ahead at most, likewise.
    :param is_hidden: they cannot be seen.
    """

    topic: str
    before_ms: int | None = None
    after_ms: int | None = None
    is_hidden: bool = False

    def taken_ms(self, now_ms: int) -> tuple[int, int]:
        """Return the first and the last time that are taken now."""
        first = 0
        if self.before_ms is not None:  # a message grows older until it arrives
            first = max(0, now_ms - self.before_ms + min(_ON_ITS_WAY_MS, self.before_ms // 10))
        return first, LAST_TIME_MS if self.after_ms is None else min(LAST_TIME_MS, now_ms + self.after_ms)

    def taken_for_long_ms(self, now_ms: int) -> tuple[int, int]:
        """Return times that are taken for some minutes; the same ones for some minutes."""
        step = now_ms // _STEP_MS * _STEP_MS
        if self.is_hidden:
            return step - _USUAL_AGE_MS, step + _STEP_MS
        first, last = self.taken_ms(step)
        return first if self.before_ms is None else first + 3 * _STEP_MS, last

    def why_not(self, time_ms: int, now_ms: int) -> str:
        """Return why a time is not taken, as a sentence; empty when it is taken."""
        first, last = self.taken_ms(now_ms)
        told = _spelled(time_ms)
        if time_ms > last:
            return f"It is {told}, and {AFTER} of the topic is {self.after_ms:,}."
        return f"It is {told}, and {BEFORE} of the topic is {self.before_ms:,}." if time_ms < first else ""


@dataclass(frozen=True)
class LearntLimits:
    """Which times a broker has refused a moment ago, where the limits of the topic cannot be seen.

    :param first_ms: the first time behind those that were too old.
    :param last_ms: the last one in front of those that were too far ahead.
    """

    first_ms: int = 0
    last_ms: int = LAST_TIME_MS

    def why_not(self, time_ms: int) -> str:
        """Return why a time beyond is not taken, as a sentence."""
        return (
            f"It is {_spelled(time_ms)}; the broker refused such a time, and the topic's limits are hidden."
        )


def time_limits(topic: str, config: Mapping[str, str]) -> TimeLimits:
    """Return the limits of a topic.

    :param config: its settings; empty where they cannot be seen.
    """
    if not config:
        return TimeLimits(topic, is_hidden=True)
    if config.get(TIME_TYPE) == LOG_APPEND_TIME:
        return TimeLimits(topic)
    both = _bound(config.get(EITHER))
    before, after = (_lower(_bound(config.get(name)), both) for name in (BEFORE, AFTER))
    return TimeLimits(topic, before, after)


def read_time_limits(options: KafkaOptions, topic: str) -> TimeLimits:
    """Ask for the limits of a topic as they are now.

    :raises UnavailableError: no answer in time.
    """
    from airflow_provider_sinks.connectors.kafka.topics import KafkaClient

    return time_limits(topic, KafkaClient.shared(options).configs([topic])[topic])


def _bound(text: str | None) -> int | None:
    return int(text) if text and int(text) < LAST_TIME_MS else None


def _lower(one: int | None, other: int | None) -> int | None:
    return min((bound for bound in (one, other) if bound is not None), default=None)


def _spelled(time_ms: int) -> str:
    try:
        return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return f"{time_ms:,} ms since 1970"
