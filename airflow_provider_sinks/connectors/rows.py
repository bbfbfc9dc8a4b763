"""The columns in which rows reach a writer, beside those of its target."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

PARTITION = "__sinks_partition"
"""Source partition of the row (int)."""
OFFSET = "__sinks_offset"
"""Source offset of the row (long)."""
ERROR = "__sinks_error"
"""Why the source record did not parse (string), or null."""
RAW_KEY = "__sinks_raw_key"
"""The source record's own key (binary), only for what may be set aside; absent without dead letters."""
RAW_VALUE = "__sinks_raw_value"
"""The source record's own value, likewise."""
RAW_TIMESTAMP = "__sinks_raw_timestamp"
"""Its time in milliseconds since 1970 (long), likewise."""
RAW_HEADERS = "__sinks_raw_headers"
"""Its headers (string), as :func:`.letter.headers_from_json` reads them, likewise; null for none."""

COORDINATES = (PARTITION, OFFSET, ERROR)
RAW = (RAW_KEY, RAW_VALUE, RAW_TIMESTAMP, RAW_HEADERS)
RAW_TYPES = {RAW_KEY: "binary", RAW_VALUE: "binary", RAW_TIMESTAMP: "bigint", RAW_HEADERS: "string"}
"""Their types, in Spark's words."""


def integers(column: pa.Array) -> np.ndarray:
    """Return a column of integers without nulls as numpy's, on the same memory.

    Arrow's own ``to_numpy``, and anything that makes an Arrow array from Python values, imports pandas: a
    second of each worker's first task. Buffers do not.
    """
    kind = np.dtype(f"i{column.type.bit_width // 8}")
    values = np.frombuffer(column.buffers()[1], dtype=kind)
    return values[column.offset : column.offset + len(column)]
