"""The tombstones behind the messages of deletes: one row, two messages, and no Python object of either."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from airflow_provider_sinks.connectors.kafka.columns import TOMBSTONE, VALUE, is_null, is_true
from airflow_provider_sinks.connectors.rows import long_array


def with_tombstones(rows: pa.RecordBatch) -> tuple[pa.RecordBatch, np.ndarray]:
    """Return the messages of rows, and of each message the index of its row.

    A tombstone stands right behind the message of its delete, with the same key, headers and time.
    """
    own = np.arange(rows.num_rows, dtype=np.int64)
    if TOMBSTONE not in rows.schema.names or not (adds := is_true(rows.column(TOMBSTONE))).any():
        return rows, own
    places = np.repeat(own, 1 + adds)
    is_tombstone = np.concatenate([[False], places[1:] == places[:-1]])
    messages = rows.take(long_array(places))
    values = _without(messages.column(VALUE), is_tombstone)
    return messages.set_column(messages.schema.names.index(VALUE), VALUE, values), places


def _without(values: pa.Array, left_out: np.ndarray) -> pa.Array:
    """Return bytes with nulls in more places; the bytes themselves stay where they are."""
    valid = np.packbits(~(is_null(values) | left_out), bitorder="little")
    _, bounds, data = values.buffers()
    return pa.Array.from_buffers(values.type, len(values), [pa.py_buffer(valid), bounds, data])
