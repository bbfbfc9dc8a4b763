"""Which epochs a driver writes itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_sinks.streaming.driver_share import ROW_BYTES_MAX, ROWS_MAX, DriverShare, Room
from airflow_provider_sinks.streaming.task_report import Outcome, TaskReport

MB = 1024 * 1024
ON_A_CLUSTER = DriverShare(ROWS_MAX)
ALONE = DriverShare(ROWS_MAX, bytes_max=64 * MB)


@pytest.mark.parametrize(
    ("share", "sizes", "row_bytes"),
    [
        (ON_A_CLUSTER, {0: 1_000, 1: 1_000}, ROW_BYTES_MAX),
        (ON_A_CLUSTER, {0: 2_001}, None),
        (ON_A_CLUSTER, dict.fromkeys(range(17), 1), None),
        (ALONE, dict.fromkeys(range(17), 1), 3 * MB),
        (ALONE, {0: 100_000, 1: 0}, 512),
        (ALONE, {0: 500_000}, 128),
        (ALONE, {0: 600_000}, None),
        (ALONE, {}, ROW_BYTES_MAX),
        (DriverShare(0), {0: 1}, None),
        (DriverShare(0), {}, None),
        (DriverShare(10**6), {0: 10**6}, ROW_BYTES_MAX),
    ],
)
def test_the_room_of_a_row(share: DriverShare, sizes: dict[int, int], row_bytes: int | None) -> None:
    begin = dict.fromkeys(sizes, 5)

    room = share.room(begin, {partition: 5 + size for partition, size in sizes.items()})

    assert room == (None if row_bytes is None else Room(row_bytes))


def test_epochs_of_almost_as_many_records_have_the_same_room() -> None:
    rooms = {replace(ALONE, may_multiply=True).room({}, {0: records}) for records in range(40_000, 42_000)}

    assert len(rooms) == 1


@pytest.mark.parametrize(
    ("single", "rows_each"), [(False, 49_152), (True, 196_608)], ids=["per_partition", "single"]
)
def test_rows_are_counted_where_a_record_may_lead_to_several(single: bool, rows_each: int) -> None:
    share = DriverShare(ROWS_MAX, bytes_max=64 * MB, may_multiply=True)
    quarters = dict.fromkeys(range(4), 25_000)

    assert share.room({}, quarters, single=single) == Room(512, rows_each)
    assert share.room({}, {0: 10}, single=single) == Room(ROW_BYTES_MAX, ROWS_MAX)


@pytest.mark.parametrize(
    ("report", "is_held"),
    [
        (TaskReport("p0", Outcome.COMMITTED, 400, 100, largest_row_bytes=100), True),
        (TaskReport("p0", Outcome.COMMITTED, 401, 100, largest_row_bytes=100), False),
        (TaskReport("p0", Outcome.COMMITTED, 1, largest_row_bytes=101), False),
    ],
)
def test_what_ran_on_executors_says_whether_there_would_have_been_room(
    report: TaskReport, is_held: bool
) -> None:
    assert Room(100, rows_each=500).would_hold([TaskReport("", Outcome.NOTHING), report]) is is_held
