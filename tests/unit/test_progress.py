"""The progress record, and what all records of a sink say together."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from airflow_provider_sinks.core.progress.history import EARLIEST, NO_HISTORY, Finding, History, fold
from airflow_provider_sinks.core.progress.log_place import LogPlace
from airflow_provider_sinks.core.progress.record import (
    DRIVER,
    SINGLE_WRITER,
    Format,
    ProgressFormatError,
    ProgressKey,
    ProgressRecord,
    partition_writer,
)
from tests.facts import record


def test_a_record_comes_back_as_it_was_written() -> None:
    driver = record(
        writers=("all", "driver"), writer_mode="single", spec="{}", totals={"all": (5, 1)},
        leader_epochs={0: 3, 1: 0},
    )  # fmt: skip

    assert ProgressRecord.decode(driver.encode()) == driver


def test_a_record_is_json_that_a_stranger_can_audit() -> None:
    data = json.loads(record(rows=3, rows_total=5).encode())

    assert data["v"] == 1
    assert data["from"] == {"0": 40, "1": 40}
    assert data["to"] == {"0": 50, "1": 50}
    assert data["identities"]["data"]["topic_id"] == "id-data"
    assert (data["rows"], data["rows_total"], data["epoch"], data["batch"]) == (3, 5, 7, 6)
    assert "spec" not in data
    assert "leader_epochs" not in data


def test_fields_of_a_later_release_in_the_same_format_are_ignored() -> None:
    data = json.loads(record().encode())

    assert ProgressRecord.decode(json.dumps({**data, "new": 1}).encode()) == record()


@pytest.mark.parametrize(
    ("value", "why", "what"),
    [
        (b"\xff\xfe", Format.GARBAGE, "not JSON"),
        (b"[" * 100_000, Format.GARBAGE, "not JSON"),
        (b"[1]", Format.GARBAGE, "not a JSON object"),
        (b"{}", Format.GARBAGE, "format None is not a number"),
        (b'{"v": true}', Format.GARBAGE, "format True is not a number"),
        (b'{"v": 0}', Format.GARBAGE, "format 0 was never written"),
        (b'{"v": 1}', Format.GARBAGE, "'generation' is missing"),
        (b'{"v": 2, "anything": []}', Format.NEWER, "format 2, this release reads up to 1"),
    ],
)
def test_a_value_that_is_no_record_says_why(value: bytes, why: Format, what: str) -> None:
    with pytest.raises(ProgressFormatError, match=what) as raised:
        ProgressRecord.decode(value)

    assert raised.value.why is why


@pytest.mark.parametrize(
    "broken",
    [
        {"epoch": "7"},
        {"epoch": True},
        {"from": [1]},
        {"to": {"0": None}},
        {"to": {"zero": 1}},
        {"identities": None},
        {"identities": {"source": {}}},
        {"owner": 5},
        {"totals": {"all": 5}},
        {"writers": [1]},
    ],
)
def test_a_record_with_a_field_of_the_wrong_type_is_garbage(broken: dict[str, Any]) -> None:
    data = json.loads(record().encode())

    with pytest.raises(ProgressFormatError) as raised:
        ProgressRecord.decode(json.dumps({**data, **broken}).encode())

    assert raised.value.why is Format.GARBAGE


def test_a_key_is_json_of_sink_and_writer() -> None:
    key = ProgressKey("orders", partition_writer(3))

    assert key.encode() == b'["orders","p3"]'
    assert ProgressKey.decode(key.encode()) == key


@pytest.mark.parametrize(
    "key", [None, b"", b"\xff", b"orders", b'{"a":1}', b'["a"]', b'["a",1]', b'["a","b","c"]']
)
def test_a_foreign_key_is_not_ours_to_judge(key: bytes | None) -> None:
    assert ProgressKey.decode(key) is None
    assert fold([(0, key, b"whatever")], "orders") == NO_HISTORY


def messages(*records: tuple[str, ProgressRecord | bytes | None]) -> list[tuple[int, bytes, bytes | None]]:
    return [
        (offset, ProgressKey("orders", writer).encode(), r.encode() if isinstance(r, ProgressRecord) else r)
        for offset, (writer, r) in enumerate(records)
    ]


def folded(*records: tuple[str, ProgressRecord | bytes | None]) -> History:
    return fold(messages(*records), "orders")


def test_no_messages_are_no_history() -> None:
    assert not fold([], "orders")
    assert NO_HISTORY.generation == NO_HISTORY.epoch == NO_HISTORY.rows_ever == 0
    assert NO_HISTORY.resume_positions(2) == {0: EARLIEST, 1: EARLIEST}


def test_records_of_another_sink_do_not_count() -> None:
    foreign = [(0, ProgressKey("invoices", "all").encode(), record().encode())]

    assert not fold(foreign, "orders")


def test_the_newest_record_of_each_writer_counts() -> None:
    history = folded(("p0", record(epoch=6)), ("p1", record(epoch=6)), ("p0", record(epoch=7)))

    assert {writer: r.epoch for writer, r in history.records.items()} == {"p0": 7, "p1": 6}
    assert history.epoch == 7


def test_rows_are_summed_over_the_writers_of_the_newest_generation() -> None:
    history = folded(
        ("p0", record(rows_total=5)),
        ("p1", record(rows_total=90, dead_total=9)),
        (DRIVER, record(generation=2, epoch=0)),
        ("p0", record(generation=2, epoch=1, rows_total=1)),
    )

    assert (history.generation, history.rows_total, history.dead_total) == (2, 1, 0)
    assert history.writers_ever == ("driver", "p0", "p1")


def test_rows_of_earlier_generations_count_where_the_driver_says_so() -> None:
    history = folded((DRIVER, record(rows_before=40, dead_before=2)), ("all", record(rows_total=2)))

    assert (history.rows_ever, history.rows_total, history.dead_ever) == (42, 2, 2)


def test_totals_of_quiet_writers_come_from_the_driver() -> None:
    history = folded((DRIVER, record(totals={"p0": (100, 1), "p1": (10, 0)})), ("p0", record(rows_total=120)))

    assert history.totals() == {"driver": (0, 0), "p0": (120, 1), "p1": (10, 0)}


def test_the_record_in_force_is_the_drivers() -> None:
    history = folded(("p0", record(run="old", epoch=9)), (DRIVER, record(run="new", epoch=9)))

    assert history.in_force is history.driver
    assert history.in_force is not None
    assert history.in_force.run == "new"


def test_the_record_of_the_newest_epoch_is_a_writers_if_one_wrote_in_it() -> None:
    history = folded(("all", record(run="writer")), (DRIVER, record(run="driver")))

    assert history.newest is not None
    assert history.newest.run == "writer"


def test_a_partition_goes_on_after_its_own_record() -> None:
    history = folded(("p0", record(to={0: 50, 1: 50})), ("p1", record(to={0: 50, 1: 50})))

    assert history.resume_positions(2) == {0: 50, 1: 50}


def test_a_partition_without_a_record_goes_on_at_the_begin_of_the_newest_epoch() -> None:
    history = folded(("p0", record(from_={0: 40, 1: 30}, to={0: 50, 1: 60})))

    assert history.resume_positions(2) == {0: 50, 1: 30}


def test_a_partition_whose_record_is_old_goes_on_at_the_begin_of_the_newest_epoch() -> None:
    old = record(epoch=2, from_={0: 0, 1: 0}, to={0: 5, 1: 5})
    history = folded(("p1", old), ("p0", record(from_={0: 40, 1: 30}, to={0: 50, 1: 60})))

    assert history.resume_positions(2) == {0: 50, 1: 30}


def test_a_step_of_a_long_range_counts_for_its_own_partition() -> None:
    history = folded(("p0", record(from_={0: 40, 1: 30}, to={0: 44, 1: 60})))

    assert history.resume_positions(2) == {0: 44, 1: 30}


def test_a_partition_that_was_added_later_starts_at_its_first_offset() -> None:
    history = folded(("p0", record()))

    assert history.resume_positions(3)[2] == EARLIEST


def test_the_single_writer_and_the_driver_prove_all_partitions() -> None:
    single = folded((SINGLE_WRITER, record(to={0: 50, 1: 60})))
    driver = folded((DRIVER, record(to={0: 50, 1: 60})))

    assert single.resume_positions(2) == driver.resume_positions(2) == {0: 50, 1: 60}


def test_older_generations_say_nothing_about_positions() -> None:
    reset = record(generation=2, epoch=0, from_={0: 0, 1: 0}, to={0: 0, 1: 0})
    history = folded(("p0", record()), (DRIVER, reset))

    assert history.resume_positions(2) == {0: 0, 1: 0}


def test_an_epoch_that_spark_knows_to_be_whole_counts_to_its_end() -> None:
    history = folded(("p0", record(from_={0: 40, 1: 30}, to={0: 50, 1: 60})))

    assert history.resume_positions(2, newest_is_whole=True) == {0: 50, 1: 60}


@pytest.mark.parametrize(
    ("run", "places"),
    [
        pytest.param("run-1", {0: LogPlace(50, 4)}, id="of the run in force"),
        pytest.param("run-0", {0: LogPlace(45, 9), 1: LogPlace(45, 9)}, id="of the run before"),
    ],
)
def test_a_place_in_the_log_is_of_the_run_in_force(run: str, places: dict[int, LogPlace]) -> None:
    announced = record(to={0: 45, 1: 45}, leader_epochs={0: 9, 1: 9}, epoch=6 if run == "run-1" else 7)
    newest = record(run=run, leader_epochs={0: 4})

    assert History({DRIVER: announced, "p0": newest}).log_places() == places


def test_garbage_under_our_own_key_is_found_with_its_place() -> None:
    history = folded(("p0", record()), ("p0", b"garbage"))

    assert [(flaw.finding, flaw.writer, flaw.offset) for flaw in history.flaws] == [
        (Finding.GARBAGE, "p0", 1)
    ]
    assert "not JSON" in history.flaws[0].what


def test_a_newer_format_under_our_own_key_is_found() -> None:
    assert [flaw.finding for flaw in folded(("p0", b'{"v":9}')).flaws] == [Finding.NEWER_FORMAT]


@pytest.mark.parametrize(
    ("writer", "newer", "what"),
    [
        ("p0", {"epoch": 6}, "epoch 6 after 7"),
        ("p0", {"rows_total": 1}, "1 rows in all after 5"),
        ("p0", {"to": {0: 49, 1: 50}}, "offset 49 of source partition 0 after 50"),
        ("all", {"to": {0: 50, 1: 49}}, "offset 49 of source partition 1 after 50"),
        ("p0", {"generation": 0}, "generation 0 after 1"),
    ],
)
def test_a_writer_that_goes_backwards_is_found(writer: str, newer: dict[str, Any], what: str) -> None:
    older = record(rows_total=5)
    history = folded((writer, older), (writer, replace(older, **newer)))

    assert [flaw.finding for flaw in history.flaws] == [Finding.BACKWARDS]
    assert history.flaws[0].what == what
    assert history.records[writer] == older


def test_backwards_is_judged_per_writer_and_generation() -> None:
    history = folded(
        ("p0", record(epoch=7, rows_total=5)),
        ("p1", record(epoch=6, to={0: 3, 1: 3})),
        (DRIVER, record(generation=2, epoch=0)),
        ("p0", record(generation=2, epoch=1, rows_total=0, from_={0: 0}, to={0: 1})),
    )

    assert history.flaws == ()


def test_what_a_writer_says_of_other_partitions_may_fall_after_a_torn_epoch() -> None:
    history = folded(("p0", record(to={0: 50, 1: 90})), ("p0", record(epoch=8, to={0: 60, 1: 80})))

    assert history.flaws == ()


def test_a_reset_on_purpose_settles_what_was_wrong_before_it() -> None:
    history = folded(("p0", record()), ("p0", b"garbage"), (DRIVER, record(generation=2, epoch=0)))

    assert history.flaws == ()
    assert history.generation == 2


def test_a_restart_in_the_same_generation_settles_nothing() -> None:
    assert folded((DRIVER, record()), ("p0", b"garbage"), (DRIVER, record(run="next"))).flaws != ()


def test_a_deletion_mark_takes_a_record_away_and_is_counted() -> None:
    history = folded(("all", record()), ("all", None))

    assert not history
    assert [(flaw.finding, flaw.writer, flaw.offset) for flaw in history.flaws] == [
        (Finding.DELETED, "all", 1)
    ]


def test_folding_goes_on_where_it_stopped() -> None:
    all_messages = messages(("p0", record(epoch=6)), ("p1", record()), ("p0", record(epoch=7)))
    begin = fold(all_messages[:2], "orders")

    assert fold(all_messages[2:], "orders", begin) == fold(all_messages, "orders")


def test_the_newest_batch_is_that_of_one_checkpoint() -> None:
    history = folded(("p0", record(checkpoint="/a", batch=9)), (DRIVER, record(checkpoint="/b", batch=1)))

    assert (history.batch("/a"), history.batch("/b"), history.batch("/c")) == (9, 1, -1)
    assert history.checkpoint == "/b"
