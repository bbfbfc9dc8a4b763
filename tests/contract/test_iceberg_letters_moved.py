"""Dead letters of an Iceberg sink that names one table after another: in one of them, in its own folder."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_sinks.connectors.iceberg.connector import IcebergConnector
from airflow_provider_sinks.connectors.iceberg.staged_files import FOLDER
from airflow_provider_sinks.connectors.table_format import protocol
from airflow_provider_sinks.connectors.table_format.dead_letters import DeadLetters
from airflow_provider_sinks.core.errors import FencedError, JobFailedError
from airflow_provider_sinks.testing.connector_contract import FIRST, SECOND
from airflow_provider_sinks.testing.played_start import SINK, PlayedStart, rows_of
from tests.contract.iceberg_harness import IcebergHarness
from tests.contract.iceberg_letters import (
    DEAD,
    OTHER,
    by_hand,
    commit,
    failing,
    leave_pending,
    naming,
    of_letters,
)

THIRD = "shop.third_dead"


def start_in(lake: IcebergHarness, table: str) -> PlayedStart:
    """Start the sink with this table for its letters."""
    with pytest.MonkeyPatch.context() as patch:
        naming(patch, lake, table)
        return PlayedStart(lake).start()


def killed(*_: Any, **__: Any) -> Any:
    raise FencedError("killed")


def folder_of(lake: IcebergHarness, sink: str) -> Path:
    """The folder of a table of letters."""
    return Path(lake.table(sink, "_dead").location().removeprefix("file://"))


def files_in(folder: Path) -> list[Path]:
    return list(folder.rglob("*.parquet"))


# ---- one table after another


@pytest.mark.parametrize("last", [DEAD, THIRD], ids=["back to the first", "on to a third"])
@pytest.mark.parametrize("sweeps", [False, True], ids=["that ended before its sweep", "that was whole"])
def test_letters_that_a_start_has_published_in_another_table_are_there_alone(
    lake: IcebergHarness, start: PlayedStart, monkeypatch: pytest.MonkeyPatch, sweeps: bool, last: str
) -> None:
    leave_pending(start, lake)
    if sweeps:
        start_in(lake, OTHER)
    else:
        with monkeypatch.context() as patch:
            patch.setattr(IcebergConnector, "sweep", killed)
            with pytest.raises(FencedError, match="killed"):
                start_in(lake, OTHER)
    assert lake.set_aside("other") == [(0, 51)]

    naming(monkeypatch, lake, last)
    PlayedStart(lake).start().epoch(4, {0: range(55, 58)}, bad=[56])

    found = {sink: lake.set_aside(sink) for sink in (SINK, "other", "third")}
    newest = SINK if last == DEAD else "third"
    assert found == {SINK: [], "third": [], "other": [(0, 51)], newest: [(0, 56)]}


@pytest.mark.parametrize("last", [DEAD, OTHER, THIRD])
def test_letters_whose_new_table_was_named_and_not_written_go_where_the_next_start_says(
    lake: IcebergHarness, start: PlayedStart, last: str
) -> None:
    leave_pending(start, lake)
    with pytest.MonkeyPatch.context() as patch:
        failing(patch, "other_dead", FencedError("killed"))
        with pytest.raises(FencedError, match="killed"):
            start_in(lake, OTHER)
    for _ in range(2):
        start_in(lake, last)

    found = {f"shop.{sink}_dead": lake.set_aside(sink) for sink in (SINK, "other", "third")}
    assert found == {DEAD: [], OTHER: [], THIRD: [], last: [(0, 51)]}


@pytest.mark.parametrize(
    ("step", "is_done"),
    [("take", False), ("_named", False), ("_named", True)],
    ids=["before it takes its table", "before it has it named", "before it publishes"],
)
def test_a_start_that_wakes_late_publishes_nothing_where_a_newer_one_has_another_table(
    lake: IcebergHarness, start: PlayedStart, monkeypatch: pytest.MonkeyPatch, step: str, is_done: bool
) -> None:
    leave_pending(start, lake)
    real = getattr(DeadLetters, step)

    def sleep(self: Any, *given: Any, **more: Any) -> Any:
        monkeypatch.setattr(DeadLetters, step, real)
        done = real(self, *given, **more) if is_done else None
        start_in(lake, OTHER)
        return done if is_done else real(self, *given, **more)

    monkeypatch.setattr(DeadLetters, step, sleep)
    with pytest.raises(FencedError):
        PlayedStart(lake).start()
    assert (lake.set_aside("other"), lake.set_aside()) == ([(0, 51)], [])


# ---- whose folder their files lie in


def test_letters_of_another_table_do_not_go_with_the_folder_of_the_first(
    lake: IcebergHarness, start: PlayedStart
) -> None:
    leave_pending(start, lake)
    first = folder_of(lake, SINK)
    start_in(lake, OTHER)
    lake._reader.drop_table(DEAD)
    shutil.rmtree(first)
    assert [letter["value"] for letter in of_letters(lake, "other")] == [b"as it came"]
    assert len(files_in(folder_of(lake, "other"))) == 1


def test_letters_whose_table_was_made_anew_at_another_place_do_not_go_with_the_old_one(
    lake: IcebergHarness, start: PlayedStart
) -> None:
    leave_pending(start, lake)
    before = folder_of(lake, SINK)
    lake._reader.drop_table(DEAD)
    by_hand(lake, DEAD, location=f"{lake.folder.as_uri()}/anew")
    PlayedStart(lake).start()
    shutil.rmtree(before)
    assert [letter["value"] for letter in of_letters(lake)] == [b"as it came"]


def test_a_table_of_letters_that_is_made_anew_at_another_place_stops_a_running_sink_before_its_rows(
    lake: IcebergHarness, start: PlayedStart
) -> None:
    lake._reader.drop_table(DEAD)
    by_hand(lake, DEAD, location=f"{lake.folder.as_uri()}/anew")
    with pytest.raises(JobFailedError, match=f'table "{DEAD}" was altered') as failed:
        commit(start, 3, {0: range(50, 55)}, [51])
    assert "and it lies at" in failed.value.detail
    assert lake.visible() == rows_of(FIRST, SECOND)
    PlayedStart(lake).start().epoch(3, {0: range(50, 55)}, bad=[51])
    assert lake.set_aside() == [(0, 51)]


def test_copies_that_nobody_came_to_name_are_swept(lake: IcebergHarness, start: PlayedStart) -> None:
    leave_pending(start, lake)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protocol, "named", killed)
        with pytest.raises(FencedError, match="killed"):
            start_in(lake, OTHER)
    assert len(files_in(folder_of(lake, "other"))) == 1
    start_in(lake, OTHER)
    assert lake.set_aside("other") == [(0, 51)]
    assert len(files_in(folder_of(lake, "other"))) == 1
    assert [path for path in lake.folder.rglob("*.json") if FOLDER in path.parts] == []
