"""Reads the only partition of a progress topic from an offset on, until the position has reached an end.

Why the position decides and not the last message, and whose end it is, is said in :mod:`.progress_log`.
"""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Iterator
from typing import Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from airflow_provider_sinks.connectors.base import HeldUp
from airflow_provider_sinks.connectors.kafka.client_failures import Complaints, reaching_failure
from airflow_provider_sinks.connectors.kafka.connection import client_config
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.core.errors import UnavailableError

_MESSAGES = 500
_EMPTY_ANSWER_MS = 10
_POLL_SECONDS = 0.02
_PATIENCE_SECONDS = 3.0
"""How long nobody is told that reading takes long."""


class ProgressReader:
    """Reads one partition from an offset on, under *read_committed* as a rule. Use it as a context manager.

    Made for one reading: a consumer connects in about 15 ms, and an idle one would ask the broker for ever.
    """

    def __init__(
        self, options: KafkaOptions, topic: str, position: int, *, is_committed_only: bool = True
    ) -> None:
        self.position = position
        self._options = options
        self._topic = topic
        self._complaints = Complaints()
        self._consumer = Consumer(
            {
                **client_config(options),
                "error_cb": self._complaints.take,
                "group.id": f"sinks-progress-{uuid.uuid4()}",
                "isolation.level": "read_committed" if is_committed_only else "read_uncommitted",
                "enable.partition.eof": True,
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "error",
                "allow.auto.create.topics": False,
                # The end of the partition is told by an empty answer, and the broker delays those by this.
                "fetch.wait.max.ms": _EMPTY_ANSWER_MS,
                "queued.max.messages.kbytes": 16 * 1024,
                "fetch.queue.backoff.ms": 10,
            }
        )
        self._consumer.assign([TopicPartition(topic, 0, position)])

    def up_to(
        self, end: int, deadline: float, held_up: HeldUp = lambda _: None
    ) -> Iterator[tuple[int, bytes | None, bytes | None]]:
        """Yield offset, key and value of committed messages until the position has reached the end.

        :param held_up: told once when that takes some seconds, and why.
        :raises UnavailableError: it was not reached in time.
        """
        tell_at = time.monotonic() + _PATIENCE_SECONDS
        while self.position < end:
            now = time.monotonic()
            if now > deadline:
                raise self._too_late(end)
            if now > tell_at:
                late, tell_at = self._too_late(end), math.inf
                held_up(f"{late.primary} yet. {late.detail} {late.hint}")
            for message in self._consumer.consume(_MESSAGES, timeout=_POLL_SECONDS):
                offset = message.offset()
                if message.error() is not None:
                    self._take_error(message)
                elif offset is not None:
                    yield offset, message.key(), message.value()
                    self.position = offset + 1
            if self._complaints.final is not None:
                failure = KafkaException(self._complaints.final)
                what = f'show progress topic "{self._topic}"'
                raise reaching_failure(self._options, self._complaints, failure, what)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def _take_error(self, message: Message) -> None:
        """Note the end of the partition; raise what waiting does not mend; leave the rest to the deadline.

        ``GROUP_AUTHORIZATION_FAILED`` is among the rest: librdkafka wants a group id although the partition
        is assigned and no offset is ever committed.
        """
        error, offset = message.error(), message.offset()
        if error is None:
            return
        if error.code() == KafkaError._PARTITION_EOF and offset is not None:  # noqa: SLF001  public in C
            self.position = max(self.position, offset)
        elif error.code() in _HOPELESS:
            raise unreadable(self._options, self._topic, f"{error.name()}: {error.str()}", error.code())

    def _too_late(self, end: int) -> UnavailableError:
        newest = self._complaints.newest
        cause = f"Last seen: {newest.str()}" if newest else "A writer's transaction in it may still be open."
        servers = self._options.bootstrap_servers
        return UnavailableError(
            f'progress topic "{self._topic}" could not be read to its end',
            f"Reached offset {self.position} of {end} at {servers}. {cause}",
            "Try again; the broker ends an abandoned transaction after its timeout. To see it: "
            f"kafka-transactions.sh --bootstrap-server {servers} list",
        )


def unreadable(options: KafkaOptions, topic: str, reason: str, code: int) -> UnavailableError:
    """Return our error for a progress topic that cannot be read as it is now.

    :param code: the broker's error code, or 0.
    """
    servers = options.bootstrap_servers
    grant = (
        f"kafka-acls.sh --bootstrap-server {servers} --add --allow-principal User:<user of connection "
        f'"{options.conn_id}"> --operation Read --operation Describe --topic {topic}'
    )
    return UnavailableError(
        f'progress topic "{topic}" could not be read',
        f"{reason} (Kafka at {servers})",
        grant if code == KafkaError.TOPIC_AUTHORIZATION_FAILED else "Try again: the topic is being changed.",
    )


_HOPELESS = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.UNKNOWN_TOPIC_ID,
        KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001  public in C
        KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001
        KafkaError._AUTO_OFFSET_RESET,  # noqa: SLF001
    }
)
