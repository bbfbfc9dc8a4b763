"""From Arrow's columns to the arrays of parts that librdkafka's call for one message takes.

All rows of a batch have their parts in one array, one row behind another, so that a call needs no more than
an address. Parts hold addresses into Arrow's own buffers, and of names as C has them, which are kept. Names
that C would end too soon go as a list (:mod:`.header_list`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from airflow_provider_sinks.connectors.kafka import librdkafka
from airflow_provider_sinks.connectors.kafka.carried import Carried, header_counts, header_parts, headers_of
from airflow_provider_sinks.connectors.kafka.header_list import HeaderList
from airflow_provider_sinks.connectors.kafka.message_array import places
from airflow_provider_sinks.connectors.rows import byte_bounds, integers

PART = np.dtype(
    {
        "names": ["kind", "number", "long", "first", "second", "third"],
        "formats": [np.int32, np.int32, np.int64, np.uintp, np.uintp, np.uintp],
        "offsets": [0, 8, 8, 8, 16, 24],
        "itemsize": 72,
    }
)
""":class:`.librdkafka.Part` in numpy's words; of its union what is used."""
_FIXED = 5
"""How many parts each message has, without a time and headers."""


@dataclass(frozen=True)
class PartArray:
    """The parts of some messages.

    :param parts: of all of them.
    :param firsts: where those of each message begin, and those of the last one end.
    :param held: what the parts hold addresses of.
    :param lists: the headers of those messages that have them as a list, by message.
    """

    parts: np.ndarray
    firsts: np.ndarray
    held: tuple[object, ...]
    lists: dict[int, HeaderList] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.firsts) - 1

    @property
    def calls(self) -> list[tuple[int, int]]:
        """The address and the number of the parts of each message."""
        address, size = self.parts.ctypes.data, PART.itemsize
        addresses = (address + self.firsts[:-1] * size).tolist()
        return list(zip(addresses, np.diff(self.firsts).tolist(), strict=True))


def part_array(topic: int, keys: pa.Array, values: pa.Array, carried: Carried) -> PartArray:
    """Return the parts of one message per row, in order.

    :param topic: librdkafka's handle of it.
    """
    headers = carried.headers
    counts = np.zeros(len(values), np.int64) if headers is None else header_counts(headers)
    lists = {} if headers is None else _lists(headers, counts)
    taken = counts.copy()
    taken[list(lists)] = 1
    fixed = _FIXED + (carried.times_ms is not None)
    firsts = np.concatenate([[0], np.cumsum(taken + fixed)])
    parts = np.zeros(int(firsts[-1]), PART)
    own = firsts[:-1]
    _put(parts, own, librdkafka.TOPIC_HANDLE_PART, first=topic)
    _put(parts, own + 1, librdkafka.FLAGS_PART, number=librdkafka.COPY)
    chosen = librdkafka.ANY_PARTITION if carried.partitions is None else carried.partitions
    _put(parts, own + 2, librdkafka.PARTITION_PART, number=chosen)
    for place, kind, column in ((3, librdkafka.KEY_PART, keys), (4, librdkafka.VALUE_PART, values)):
        address, size = places(column)
        _put(parts, own + place, kind, first=address, second=size)
    if carried.times_ms is not None:
        _put(parts, own + _FIXED, librdkafka.TIME_PART, long=integers(carried.times_ms))
    held = () if headers is None else _put_headers(parts, own + fixed, counts, headers, list(lists))
    for row, listed in lists.items():
        _put(parts, own[[row]] + fixed, librdkafka.HEADERS_PART, first=listed.address)
    return PartArray(parts, firsts, (keys, values, *held), lists)


def _lists(headers: pa.Array, counts: np.ndarray) -> dict[int, HeaderList]:
    """Return the headers of the rows that have a zero byte in a name, by row.

    :param counts: how many headers each row has.
    """
    names, _ = header_parts(headers)
    bounds, data = byte_bounds(names), names.buffers()[2]
    if data is None:
        return {}
    zeros = bounds[0] + np.flatnonzero(np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]] == 0)
    which = np.searchsorted(bounds, zeros, side="right") - 1
    rows = np.repeat(np.arange(len(counts)), counts)[which]
    return {row: HeaderList(headers_of(headers, row)) for row in np.unique(rows).tolist()}


def _put_headers(
    parts: np.ndarray, firsts: np.ndarray, counts: np.ndarray, headers: pa.Array, listed: list[int]
) -> tuple[object, ...]:
    """Put the headers of each row behind its other parts; return what they are in.

    :param firsts: where those of each row begin.
    :param listed: the rows whose headers are a list.
    """
    names, values = header_parts(headers)
    name, held = _c_strings(names)
    row = np.repeat(np.arange(len(counts)), counts)
    within = np.arange(len(names)) - np.repeat(np.cumsum(counts) - counts, counts)
    value, size = places(values)
    own = ~np.isin(row, listed)
    put = (firsts[row] + within)[own]
    _put(parts, put, librdkafka.HEADER_PART, first=name[own], second=value[own], third=size[own])
    return values, held


def _c_strings(texts: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the address of each text with a zero byte behind it, and the bytes of all."""
    bounds, data = byte_bounds(texts), texts.buffers()[2]
    lengths, rows = np.diff(bounds), np.arange(len(texts))
    firsts = bounds[:-1] - bounds[0] + rows
    content = np.zeros(int(lengths.sum()) + len(texts) + 1, np.uint8)
    if data is not None:
        source = np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]]
        content[np.arange(len(source)) + np.repeat(rows, lengths)] = source
    return content.ctypes.data + firsts, content


def _put(parts: np.ndarray, at: np.ndarray, kind: int, **fields: object) -> None:
    parts["kind"][at] = kind
    for name, content in fields.items():
        parts[name][at] = content
