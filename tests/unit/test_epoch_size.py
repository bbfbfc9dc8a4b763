"""How many records an epoch may hold."""

from __future__ import annotations

import doctest

import pytest

from airflow_provider_sinks.streaming import epoch_size
from airflow_provider_sinks.streaming.epoch_size import UNKNOWN_RECORDS, EpochSize

MILLION = 1_000_000


class Scales:
    """Weighs what it is told, and counts how often it was asked."""

    def __init__(self, bytes_each: float | None) -> None:
        self.bytes_each = bytes_each
        self.asked = 0

    def __call__(self) -> float | None:
        self.asked += 1
        return self.bytes_each


def sized(scales: Scales, records_max: int = MILLION) -> EpochSize:
    """Return the size of epochs of at most 100 MB."""
    return EpochSize(records_max, 100 * MILLION, scales, position=0)


@pytest.mark.parametrize(
    ("bytes_each", "records"),
    [
        pytest.param(10.0, MILLION, id="small records: what the spec allows"),
        pytest.param(1_000.0, 100_000, id="as many as weigh the bytes"),
        pytest.param(1e9, 1, id="at least one"),
        pytest.param(None, UNKNOWN_RECORDS, id="nobody knows: few"),
        pytest.param(0.0, UNKNOWN_RECORDS, id="tombstones alone say nothing"),
    ],
)
def test_an_epoch_is_bounded_by_records_and_by_bytes(bytes_each: float | None, records: int) -> None:
    assert sized(Scales(bytes_each)).records == records


def test_the_spec_is_the_upper_bound_also_where_nobody_knows() -> None:
    assert sized(Scales(None), records_max=7).records == 7


def test_a_full_epoch_lets_more_in_once_records_can_be_weighed() -> None:
    scales = Scales(None)
    size = sized(scales)
    scales.bytes_each = 100.0

    size.note(UNKNOWN_RECORDS, 100_000)

    assert size.has_changed()
    assert (size.records, size.is_bounded_by_bytes, size.has_changed()) == (MILLION, False, False)


def test_an_epoch_that_is_not_full_asks_nobody() -> None:
    scales = Scales(None)
    size = sized(scales)

    for epoch in range(1, 4):
        size.note(epoch * UNKNOWN_RECORDS // 2, 100)

    assert not size.has_changed()
    assert scales.asked == 1


def test_what_an_epoch_writes_counts_as_what_it_reads() -> None:
    size = sized(Scales(10.0))

    size.note(MILLION, 500 * MILLION)  # each record became 500 bytes

    assert size.has_changed()
    assert size.records == 200_000


def test_a_query_does_not_begin_anew_for_a_little_more_or_less() -> None:
    scales = Scales(1_000.0)
    size, changed = sized(scales), []
    for epoch, scales.bytes_each in enumerate((600.0, 1_900.0, 2_100.0), 1):
        size.note(epoch * 100_000, 0)
        changed.append(size.has_changed())

    assert (changed, size.records) == ([False, False, True], 47_619)


def test_the_examples_hold() -> None:
    assert doctest.testmod(epoch_size).failed == 0
