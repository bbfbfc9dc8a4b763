"""What became of a transaction's rows: which was not delivered, for itself or because of another one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

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


class Deliveries(Protocol):
    """What a transaction asks about the rows in it."""

    @property
    def first_failure(self) -> KafkaError | None:
        """Why a broker refused the first of them, where it did."""

    def demand_delivered(self, cause: KafkaError | None = None) -> None:
        """Raise when a broker refused one of them for what it is.

        :param cause: what the transaction says of it, where it was asked.
        """

    def forget(self) -> None:
        """Forget what was refused: the transaction is over."""

    def note_undelivered(self, error: KafkaError, topic: str, size_bytes: int) -> None:
        """Take note of a record that was not delivered."""


class NoRows:
    """The rows of a driver's transaction: none."""

    first_failure: KafkaError | None = None

    def demand_delivered(self, cause: KafkaError | None = None) -> None:
        """Do nothing."""

    def forget(self) -> None:
        """Do nothing."""

    def note_undelivered(self, error: KafkaError, topic: str, size_bytes: int) -> None:
        """Do nothing."""
