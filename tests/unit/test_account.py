"""What the driver knows to be committed, and what each writer is told of the others."""

from __future__ import annotations

from typing import Any

from airflow_provider_sinks.core.progress.history import History, lost_writers
from airflow_provider_sinks.core.progress.record import DRIVER, SINGLE_WRITER
from airflow_provider_sinks.streaming.account import Account
from tests.facts import record


def account(totals: dict[str, tuple[int, int]], **changes: Any) -> Account:
    return Account(record(), {0: 50, 1: 50}, totals, {DRIVER, *totals}, **changes)


def test_a_writers_record_names_what_the_others_have_committed_in_this_run() -> None:
    known = account({"p0": (20, 0), "p1": (30, 4), "p2": (7, 0)}, announced={"p1": (30, 3), "p2": (7, 0)})

    assert known.writers_record(record()).totals == {"p0": (20, 0), "p1": (30, 4)}


def test_a_single_writer_names_nobody() -> None:
    assert account({SINGLE_WRITER: (20, 0), DRIVER: (0, 0)}).writers_record(record()).totals == {}


def test_a_commit_that_the_target_forgot_is_missed_behind_those_of_another_writer() -> None:
    told = account({"p0": (20, 0), "p1": (20, 0)}).writers_record(record())
    forgotten = record(epoch=4, to={0: 10, 1: 10}, rows_total=10)
    history = History({DRIVER: record(epoch=4), "p0": forgotten, "p1": record(totals=told.totals)})

    assert "p0" in lost_writers(history)


def test_a_record_that_names_256_writers_is_far_below_the_limits_of_a_message() -> None:
    offsets = {partition: 10**9 + partition for partition in range(256)}
    known = account({f"p{partition}": (10**9 + partition, 0) for partition in range(256)})

    assert len(known.writers_record(record(from_=offsets, to=offsets)).encode()) < 16_384
