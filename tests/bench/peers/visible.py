"""How far a topic is: what readers may see, and what is there."""

from __future__ import annotations

import time
from collections.abc import Callable

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

_PATIENCE_SECONDS = 30.0
_PAUSE_SECONDS = 0.1


class Ends:
    """The ends of a topic's partitions, added up.

    :param partitions: how many it has.
    """

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self._bootstrap = bootstrap
        self._asked = {TopicPartition(topic, number): OffsetSpec.latest() for number in range(partitions)}
        self._admin = self._client()

    def stable(self) -> int:
        """Return up to where a ``read_committed`` reader gets, control records of transactions included."""
        return self._sum(IsolationLevel.READ_COMMITTED)

    def high(self) -> int:
        """Return what was written, open and aborted transactions included."""
        return self._sum(IsolationLevel.READ_UNCOMMITTED)

    def _sum(self, level: IsolationLevel) -> int:
        return self._patiently(
            lambda: sum(
                found.result(10).offset
                for found in self._admin.list_offsets(
                    self._asked, isolation_level=level, request_timeout=5
                ).values()
            )
        )

    def _patiently(self, ask: Callable[[], int]) -> int:
        """Ask again with a new client: one may remember that a new topic had no leader."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                return ask()
            except KafkaException:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE_SECONDS)
                self._admin = self._client()

    def _client(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self._bootstrap, "log_level": 0})
