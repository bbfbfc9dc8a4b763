"""Confluent's wire format: one byte that is 0, the id of the schema in four bytes, big-endian, then the data.

>>> header(258).hex()
'0000000102'
"""

from __future__ import annotations

MAGIC = b"\x00"
ID_BYTES = 4
HEADER_BYTES = len(MAGIC) + ID_BYTES
LARGEST_ID = 2**31 - 1
"""Ids are Java's integers."""


def header(schema_id: int) -> bytes:
    """Return what stands in front of each value that was written with this schema.

    :raises ValueError: it is no id.
    """
    if not 0 <= schema_id <= LARGEST_ID:
        raise ValueError(f"{schema_id} is no id of a schema")
    return MAGIC + schema_id.to_bytes(ID_BYTES, "big")


def message_places(path: tuple[int, ...]) -> tuple[bytes, ...]:
    """Return what stands behind the header of a Protobuf message: where its file has it.

    The first form is the one to write. Numbers are zigzag varints, how many there are and each of them. A
    first message is one zero byte; some writers give it in full.

    >>> [place.hex() for place in message_places((0,))]
    ['00', '0200']
    >>> [place.hex() for place in message_places((1, 0))]
    ['040200']
    """
    whole = b"".join(map(_zigzag, (len(path), *path)))
    return (b"\x00", whole) if path == (0,) else (whole,)


def _zigzag(number: int) -> bytes:
    left, made = number << 1, bytearray()
    while left > 0x7F:
        made.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*made, left])
