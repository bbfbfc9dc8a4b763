"""Which values are no text."""

from __future__ import annotations

import pyarrow as pa
import pytest

from airflow_provider_sinks.streaming.text_values import NOT_UTF8, errors_of_text

NO_TEXT = {
    "a byte that begins nothing": b"\xff",
    "half a character": b"\xc3",
    "a character in more bytes than it needs": b"\xc0\xaf",
    "half a surrogate pair": b"\xed\xa0\x80",
    "behind the last character": b"\xf4\x90\x80\x80",
}


@pytest.mark.parametrize("value", NO_TEXT.values(), ids=NO_TEXT)
def test_what_is_no_text_is_told_and_leaves_others_alone(value: bytes) -> None:
    values = pa.array([b"text", value, None, b"", "\u00fc\U0001f600".encode()], pa.binary())

    assert errors_of_text(values).to_pylist() == [None, NOT_UTF8, None, None, None]


def test_texts_and_nulls_have_no_error() -> None:
    found = errors_of_text(pa.array([b"text", None], pa.binary()))

    assert (found.to_pylist(), found.type) == ([None, None], pa.string())
