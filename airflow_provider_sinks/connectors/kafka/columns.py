"""The columns in which rows reach a Kafka writer."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from airflow_provider_sinks.connectors.rows import COORDINATES, RAW

KEY = "__sinks_key"
VALUE = "__sinks_value"

HEADERS = "__sinks_headers"
"""The headers of the message (:data:`HEADERS_TYPE`); absent where the target names none."""
TIME = "__sinks_time"
"""Its time in milliseconds since 1970 (long), later than that; absent where it is the time of the writing."""
PARTITION_KEY = "__sinks_partition_key"
"""What chooses its partition (binary), as a key does; absent where the key itself does."""
TOMBSTONE = "__sinks_tombstone"
"""Whether a tombstone of its key stands behind the message (boolean); absent where none ever does."""

HEADER_NAME, HEADER_VALUE = "name", "value"
HEADERS_TYPE = f"array<struct<{HEADER_NAME}:string,{HEADER_VALUE}:binary>>"
"""In Spark's words."""
CARRIED = (HEADERS, TIME, PARTITION_KEY, TOMBSTONE)

WRITER_COLUMNS = (*COORDINATES, KEY, VALUE, *CARRIED, *RAW)
"""Where the row comes from and why it did not parse; key and value for the target (binary); what the message
carries beside them; the source record's own key and value, which are left out where the sink has no
dead-letter topic."""


def is_null(column: pa.Array) -> np.ndarray:
    """Return of each value whether it is null, from Arrow's bitmap."""
    bits = column.buffers()[0]
    if bits is None:
        return np.zeros(len(column), bool)
    found: np.ndarray = ~_bits(column, bits)
    return found


def is_true(column: pa.Array) -> np.ndarray:
    """Return of each boolean whether it is true; a null is not."""
    found: np.ndarray = _bits(column, column.buffers()[1]) & ~is_null(column)
    return found


def _bits(column: pa.Array, buffer: pa.Buffer) -> np.ndarray:
    end = column.offset + len(column)
    bits = np.unpackbits(np.frombuffer(buffer, np.uint8), count=end, bitorder="little")
    found: np.ndarray = bits[column.offset :] == 1
    return found
