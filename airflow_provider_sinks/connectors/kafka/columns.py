"""The columns in which rows reach a Kafka writer, and how their bytes lie in Arrow's buffers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from airflow_provider_sinks.connectors.rows import COORDINATES, RAW

KEY = "__sinks_key"
VALUE = "__sinks_value"

WRITER_COLUMNS = (*COORDINATES, KEY, VALUE, *RAW)
"""Where the row comes from and why it did not parse; key and value for the target (binary); the source
record's own key and value, which are left out where the sink has no dead-letter topic."""


def bounds(column: pa.Array) -> np.ndarray:
    """Return where each value of a column of bytes begins, and the last one ends, in the column's data.

    :returns: 64-bit integers, one more than there are values; of a slice, its own part.
    """
    is_large = pa.types.is_large_binary(column.type) or pa.types.is_large_string(column.type)
    places = np.frombuffer(column.buffers()[1], dtype=np.dtype("i8" if is_large else "i4"))
    found: np.ndarray = places[column.offset : column.offset + len(column) + 1].astype(np.int64)
    return found


def lengths(column: pa.Array) -> np.ndarray:
    """Return the length of each value of a column of bytes, from Arrow's own offsets; a null has none."""
    sizes: np.ndarray = np.diff(bounds(column))
    return sizes


def is_null(column: pa.Array) -> np.ndarray:
    """Return of each value whether it is null, from Arrow's bitmap."""
    bits = column.buffers()[0]
    if bits is None:
        return np.zeros(len(column), bool)
    valid = np.unpackbits(np.frombuffer(bits, np.uint8), count=column.offset + len(column), bitorder="little")
    found: np.ndarray = valid[column.offset :] == 0
    return found
