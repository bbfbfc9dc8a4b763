"""From Arrow's columns of keys and values to the array of messages that librdkafka's batch call takes.

A message holds addresses into Arrow's own buffers, so whoever makes the array keeps the columns until the
call is over; librdkafka copies what it takes.
"""

from __future__ import annotations

import ctypes

import numpy as np
import pyarrow as pa

from airflow_provider_sinks.connectors.kafka.columns import is_null
from airflow_provider_sinks.connectors.rows import byte_bounds

MESSAGE = np.dtype(
    [
        ("err", np.int32),
        ("topic", np.uintp),
        ("partition", np.int32),
        ("payload", np.uintp),
        ("len", np.uintp),
        ("key", np.uintp),
        ("key_len", np.uintp),
        ("offset", np.int64),
        ("private", np.uintp),
    ],
    align=True,
)
""":class:`.librdkafka.Message` in numpy's words."""

_NOTHING = ctypes.create_string_buffer(1)
_NOWHERE = ctypes.addressof(_NOTHING)
"""An address for columns without a byte: a value that is empty has one, and only a null has none."""


def message_array(keys: pa.Array, values: pa.Array, partitions: np.ndarray | None = None) -> np.ndarray:
    """Return one message per row, in order.

    :param keys: of bytes; a null is a record without a key.
    :param values: of bytes; a null is a record without a value, which deletes its key in a compacted topic.
    :param partitions: as numbers, where they are chosen here.
    """
    messages = np.zeros(len(values), MESSAGE)
    if partitions is not None:
        messages["partition"] = partitions
    messages["payload"], messages["len"] = places(values)
    if keys.null_count < len(keys):
        messages["key"], messages["key_len"] = places(keys)
    return messages


def places(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return of a column of bytes or text the address of each value, 0 for a null, and its length."""
    ends, data = byte_bounds(column), column.buffers()[2]
    addresses = ends[:-1] + (data.address if data is not None and data.size else _NOWHERE)
    if column.null_count:
        addresses[is_null(column)] = 0
    return addresses, np.diff(ends)
