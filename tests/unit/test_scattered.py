"""Bytes by their addresses become a column: whatever their lengths, wherever they lie."""

from __future__ import annotations

import ctypes
import random

import numpy as np
import pyarrow as pa
import pytest

from airflow_provider_sinks.connectors.kafka.message_array import MESSAGE, message_array
from airflow_provider_sinks.connectors.kafka.scattered import gathered, records_at

_LENGTHS = {
    "without a byte": (0,),
    "short": (1, 5, 11, 12),
    "long": (13, 16, 100, 3_000),
    "of all lengths": (0, 1, 5, 12, 13, 100, 3_000),
}


def _values(lengths: tuple[int, ...], count: int = 500) -> list[bytes]:
    chosen = random.Random(7)  # noqa: S311  repeatable, not secret
    return [chosen.randbytes(chosen.choice(lengths)) for _ in range(count)]


def _addresses(buffers: list[ctypes.Array[ctypes.c_char]]) -> np.ndarray:
    return np.array([ctypes.addressof(one) for one in buffers], np.uint64)


def _sizes(values: list[bytes]) -> np.ndarray:
    return np.array([len(value) for value in values], np.int64)


@pytest.mark.parametrize("lengths", _LENGTHS.values(), ids=_LENGTHS)
def test_values_that_lie_apart_become_a_column(lengths: tuple[int, ...]) -> None:
    values = _values(lengths)
    kept = [ctypes.create_string_buffer(value, len(value) + 1) for value in values]

    found = gathered(_addresses(kept), _sizes(values))

    found.validate(full=True)
    assert found.to_pylist() == values
    assert found.type == pa.binary()


@pytest.mark.parametrize("lengths", _LENGTHS.values(), ids=_LENGTHS)
def test_values_that_lie_side_by_side_become_a_column(lengths: tuple[int, ...]) -> None:
    values = _values(lengths)
    whole = ctypes.create_string_buffer(b"".join(values))
    places = np.cumsum([0, *map(len, values)])[:-1].astype(np.uint64)

    assert gathered(places + np.uint64(ctypes.addressof(whole)), _sizes(values)).to_pylist() == values


@pytest.mark.parametrize("lengths", _LENGTHS.values(), ids=_LENGTHS)
def test_no_address_is_a_null_whatever_size_is_said(lengths: tuple[int, ...]) -> None:
    values = _values(lengths)
    kept = [ctypes.create_string_buffer(value, len(value) + 1) for value in values]
    addresses = _addresses(kept)
    addresses[::3] = 0

    found = gathered(addresses, _sizes(values))

    assert found.to_pylist() == [None if number % 3 == 0 else value for number, value in enumerate(values)]


def test_nothing_becomes_an_empty_column() -> None:
    assert gathered(np.zeros(0, np.uint64), np.zeros(0, np.int64)).to_pylist() == []


def test_nothing_but_nulls_becomes_a_column() -> None:
    assert gathered(np.zeros(3, np.uint64), np.ones(3, np.int64)).to_pylist() == [None] * 3


def test_structures_are_copied() -> None:
    messages = message_array(pa.array([b"k", None], pa.binary()), pa.array([b"v", b""], pa.binary()))
    addresses = messages.ctypes.data + np.array([1, 0, 1]) * MESSAGE.itemsize

    found = records_at(addresses.astype(np.uint64), MESSAGE)

    assert found.tolist() == messages[[1, 0, 1]].tolist()
