"""Reads the dead letters of a topic: the newest, all, or one. Changes nothing, and commits no offset."""

from __future__ import annotations

import heapq
import itertools
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from airflow_provider_sinks.connectors.kafka.connection import client_config
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.kafka.topics import KafkaClient
from airflow_provider_sinks.core.dead_letters.letter import Letter
from airflow_provider_sinks.core.dead_letters.spelling import letter_of_record
from airflow_provider_sinks.core.decision.facts import Existence
from airflow_provider_sinks.core.errors import UnavailableError

Takes = Callable[[Letter], bool]
Ranges = Mapping[int, tuple[int, int]]

_BATCH = 1000
_POLL_SECONDS = 0.5
_SILENT_SECONDS = 30.0
_WINDOW_MIN = 500
_WINDOW_GROWS = 8


class KafkaLetters:
    """The committed letters of one topic. Use it as a context manager.

    :param options: the connection of the target, where the topic is.
    """

    def __init__(self, options: KafkaOptions, topic: str) -> None:
        self._topic = topic
        self._servers = options.bootstrap_servers
        self._client = KafkaClient(options)
        self._consumer = Consumer(
            {
                **client_config(options),
                "group.id": f"sinks-dead-letters-{uuid.uuid4()}",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "earliest",
                "allow.auto.create.topics": False,
            }
        )

    def all(self) -> Iterator[Letter]:
        """Yield every letter, partition by partition as they come.

        :raises UnavailableError: the topic could not be read to its end.
        """
        yield from self._read(self._whole())

    def newest(self, limit: int, takes: Takes) -> list[Letter]:
        """Return the newest letters that are wanted, the newest first; reads no more than it must.

        :param limit: how many at most.
        """
        return newest_of(self._whole(), self._read, limit, takes)

    def at(self, place: tuple[int, int]) -> Letter | None:
        """Return the letter of a place, if one is there."""
        partition, offset = place
        low, high = self._whole().get(partition, (0, 0))
        if not low <= offset < high:
            return None
        return next(iter(self._read({partition: (offset, offset + 1)})), None)

    def close(self) -> None:
        """Drop the clients."""
        self._consumer.close()
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _whole(self) -> dict[int, tuple[int, int]]:
        facts = self._client.observe_topics([self._topic])[self._topic]
        if facts.existence is Existence.UNKNOWN:
            raise UnavailableError(f'dead-letter topic "{self._topic}" cannot be seen', facts.reason)
        return {partition: (low, facts.high.get(partition, low)) for partition, low in facts.low.items()}

    def _read(self, ranges: Ranges) -> Iterator[Letter]:
        """Yield the committed letters of some ranges; what an open transaction holds is not there yet."""
        left = {partition: end for partition, (first, end) in ranges.items() if first < end}
        self._consumer.assign([TopicPartition(self._topic, p, ranges[p][0]) for p in left])
        heard_at = time.monotonic()
        while left:
            messages = self._consumer.consume(_BATCH, _POLL_SECONDS)
            for message in messages:
                yield from self._take(message, left)
            if messages:
                heard_at = time.monotonic()
            elif time.monotonic() - heard_at > _SILENT_SECONDS:
                raise UnavailableError(
                    f'dead-letter topic "{self._topic}" could not be read to its end',
                    f"Kafka at {self._servers} was silent for {_SILENT_SECONDS:.0f} s.",
                    "Try again; check the brokers.",
                )
        self._consumer.unassign()

    def _take(self, message: Message, left: dict[int, int]) -> Iterator[Letter]:
        """Yield a message that lies in its range, and strike a partition that is read to its end."""
        partition, offset, error = message.partition(), message.offset(), message.error()
        if error is not None:
            if error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001  public in C
                raise self._unreadable(KafkaException(error))
            left.pop(partition if partition is not None else -1, None)
            return
        if partition is None or offset is None or partition not in left:
            return
        if offset < left[partition]:
            yield _letter(partition, offset, message)
        if offset + 1 >= left[partition]:
            del left[partition]

    def _unreadable(self, error: KafkaException) -> UnavailableError:
        return UnavailableError(
            f'dead-letter topic "{self._topic}" could not be read',
            f"{error.args[0].str()} (Kafka at {self._servers})",
            f"Allow Read on topic {self._topic} to the user of the connection.",
        )


def newest_of(
    whole: Ranges, read: Callable[[Ranges], Iterable[Letter]], limit: int, takes: Takes
) -> list[Letter]:
    """Return the newest letters that are wanted: each partition is read backwards, in growing steps.

    A partition is left when what was read of it is older than all that was found. So it does not matter how
    many letters nobody asked for lie behind those that are wanted, in that partition or in others.

    :param whole: where each partition begins and ends.
    :param read: yields the letters of some ranges, in the order of each partition.
    """
    ends = {partition: end for partition, (_, end) in whole.items()}
    found: list[Letter] = []
    window = max(_WINDOW_MIN, limit)
    while ends:
        starts = {p: max(whole[p][0], end - window) for p, end in ends.items()}
        oldest: dict[int, Letter] = {}
        letters = _noted(read({p: (starts[p], end) for p, end in ends.items()}), oldest)
        found = heapq.nlargest(limit, itertools.chain(found, filter(takes, letters)), key=_age)
        ends = {
            p: at
            for p, at in starts.items()
            if at > whole[p][0] and not _is_behind(found, limit, oldest.get(p))
        }
        window *= _WINDOW_GROWS
    return found


def _noted(letters: Iterable[Letter], first: dict[int, Letter]) -> Iterator[Letter]:
    """Yield letters, and keep the first of each partition."""
    for letter in letters:
        first.setdefault(letter.place[0], letter)
        yield letter


def _is_behind(found: Sequence[Letter], limit: int, oldest: Letter | None) -> bool:
    """Whether enough is found that is newer than the oldest letter that was read of a partition."""
    return len(found) >= limit and oldest is not None and _age(oldest) <= _age(found[-1])


def _age(letter: Letter) -> tuple[int, tuple[int, int]]:
    return letter.at_ms, letter.place


def _letter(partition: int, offset: int, message: Message) -> Letter:
    given = message.headers()
    headers = tuple(
        (name, value.encode() if isinstance(value, str) else value)
        for name, value in (given if isinstance(given, list) else [])
    )
    _, at_ms = message.timestamp()
    key, value = message.key(), message.value()
    return letter_of_record((partition, offset), at_ms, _bytes(key), _bytes(value), headers)


def _bytes(content: str | bytes | None) -> bytes | None:
    return content.encode() if isinstance(content, str) else content
