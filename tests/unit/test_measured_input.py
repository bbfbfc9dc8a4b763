"""The input of a task: how large its rows are, and that a row which was left out ends it without a commit."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from airflow_provider_sinks.connectors import rows
from airflow_provider_sinks.streaming.measured_input import (
    LARGE,
    LargeRowError,
    MeasuredInput,
    largest_row_bytes,
)

_NAMES = [rows.OFFSET, rows.ERROR, "a.b", "text"]


def _batch(size: int, *, is_large: bool | None = None, error: str | None = None) -> pa.RecordBatch:
    """Two rows, of which the second has so many bytes; columns as ``mapInArrow`` takes them."""
    columns = [
        pa.array([1, 2]),
        pa.array([None, error]),
        pa.array([b"", bytes(size - 1)], pa.binary()),
        pa.array(["", "x"]),
    ]
    if is_large is not None:
        columns.append(pa.array([False, is_large]))
    return pa.RecordBatch.from_arrays(columns, [f"column{number}" for number in range(len(columns))])


def _input(*batches: pa.RecordBatch) -> MeasuredInput:
    names = [*_NAMES, LARGE] if batches[0].num_columns > len(_NAMES) else _NAMES
    return MeasuredInput(batches, names)


@pytest.mark.parametrize("is_large", [None, False], ids=["without marks", "with marks"])
def test_batches_come_by_their_names_and_without_marks(is_large: bool | None) -> None:
    measured = _input(_batch(10, is_large=is_large), _batch(7, is_large=is_large))

    seen = [batch.schema.names for batch in measured]

    assert seen == [_NAMES, _NAMES]
    assert measured.largest_row_bytes == 8 + 10


def test_a_mark_ends_the_input_at_its_batch() -> None:
    measured = iter(_input(_batch(10, is_large=False), _batch(10, is_large=True), _batch(10, is_large=False)))

    assert next(measured).num_rows == 2
    with pytest.raises(LargeRowError):
        next(measured)


def test_a_row_is_measured_by_all_its_plain_columns_together_and_not_by_its_error() -> None:
    measured = _input(_batch(10, error="a long sentence about what is wrong"))

    assert [batch.num_rows for batch in measured] == [2]
    assert measured.largest_row_bytes == 8 + 10


@pytest.mark.parametrize(
    ("column", "found"),
    [
        (pa.array(["ü" * 4, "x"]), 8),
        (pa.array([b"12345", None], pa.large_binary()), 5),
        (pa.array(["x", "12345"], pa.large_string()).slice(0, 1), 1),
        (pa.nulls(2, pa.string()), 0),
        (pa.array([], pa.binary()), 0),
        (pa.array([1, 2]), 8),
        (pa.nulls(2), 0),
    ],
    ids=["text in bytes", "large offsets", "a slice", "nulls", "no rows", "numbers", "nothing at all"],
)
def test_rows_of_any_columns_are_measured(column: pa.Array, found: int) -> None:
    assert largest_row_bytes(pa.RecordBatch.from_arrays([column], ["column"])) == found


def test_only_what_was_read_is_measured() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield _batch(3)
        raise EOFError

    measured = MeasuredInput(batches(), _NAMES)

    with pytest.raises(EOFError):
        list(measured)
    assert measured.largest_row_bytes == 8 + 3
