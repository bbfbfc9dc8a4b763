"""A message that was not delivered: for what it is, or because of another one."""

from __future__ import annotations

from dataclasses import dataclass

from confluent_kafka import KafkaError

_PURGED = frozenset({KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT})  # noqa: SLF001  public in C


def is_consequence(error: KafkaError) -> bool:
    """Whether a message was thrown away because another one had failed.

    Once a broker has refused a message, librdkafka purges those that wait behind it; their reports may come
    before that of the refused one.
    """
    return error.code() in _PURGED


@dataclass(frozen=True)
class Undelivered:
    """A message that was not delivered.

    :param error: why.
    :param topic: where it was to go.
    """

    error: KafkaError
    topic: str
    size_bytes: int

    def behind(self, first: Undelivered | None) -> Undelivered:
        """Return which of two tells more: the first, unless it only followed from this one."""
        return self if first is None or is_consequence(first.error) else first
