"""How large a Kafka record is, and the two limits that it must keep.

The client's limit, ``message.max.bytes`` of the connection, is about one record before compression. The
topic's, ``max.message.bytes``, is about a batch as it is stored: behind compression, with its head.
"""

from __future__ import annotations

from collections.abc import Sequence

Headers = Sequence[tuple[str, bytes | None]]

TOPIC_LIMIT = "max.message.bytes"
CLIENT_LIMIT = "message.max.bytes"
CLIENT_LIMIT_BYTES = 1_000_000
"""What librdkafka sends at most in one record, unless ``message.max.bytes`` says otherwise."""
BATCH_HEAD_BYTES = 61
_CLIENT_EXTRA_BYTES = 36
_HEADER_EXTRA_BYTES = 10


def stored_bytes(key: bytes | None, value: bytes | None, headers: Headers = ()) -> int:
    """Return the size of a batch with this record alone, not compressed: what a broker compares.

    >>> stored_bytes(None, bytes(99_928))
    100000
    """
    size = 3 + _counted(key) + _counted(value) + _varint(len(headers))  # attributes, time and offset before
    size += sum(_counted(name.encode()) + _counted(content) for name, content in headers)
    return BATCH_HEAD_BYTES + _varint(size) + size


def client_bytes(key: bytes | None, value: bytes | None, headers: Headers = ()) -> int:
    """Return the size of a record as librdkafka estimates it before it takes it."""
    size = len(key or b"") + len(value or b"") + _CLIENT_EXTRA_BYTES
    return size + sum(
        len(name.encode()) + len(content or b"") + _HEADER_EXTRA_BYTES for name, content in headers
    )


def surely_taken_bytes(client_limit: int, topic_limit: int | None) -> int:
    """Return how large key and value together may be without a closer look."""
    smaller = min(client_limit, client_limit if topic_limit is None else topic_limit)
    return smaller - BATCH_HEAD_BYTES - _CLIENT_EXTRA_BYTES


def _counted(content: bytes | None) -> int:
    """Return the size of a field with its length in front; an absent one has the length -1."""
    return _varint(-1) if content is None else _varint(len(content)) + len(content)


def _varint(number: int) -> int:
    """Return how many bytes a number takes in Kafka's zigzag form."""
    zigzag = (number << 1) ^ (number >> 63)
    return max(1, -(-zigzag.bit_length() // 7))
