"""What a broker has on disk: which batches a topic got, how they are compressed, and in whose transaction.

A reader of the topic cannot see it, so this reads the first segment of a partition, in the format that Kafka
calls "record batch" (its version 2, since Kafka 0.11).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from airflow_provider_sinks.local.broker import KafkaBroker

_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_HEADER = struct.Struct(">qiibIhiqqqhii")
_LENGTH_AT = 12
_COMPRESSION, _CONTROL = 0x07, 0x20


@dataclass(frozen=True)
class Batch:
    """One batch of records, or the marker that ends a transaction.

    :param producer: the id that the broker gave to the writer's transactional id.
    :param is_marker: whether it ends a transaction.
    """

    offset: int
    codec: str
    producer: int
    is_marker: bool
    records: int


def batches(broker: KafkaBroker, topic: str, partition: int = 0) -> list[Batch]:
    """Return the batches of a partition, in their order."""
    return list(_parse(content(broker, topic, partition)))


def content(broker: KafkaBroker, topic: str, partition: int = 0) -> bytes:
    """Return the bytes of a partition."""
    return (broker.folder / "data" / f"{topic}-{partition}" / f"{0:020}.log").read_bytes()


def _parse(data: bytes) -> Iterator[Batch]:
    at = 0
    while at + _HEADER.size <= len(data):
        fields = _HEADER.unpack_from(data, at)
        offset, length, attributes, producer, records = fields[0], fields[1], fields[5], fields[9], fields[12]
        if not length:  # room that the broker has reserved
            return
        yield Batch(
            offset, _CODECS[attributes & _COMPRESSION], producer, bool(attributes & _CONTROL), records
        )
        at += _LENGTH_AT + length
