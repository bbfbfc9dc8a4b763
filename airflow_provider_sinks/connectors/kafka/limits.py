"""What a topic takes of a row, known before that is produced: one that is refused fails its transaction.

A broker compares whole batches, so batches of several rows are kept below the topic's limit. A row that is
larger gets a batch of its own, and fits exactly when that batch does, compressed as it will be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.kafka.record_size import (
    BATCH_HEAD_BYTES,
    CLIENT_LIMIT,
    CLIENT_LIMIT_BYTES,
    TOPIC_LIMIT,
    Headers,
    client_bytes,
    stored_bytes,
    surely_taken_bytes,
)
from airflow_provider_sinks.connectors.kafka.topic_facts import POLICY, is_compacted
from airflow_provider_sinks.connectors.kafka.topics import KafkaClient

BATCH_BYTES = 1_000_000
"""How large librdkafka makes a batch unless it is told otherwise."""
_NEAR = 0.95
"""Two programs compress with one codec not quite alike; what comes this near to the limit is refused."""


@dataclass(frozen=True)
class TopicLimit:
    """What one topic takes of one connection.

    :param topic_bytes: its ``max.message.bytes``; ``None`` where that cannot be seen.
    :param client_bytes: ``message.max.bytes`` of the connection.
    :param compression: the codec of its batches.
    :param is_compacted: it takes no record without a key; ``None`` where that cannot be seen.
    """

    topic: str
    topic_bytes: int | None
    client_bytes: int
    compression: str
    is_compacted: bool | None = None

    @property
    def surely_taken_bytes(self) -> int:
        """How large key and value together may be without a closer look."""
        return surely_taken_bytes(self.client_bytes, self.topic_bytes)

    def why_not(self, key: bytes | None, value: bytes | None, headers: Headers = ()) -> str:
        """Return why a record is not taken, as a sentence; empty when it is taken."""
        size = stored_bytes(key, value, headers)
        if client_bytes(key, value, headers) > self.client_bytes:
            return f"It has {size:,} bytes, and {CLIENT_LIMIT} of the connection is {self.client_bytes:,}."
        if self.topic_bytes is None or size <= self.topic_bytes:
            return ""
        told = b"".join(name.encode() + (content or b"") for name, content in headers)
        compressed = self._compressed_bytes((key or b"") + (value or b"") + told)
        if compressed is not None and compressed <= self.topic_bytes * _NEAR:
            return ""
        shrunk = f" (about {compressed:,} with {self.compression})" if compressed is not None else ""
        return f"It has {size:,} bytes{shrunk}, and {TOPIC_LIMIT} of the topic is {self.topic_bytes:,}."

    def _compressed_bytes(self, content: bytes) -> int | None:
        if self.compression == "none":
            return None
        return BATCH_HEAD_BYTES + len(pa.compress(content, codec=self.compression, asbytes=True))


def read_limits(options: KafkaOptions, topics: Sequence[str], compression: str) -> dict[str, TopicLimit]:
    """Ask for the limits of topics as they are now.

    :raises UnavailableError: no answer in time.
    """
    client_limit = int(options.options.get(CLIENT_LIMIT, CLIENT_LIMIT_BYTES))
    seen = KafkaClient.shared(options).configs(topics)
    return {topic: _limit(topic, config, client_limit, compression) for topic, config in seen.items()}


def batch_bytes(limits: Mapping[str, TopicLimit]) -> int:
    """Return how large a batch of several rows may become, whichever of the topics it is for."""
    return min([BATCH_BYTES, *(limit.topic_bytes or BATCH_BYTES for limit in limits.values())])


def _limit(topic: str, config: Mapping[str, str], client_limit: int, compression: str) -> TopicLimit:
    """Return what a topic takes.

    :param config: its settings; empty where they cannot be seen.
    """
    size, policy = config.get(TOPIC_LIMIT), config.get(POLICY)
    return TopicLimit(
        topic,
        int(size) if size else None,
        client_limit,
        compression,
        is_compacted(policy) if policy else None,
    )
