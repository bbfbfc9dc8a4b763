"""Kafka's own hash of a key, murmur2, over a column of bytes: as ``Utils.murmur2`` of Kafka's Java client.

Which partition a key leads to is this hash without its sign, modulo the number of partitions. Short values
are hashed all at once, one word of four bytes after another; long ones one by one.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from airflow_provider_sinks.connectors.rows import byte_bounds

_SEED = 0x9747B28C
_FACTOR = 0x5BD1E995
_SHIFT = 24
_MASK = 0xFFFFFFFF
_WORD = 4
_LONG_BYTES = 512
"""What a value has at least that is hashed by itself: few have, and each word of it would be a pass."""


def murmur2(column: pa.Array) -> np.ndarray:
    """Return the hash of each value, as 32 bits without a sign; of a null that of no bytes.

    :param column: of bytes or text.
    """
    bounds, data = byte_bounds(column), column.buffers()[2]
    content = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(0, np.uint8)
    starts, lengths = bounds[:-1], np.diff(bounds)
    hashes = np.zeros(len(lengths), np.uint32)
    is_long = lengths >= _LONG_BYTES
    for row in np.flatnonzero(is_long).tolist():
        hashes[row] = murmur2_of(content[starts[row] : bounds[row + 1]].tobytes())
    short = np.flatnonzero(~is_long)
    hashes[short] = _short(content, starts[short], lengths[short])
    return hashes


def partitions_of(hashes: np.ndarray, count: int) -> np.ndarray:
    """Return to which of the partitions of a topic values with these hashes belong."""
    found: np.ndarray = (hashes & np.uint32(0x7FFFFFFF)) % np.uint32(count)
    return found.astype(np.int32)


def murmur2_of(value: bytes) -> int:
    """Return the hash of one value.

    >>> murmur2_of(b"21") - 2**32
    -973932308
    """
    found = _SEED ^ len(value)
    whole = len(value) // _WORD * _WORD
    for place in range(0, whole, _WORD):
        word = int.from_bytes(value[place : place + _WORD], "little") * _FACTOR & _MASK
        word = (word ^ (word >> _SHIFT)) * _FACTOR & _MASK
        found = (found * _FACTOR & _MASK) ^ word
    if whole < len(value):
        found = (found ^ int.from_bytes(value[whole:], "little")) * _FACTOR & _MASK
    found = (found ^ (found >> 13)) * _FACTOR & _MASK
    return found ^ (found >> 15)


def _short(content: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return the hashes of values; a pass over those that have a word at its place, the longest first."""
    order = np.argsort(-lengths, kind="stable")
    starts, lengths, factor = starts[order], lengths[order], np.uint32(_FACTOR)
    found = np.uint32(_SEED) ^ lengths.astype(np.uint32)
    words = lengths // _WORD
    for place in range(int(words[0]) if len(words) else 0):
        some = int(np.searchsorted(-words, -place))
        word = _word(content, starts[:some] + place * _WORD, _WORD) * factor
        word = (word ^ (word >> np.uint32(_SHIFT))) * factor
        found[:some] = (found[:some] * factor) ^ word
    for size in range(1, _WORD):
        rest = np.flatnonzero(lengths % _WORD == size)
        tail = _word(content, starts[rest] + words[rest] * _WORD, size)
        found[rest] = (found[rest] ^ tail) * factor
    found = (found ^ (found >> np.uint32(13))) * factor
    unordered = np.empty_like(found)
    unordered[order] = found ^ (found >> np.uint32(15))
    return unordered


def _word(content: np.ndarray, places: np.ndarray, size: int) -> np.ndarray:
    """Return the number that some bytes are at each of the places, the lowest first."""
    found = np.zeros(len(places), np.uint32)
    for byte in range(size):
        found |= content[places + byte].astype(np.uint32) << np.uint32(8 * byte)
    return found
