"""The messages that librdkafka is given: addresses of the bytes of each row, and none for a null."""

from __future__ import annotations

import ctypes

import numpy as np
import pyarrow as pa
import pytest

from airflow_provider_sinks.connectors.kafka import librdkafka
from airflow_provider_sinks.connectors.kafka.columns import is_null
from airflow_provider_sinks.connectors.kafka.message_array import MESSAGE, message_array
from airflow_provider_sinks.connectors.rows import byte_lengths

KINDS = [pa.binary(), pa.large_binary()]
_VALUES = [b"first", None, b"", b"\x00with\x00zeros", b"last"]


def _seen(messages: np.ndarray, at: str, size: str) -> list[bytes | None]:
    """Return what a C function would read."""
    places = zip(messages[at].tolist(), messages[size].tolist(), strict=True)
    return [ctypes.string_at(address, length) if address else None for address, length in places]


def _keys(messages: np.ndarray) -> list[bytes | None]:
    return _seen(messages, "key", "key_len")


def _read_values(messages: np.ndarray) -> list[bytes | None]:
    return _seen(messages, "payload", "len")


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_leads_to_key_and_value_of_its_row(kind: pa.DataType) -> None:
    keys, values = pa.array(_VALUES[::-1], kind), pa.array(_VALUES, kind)

    messages = message_array(keys, values)

    assert _read_values(messages) == _VALUES
    assert _keys(messages) == _VALUES[::-1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("first", "count"), [(0, 2), (1, 3), (2, 1), (4, 1), (9, 7)])
def test_a_slice_is_its_own_rows_alone(kind: pa.DataType, first: int, count: int) -> None:
    content = _VALUES * 4
    column = pa.array(content, kind).slice(first, count)

    messages = message_array(column, column)

    assert _read_values(messages) == _keys(messages) == content[first : first + count]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("values", [[b""], [b"", b""], [None], [None, b""], [b"", None, b""]], ids=str)
def test_an_empty_value_is_there_and_a_null_is_not(kind: pa.DataType, values: list[bytes | None]) -> None:
    column = pa.array(values, kind)

    messages = message_array(column, column)

    assert _read_values(messages) == _keys(messages) == values


def test_rows_without_any_key_have_none() -> None:
    values = pa.array([b"a", b"b", None])

    messages = message_array(pa.nulls(3, pa.binary()), values)

    assert _keys(messages) == [None, None, None]
    assert _read_values(messages) == [b"a", b"b", None]


def test_a_key_without_a_value_is_a_tombstone() -> None:
    keys = pa.array([b"key"])

    messages = message_array(keys, pa.nulls(1, pa.binary()))

    assert (_keys(messages), _read_values(messages)) == ([b"key"], [None])


def test_offsets_beyond_32_bits_lead_to_their_bytes() -> None:
    """A column whose values lie behind 4 GB: only the offsets say so, the pages are never touched."""
    far = 2**32 + 7
    offsets = np.array([far, far + 3, far + 3, far + 8])
    zeros = np.zeros(far + 8, np.uint8)  # the system gives pages when they are written
    zeros[far:] = np.frombuffer(b"abchello", np.uint8)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(zeros)]
    values = pa.Array.from_buffers(pa.large_binary(), 3, buffers)

    assert _read_values(message_array(pa.nulls(3, pa.binary()), values)) == [b"abc", b"", b"hello"]
    assert byte_lengths(values).tolist() == [3, 0, 5]


def test_what_the_array_says_is_what_the_structure_says() -> None:
    structure = librdkafka.Message
    fields = {name: getattr(structure, name) for name, _ in structure._fields_}

    assert MESSAGE.itemsize == ctypes.sizeof(structure)
    assert MESSAGE.fields is not None
    assert {name: (at, kind.itemsize) for name, (kind, at, *_) in MESSAGE.fields.items()} == {
        name: (field.offset, field.size) for name, field in fields.items()
    }


@pytest.mark.parametrize("values", [[b"a", b"b"], [None, b"b", None], [None] * 9, [b"a"] * 8 + [None]])
@pytest.mark.parametrize("first", [0, 1])
def test_nulls_are_read_from_the_bitmap(values: list[bytes | None], first: int) -> None:
    column = pa.array(values, pa.binary()).slice(first)

    assert is_null(column).tolist() == [value is None for value in values[first:]]


def test_the_version_that_is_pinned_was_tested() -> None:
    assert librdkafka.untested() == ""


def test_another_version_is_named_beside_those_that_were_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("confluent_kafka.libversion", lambda: ("2.99.0", 0x026300FF))
    librdkafka.untested.cache_clear()
    try:
        assert librdkafka.untested() == "librdkafka 2.99.0 was not tested; tested: 2.16.0."
    finally:
        librdkafka.untested.cache_clear()
