"""The columns in which rows reach a writer, beside those of its target."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

PARTITION = "__sinks_partition"
"""Source partition of the row (int)."""
OFFSET = "__sinks_offset"
"""Source offset of the row (long)."""
ERROR = "__sinks_error"
"""Why the source record did not parse (string), or null."""
DELETED = "__sinks_deleted"
"""Whether the row takes its key away (boolean): only of a source whose records are changes of rows."""
RAW_KEY = "__sinks_raw_key"
"""The source record's own key (binary), only for what may be set aside; absent without dead letters."""
RAW_VALUE = "__sinks_raw_value"
"""The source record's own value, likewise."""
RAW_TIMESTAMP = "__sinks_raw_timestamp"
"""Its time in milliseconds since 1970 (long), likewise."""
RAW_HEADERS = "__sinks_raw_headers"
"""Its headers (string), as :func:`.headers.headers_from_json` reads them, likewise; null for none."""

COORDINATES = (PARTITION, OFFSET, ERROR)
RAW = (RAW_KEY, RAW_VALUE, RAW_TIMESTAMP, RAW_HEADERS)
RAW_TYPES = {RAW_KEY: "binary", RAW_VALUE: "binary", RAW_TIMESTAMP: "bigint", RAW_HEADERS: "string"}
"""Their types, in Spark's words."""


@dataclass(frozen=True)
class RecordColumns:
    """The columns of a writer for a record that is copied: names, of bytes.

    :param key: has the record's key; a null for none.
    :param value: has its value, likewise.
    """

    key: str
    value: str


def integers(column: pa.Array) -> np.ndarray:
    """Return a column of integers without nulls as numpy's, on the same memory.

    Arrow's own ``to_numpy``, and anything that makes an Arrow array from Python values, imports pandas: a
    second of each worker's first task. Buffers do not.
    """
    kind = np.dtype(f"i{column.type.bit_width // 8}")
    values = np.frombuffer(column.buffers()[1], dtype=kind)
    return values[column.offset : column.offset + len(column)]


def long_array(numbers: np.ndarray) -> pa.Array:
    """Return 64-bit integers as Arrow's, on the same memory; see :func:`integers`."""
    return pa.Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(numbers)])


def has_bytes(column: pa.Array) -> bool:
    """Whether a column is of bytes or text, whose values have a length each."""
    return _is_large(column) or bool(pa.types.is_binary(column.type) or pa.types.is_string(column.type))


def byte_bounds(column: pa.Array) -> np.ndarray:
    """Return where each value of a column of bytes or text begins, and the last one ends, in its data.

    :returns: 64-bit integers, one more than there are values; of a slice, its own part. A column without
        values may come from Java without the one zero that the format demands.
    """
    if not len(column):
        return np.zeros(1, np.int64)
    places = np.frombuffer(column.buffers()[1], dtype=np.dtype("i8" if _is_large(column) else "i4"))
    bounds: np.ndarray = places[column.offset : column.offset + len(column) + 1].astype(np.int64)
    return bounds


def byte_lengths(column: pa.Array) -> np.ndarray:
    """Return the length of each value of a column of bytes or text in bytes; a null has none."""
    lengths: np.ndarray = np.diff(byte_bounds(column))
    return lengths


def _is_large(column: pa.Array) -> bool:
    """Whether its offsets have 64 bits."""
    return bool(pa.types.is_large_binary(column.type) or pa.types.is_large_string(column.type))
