"""The columns in which rows reach a Kafka writer."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from airflow_provider_sinks.connectors.rows import COORDINATES, RAW

KEY = "__sinks_key"
VALUE = "__sinks_value"

WRITER_COLUMNS = (*COORDINATES, KEY, VALUE, *RAW)
"""Where the row comes from and why it did not parse; key and value for the target (binary); the source
record's own key and value, which are left out where the sink has no dead-letter topic."""


def is_null(column: pa.Array) -> np.ndarray:
    """Return of each value whether it is null, from Arrow's bitmap."""
    bits = column.buffers()[0]
    if bits is None:
        return np.zeros(len(column), bool)
    valid = np.unpackbits(np.frombuffer(bits, np.uint8), count=column.offset + len(column), bitorder="little")
    found: np.ndarray = valid[column.offset :] == 0
    return found
