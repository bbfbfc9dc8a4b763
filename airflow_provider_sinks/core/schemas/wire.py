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
