"""What messages carry beside their keys and values, in Arrow's columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from airflow_provider_sinks.connectors.kafka.columns import HEADER_NAME, HEADER_VALUE, HEADERS, TIME, is_null
from airflow_provider_sinks.connectors.rows import byte_lengths, integers

_HEADER_EXTRA_BYTES = 10


@dataclass(frozen=True)
class Carried:
    """What the messages of some rows carry; ``None`` is what a producer does by itself.

    :param headers: a list of names and values for each row.
    :param times_ms: since 1970.
    :param partitions: as numbers; -1 leaves the choice to librdkafka.
    """

    headers: pa.Array | None = None
    times_ms: pa.Array | None = None
    partitions: np.ndarray | None = None

    @classmethod
    def of(cls, rows: pa.RecordBatch, partitions: np.ndarray | None = None) -> Carried:
        """Return what is in the columns of a writer."""
        found = {name: rows.column(name) for name in (HEADERS, TIME) if name in rows.schema.names}
        if not found and partitions is None:
            return NOTHING
        return cls(found.get(HEADERS), found.get(TIME), partitions)

    @property
    def needs_calls(self) -> bool:
        """Whether each message needs a call of its own: librdkafka's batch call has no headers and times."""
        return self.headers is not None or self.times_ms is not None

    @property
    def size_bytes(self) -> int:
        """How many bytes the headers of all rows have."""
        return 0 if self.headers is None else int(header_bytes(self.headers).sum())


NOTHING = Carried()


def header_counts(headers: pa.Array) -> np.ndarray:
    """Return how many headers each row has."""
    counts: np.ndarray = np.diff(integers(headers.offsets)).astype(np.int64)
    counts[is_null(headers)] = 0
    return counts


def header_parts(headers: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return names and values of the headers of all rows, one row behind another."""
    flat = headers.flatten()
    names, values = flat.flatten()
    return names, values


def header_bytes(headers: pa.Array) -> np.ndarray:
    """Return how many bytes headers add to the record of each row at most."""
    counts = header_counts(headers)
    names, values = header_parts(headers)
    sizes = byte_lengths(names) + byte_lengths(values) + _HEADER_EXTRA_BYTES
    places = np.repeat(np.arange(len(counts)), counts)
    found: np.ndarray = np.bincount(places, sizes, len(counts)).astype(np.int64)
    return found


def headers_of(headers: pa.Array | None, row: int) -> tuple[tuple[str, bytes | None], ...]:
    """Return the headers of one row."""
    pairs = headers[row].as_py() if headers is not None else None
    return tuple((pair[HEADER_NAME], pair[HEADER_VALUE]) for pair in pairs or ())


def each(carried: Carried, rows: int) -> Iterator[dict[str, Any]]:
    """Yield for each row what confluent-kafka's ``produce`` takes of it."""
    times = [None] * rows if carried.times_ms is None else carried.times_ms.to_pylist()
    partitions = [-1] * rows if carried.partitions is None else carried.partitions.tolist()
    for row in range(rows):
        found: dict[str, Any] = {"partition": partitions[row]}
        if carried.headers is not None:
            found["headers"] = list(headers_of(carried.headers, row))
        if times[row] is not None:
            found["timestamp"] = times[row]
        yield found
