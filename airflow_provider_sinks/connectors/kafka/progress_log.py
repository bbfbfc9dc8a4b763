"""Reads a progress topic to its end, and knows that it did.

Why the result can be trusted:

- The end is the high watermark under *read_uncommitted*, taken once. The last stable offset, which a
  default consumer reports, can lie before our own last commit while another writer's transaction is open.
- Records are read under *read_committed* until the *position* has reached that end. Control records and
  aborted batches take offsets too, so "the last message" proves nothing; the position does.
- An open transaction holds the position back. Then this waits, and a timeout is an error: never "take what
  we have".
- A long topic is read from its end in growing suffixes until one holds a driver record of the sink, and a
  record of each writer that it says has written. The driver writes only what is whole, with every writer and
  its totals, so nothing before it can be newer; a writer that is not found at all was deleted.
- What was read is kept, and the next reading goes on from there, as long as it is the same topic by id.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from confluent_kafka import KafkaException, TopicCollection

from airflow_provider_sinks.clients.wait import look_until
from airflow_provider_sinks.connectors.base import HeldUp
from airflow_provider_sinks.connectors.kafka.client_failures import code_of, text_of
from airflow_provider_sinks.connectors.kafka.connection import END, FIRST, KafkaConnection
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.kafka.progress_reader import ProgressReader, unreadable
from airflow_provider_sinks.core.progress.history import NO_HISTORY, History, fold, lost_writers
from airflow_provider_sinks.core.progress.record import DRIVER

OPEN_TRANSACTION_SECONDS = 15.0
"""A broker looks for transactions that are over time every 10 s; until then they hold readers back."""
SUFFIX_MIN = 20_000
"""The shortest suffix of a long topic that is worth a look, in offsets."""
_POLL_SECONDS = 0.02


def read_timeout_seconds(transaction_timeout: timedelta) -> float:
    """Return how long reading may take: an abandoned transaction must be able to run out meanwhile."""
    return transaction_timeout.total_seconds() + OPEN_TRANSACTION_SECONDS


@dataclass(frozen=True)
class _Extent:
    """Which topic it is, and from where to where it goes."""

    topic_id: str
    low: int
    high: int

    def is_begin_of(self, later: _Extent) -> bool:
        """Return whether the same topic has only grown since. Compaction alone never moves its begin."""
        return (self.topic_id, self.low) == (later.topic_id, later.low) and self.high <= later.high


@dataclass(frozen=True)
class _Kept:
    """What was read of a sink, and up to where."""

    extent: _Extent
    position: int
    history: History


class ProgressLog:
    """A reader of one progress topic. Safe for threads.

    :param options: the connection.
    :param topic: the progress topic; its only partition is read.
    :param answer_seconds: how long one answer of the broker may take.
    :param is_committed_only: else what is open or was given up is read too, and holds nobody back.
    """

    _shared: ClassVar[dict[tuple[int, str, str], ProgressLog]] = {}
    _sharing: ClassVar[threading.Lock] = threading.Lock()

    def __init__(
        self,
        options: KafkaOptions,
        topic: str,
        answer_seconds: float = 10.0,
        *,
        is_committed_only: bool = True,
    ) -> None:
        self._options = options
        self._is_committed_only = is_committed_only
        self._topic = topic
        self._connection = KafkaConnection(options, answer_seconds)
        self._lock = threading.Lock()
        self._kept: dict[str, _Kept] = {}

    @classmethod
    def shared(cls, options: KafkaOptions, topic: str) -> ProgressLog:
        """Return the reader that everyone in this process shares, so that each record is read once."""
        key = (os.getpid(), repr(sorted(options.librdkafka().items())), topic)  # a fork has no client threads
        with cls._sharing:
            if key not in cls._shared:
                cls._shared[key] = cls(options, topic)
            return cls._shared[key]

    def read(self, sink: str, timeout_seconds: float, held_up: HeldUp = lambda _: None) -> History:
        """Return what the topic says about a sink, up to its end at the time of the call.

        :param timeout_seconds: see :func:`read_timeout_seconds`.
        :param held_up: told once when reading does not come to its end for some seconds, and why.
        :raises UnavailableError: the end was not reached, or the topic is not there or hidden.
        """
        deadline = time.monotonic() + timeout_seconds
        with self._lock:
            extent = self._extent(deadline)
            kept = self._kept.get(sink)
            if kept is not None and kept.extent.is_begin_of(extent):
                self._kept[sink] = self._read_on(sink, kept, extent, deadline, held_up)
            else:
                self._kept[sink] = self._search(sink, extent, deadline, held_up)
            return self._kept[sink].history

    def close(self) -> None:
        """Drop the client."""
        self._connection.close()

    def _extent(self, deadline: float) -> _Extent:
        """Look which topic it is and take its end, once, open transactions included."""
        extent = look_until(self._look, bool, deadline - time.monotonic(), _POLL_SECONDS)
        if extent is None:
            raise unreadable(self._options, self._topic, "its partition has no leader", 0)
        return extent

    def _look(self) -> _Extent | None:
        asked, place = TopicCollection([self._topic]), (self._topic, 0)
        timeout = self._connection.timeout_seconds
        futures = self._connection.admin.describe_topics(asked, request_timeout=timeout)
        try:
            topic = self._connection.wait(futures[self._topic], f'describe topic "{self._topic}"')
        except KafkaException as error:
            raise unreadable(self._options, self._topic, text_of(error), code_of(error)) from error
        first, end = (self._connection.offsets([place], spec) for spec in (FIRST, END))
        if place not in first or place not in end:
            return None
        return _Extent(str(topic.topic_id), first[place], end[place])

    def _search(self, sink: str, extent: _Extent, deadline: float, held_up: HeldUp) -> _Kept:
        """Read growing suffixes until one holds a driver record and the writers it names, or everything."""
        for start in suffix_starts(extent.low, extent.high):
            found = self._read_on(sink, _Kept(extent, start, NO_HISTORY), extent, deadline, held_up)
            if DRIVER in found.history.records and not lost_writers(found.history):
                break
        return found

    def _read_on(self, sink: str, kept: _Kept, extent: _Extent, deadline: float, held_up: HeldUp) -> _Kept:
        if kept.position >= extent.high:
            return kept
        committed_only = self._is_committed_only
        with ProgressReader(
            self._options, self._topic, kept.position, is_committed_only=committed_only
        ) as reader:
            history = fold(reader.up_to(extent.high, deadline, held_up), sink, kept.history)
            return _Kept(extent, reader.position, history)


def suffix_starts(low: int, high: int) -> list[int]:
    """Return where to begin: near the end of a long topic, then ten times further back each time.

    >>> suffix_starts(0, 5_000_000)
    [4950000, 4500000, 0]
    """
    starts, size = [low], (high - low) // 10
    while size >= SUFFIX_MIN:
        starts.insert(0, high - size)
        size //= 10
    return starts
