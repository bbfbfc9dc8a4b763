"""Bytes that lie scattered in memory, copied into one Arrow column without a Python object for each.

Arrow has a layout for values that lie elsewhere: a view says in which buffer and where. So views are written
by numpy over the memory itself, and Arrow's own cast from views to bytes copies them. A value of up to 12
bytes stands in its view; where all are so short, numpy copies them byte by byte, which is faster then.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_SHORT_BYTES = 12
_WINDOW_BITS = 30
_VIEW = np.dtype(
    [("size", np.int32), ("prefix", np.uint32), ("buffer", np.int32), ("offset", np.int32)], align=True
)
_INLINE = np.dtype([("size", np.int32), ("bytes", np.uint8, _SHORT_BYTES)], align=True)


def gathered(addresses: np.ndarray, sizes: np.ndarray) -> pa.Array:
    """Return the values at these addresses as a column of bytes, a copy.

    :param addresses: unsigned, of 64 bits; 0 stands for a null.
    :param sizes: in bytes, one for each, below 1 GiB; what lies there must be readable until this returns.
    """
    are_there = addresses != 0
    sizes = np.where(are_there, sizes, 0)
    valid = None if are_there.all() else pa.py_buffer(np.packbits(are_there, bitorder="little"))
    if (sizes <= _SHORT_BYTES).all():
        return _byte_by_byte(addresses, sizes, valid)
    views = np.zeros(len(addresses), _VIEW)
    views["size"] = sizes
    are_long = sizes > _SHORT_BYTES
    buffers = _refer(views, addresses, are_long)
    if (are_short := ~are_long & (sizes > 0)).any():
        views.view(_INLINE)["bytes"][are_short] = _short(addresses[are_short], sizes[are_short])
    column = pa.Array.from_buffers(pa.binary_view(), len(views), [valid, pa.py_buffer(views), *buffers])
    return pc.cast(column, pa.binary())


def records_at(addresses: np.ndarray, kind: np.dtype) -> np.ndarray:
    """Return the structures at these addresses as an array, a copy.

    :param kind: of more than 12 bytes.
    """
    sizes = np.full(len(addresses), kind.itemsize, np.int64)
    return np.frombuffer(gathered(addresses, sizes).buffers()[2], kind, len(addresses))


def _refer(views: np.ndarray, addresses: np.ndarray, are_long: np.ndarray) -> list[pa.Buffer]:
    """Let views refer to memory, and return the buffers that stand for it.

    Each is what the values of one window of 1 GiB take: a view's offset has 31 bits. The first bytes of a
    value, which a view repeats for comparisons, are left out: nobody compares them.
    """
    at, sizes = addresses[are_long], views["size"][are_long]
    windows, which = np.unique(at >> np.uint64(_WINDOW_BITS), return_inverse=True)
    buffers, offsets = [], np.zeros(len(at), np.int32)
    for number in range(len(windows)):
        own = which == number
        first, end = _bounds(at[own], sizes[own])
        buffers.append(pa.foreign_buffer(first, end - first))
        offsets[own] = (at[own] - np.uint64(first)).astype(np.int32)
    views["buffer"][are_long], views["offset"][are_long] = which, offsets
    return buffers


def _byte_by_byte(addresses: np.ndarray, sizes: np.ndarray, valid: pa.Buffer | None) -> pa.Array:
    ends = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=ends[1:])
    data = np.zeros(0, np.uint8)
    if ends[-1]:
        memory, places = _memory(addresses, sizes)
        data = memory[np.repeat(places - ends[:-1], sizes) + np.arange(ends[-1])]
    buffers = [valid, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(sizes), buffers)


def _short(addresses: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return values of 1 to 12 bytes, each in a row of 12, with zeros behind it."""
    memory, places = _memory(addresses, sizes)
    column, size = np.arange(_SHORT_BYTES), sizes[:, None]
    found: np.ndarray = memory[places[:, None] + np.minimum(column, size - 1)]
    found[column >= size] = 0
    return found


def _memory(addresses: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return memory as bytes, and where in it values lie. What lies between them is not to be read.

    :param sizes: at least one is not 0; the place of an empty value is not to be read either.
    """
    there = sizes > 0
    first, end = _bounds(addresses[there], sizes[there])
    memory = np.frombuffer(pa.foreign_buffer(first, end - first), np.uint8)
    return memory, (addresses - np.uint64(first)).astype(np.int64)


def _bounds(addresses: np.ndarray, sizes: np.ndarray) -> tuple[int, int]:
    """Return where the first of the values begins, and the last one ends."""
    return int(addresses.min()), int((addresses + sizes.astype(np.uint64)).max())
