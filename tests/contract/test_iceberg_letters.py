"""Dead letters of an Iceberg sink: a table of their own, behind the rows, and each of them there once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table
from pyiceberg.types import StringType

from airflow_provider_sinks.connectors.epoch_writer import InDoubtError
from airflow_provider_sinks.connectors.iceberg.staged_files import FOLDER
from airflow_provider_sinks.connectors.stored_letters import stored_letters
from airflow_provider_sinks.connectors.table_format.publisher import Publisher
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.errors import FencedError, RefusedError, SinkError, UnavailableError
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.streaming import patience
from airflow_provider_sinks.testing.connector_contract import FIRST, SECOND
from airflow_provider_sinks.testing.played_start import (
    SINK,
    SOURCE,
    PlayedStart,
    rows_of,
)
from tests.contract.iceberg_harness import IcebergHarness
from tests.contract.iceberg_letters import commit, failing, leave_pending, staged

LETTERS = {0: range(50, 52)}
"""An epoch of nothing else, where all of it is bad."""
NEXT = {0: range(52, 60)}


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "_AGAIN_SECONDS", 0.01)


def losing(patch: pytest.MonkeyPatch, name: str, *, happens: bool) -> None:
    """Lose the next commit to a table, or the answer to it."""
    real, lost = SqlCatalog.commit_table, list[int]()

    def lose(self: SqlCatalog, table: Table, *arguments: Any) -> Any:
        if table.name()[-1] != name or lost:
            return real(self, table, *arguments)
        lost.append(1)
        if happens:
            real(self, table, *arguments)
        raise ConnectionError("the answer got lost")

    patch.setattr(SqlCatalog, "commit_table", lose)


def letter_files(lake: IcebergHarness) -> list[Path]:
    return [path for path in lake.folder.rglob("*.parquet") if f"{SINK}_dead" in str(path)]


# ---- doubts, and what happens behind the point of no return


@pytest.mark.parametrize("name", [SINK, f"{SINK}_dead"])
@pytest.mark.parametrize("happens", [True, False])
def test_a_commit_in_doubt_costs_no_letter(
    lake: IcebergHarness, start: PlayedStart, monkeypatch: pytest.MonkeyPatch, name: str, happens: bool
) -> None:
    losing(monkeypatch, name, happens=happens)
    assert commit(start, 3, {0: range(50, 55)}, [51])
    assert lake.set_aside() == [(0, 51)]
    assert commit(start, 4, {0: range(55, 60)}, [57])
    PlayedStart(lake).start()
    assert lake.set_aside() == [(0, 51), (0, 57)]
    kept = [at for at in range(50, 60) if at not in (51, 57)]
    assert lake.visible() == sorted([*rows_of(FIRST, SECOND), *((0, at) for at in kept)])


def test_no_epoch_forgets_the_letters_of_the_one_before(lake: IcebergHarness, start: PlayedStart) -> None:
    leave_pending(start, lake)
    assert commit(start, 4, NEXT, [57])
    assert lake.set_aside() == [(0, 51), (0, 57)]


@pytest.mark.parametrize("error", [FencedError("overtaken"), UnavailableError("others were first")])
def test_letters_whose_rows_are_committed_are_not_rolled_back(
    lake: IcebergHarness, start: PlayedStart, error: SinkError
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        failing(patch, f"{SINK}_dead", error)
        with pytest.raises(type(error)):
            commit(start, 3, LETTERS, [50, 51])
    assert lake.set_aside() == []
    PlayedStart(lake).start()
    assert lake.set_aside() == [(0, 50), (0, 51)]


def test_a_rollback_behind_a_commit_in_doubt_keeps_what_the_table_names(
    lake: IcebergHarness, start: PlayedStart, monkeypatch: pytest.MonkeyPatch
) -> None:
    record, tokens = staged(start, 3, LETTERS, [50, 51])
    losing(monkeypatch, SINK, happens=True)
    with pytest.raises(InDoubtError):
        start.connector.commit_epoch(record, tokens)
    start.connector.rollback_epoch(tokens)
    PlayedStart(lake).start()
    assert lake.set_aside() == [(0, 50), (0, 51)]


def test_what_nobody_has_committed_is_rolled_back(lake: IcebergHarness, start: PlayedStart) -> None:
    before = sorted(lake.folder.rglob("*.parquet"))
    _, tokens = staged(start, 3, {0: range(50, 55)}, [51])
    start.connector.rollback_epoch(tokens)
    assert sorted(lake.folder.rglob("*.parquet")) == before
    assert [path for path in lake.folder.rglob("*.json") if FOLDER in path.parts] == []


# ---- what others do to one of the two tables


def test_a_table_of_letters_that_somebody_has_partitioned_takes_them(
    lake: IcebergHarness, start: PlayedStart
) -> None:
    with lake.table(suffix="_dead").update_spec() as change:
        change.add_identity("source_partition")
    assert commit(start, 3, {0: range(50, 55)}, [51])
    again = PlayedStart(lake).start()
    again.epoch(4, {0: range(55, 60)}, bad=[57])
    assert lake.set_aside() == [(0, 51), (0, 57)]
    with lake.table(suffix="_dead").update_spec() as change:
        change.add_identity("epoch")
    again.epoch(5, {0: range(60, 65)}, bad=[61])
    assert lake.set_aside() == [(0, 51), (0, 57), (0, 61)]


def test_letters_are_pending_over_a_change_of_their_partitioning(
    lake: IcebergHarness, start: PlayedStart
) -> None:
    leave_pending(start, lake)
    with lake.table(suffix="_dead").update_spec() as change:
        change.add_identity("source_partition")
    PlayedStart(lake).start()
    assert lake.set_aside() == [(0, 51)]


def test_a_partitioning_of_letters_by_a_column_of_others_is_unfit(
    lake: IcebergHarness, start: PlayedStart
) -> None:
    with lake.table(suffix="_dead").update_schema() as columns:
        columns.add_column("team", StringType())
    with lake.table(suffix="_dead").update_spec() as change:
        change.add_identity("team")
    unfit = start.connector.observe(SOURCE).dead_letter
    assert unfit is not None
    assert unfit.unfit is not None
    assert unfit.unfit.what == "is partitioned by team"


def test_pending_letters_do_not_need_the_rows_that_others_have_compacted_and_expired(
    lake: IcebergHarness, start: PlayedStart
) -> None:
    start.epoch(3, {0: range(60, 63)}, bad=[61])
    leave_pending_fourth(start)
    rows_before = len(lake.visible())
    compact_and_expire(lake)
    PlayedStart(lake).start()
    assert lake.set_aside() == [(0, 61), (0, 71)]
    assert len(lake.visible()) == rows_before


def test_pending_letters_that_are_gone_are_a_refusal(lake: IcebergHarness, start: PlayedStart) -> None:
    start.epoch(3, {0: range(60, 63)}, bad=[61])
    published = letter_files(lake)
    leave_pending_fourth(start)
    (lost,) = [path for path in letter_files(lake) if path not in published]
    lost.unlink()
    for _ in range(2):
        with pytest.raises(RefusedError, match="dead letters of epoch 4"):
            PlayedStart(lake).start()


def test_letters_of_a_table_that_was_dropped_and_made_anew_stop_nobody(
    lake: IcebergHarness, start: PlayedStart
) -> None:
    start.epoch(3, {0: range(60, 63)}, bad=[61])
    dead = lake.table(suffix="_dead")
    dead.catalog.drop_table(dead.name())
    again = PlayedStart(lake).start()
    again.epoch(4, {0: range(63, 66)}, bad=[64])
    assert lake.set_aside() == [(0, 64)]


def test_a_sink_may_change_its_table_of_letters_and_come_back_to_it(
    lake: IcebergHarness, start: PlayedStart, monkeypatch: pytest.MonkeyPatch
) -> None:
    start.epoch(3, {0: range(60, 63)}, bad=[61])
    with monkeypatch.context() as patch:
        spec = lake.spec().model_dump(by_alias=True, exclude_none=True, mode="json")
        other = SinkSpec.parse({**spec, "dead_letter": {"table": "shop.other_dead"}})
        patch.setattr(lake, "spec", lambda _: other)
        PlayedStart(lake).start().epoch(4, {0: range(63, 66)}, bad=[64])
    assert lake.set_aside() == [(0, 61)]
    PlayedStart(lake).start().epoch(5, {0: range(66, 69)}, bad=[67])
    assert lake.set_aside() == [(0, 61), (0, 67)]


def test_letters_that_were_published_stay_in_a_table_that_a_sink_has_no_more(
    lake: IcebergHarness, start: PlayedStart, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Publisher, "_forget", lambda *_: None)  # its driver dies behind the last commit
        start.epoch(3, {0: range(60, 63)}, bad=[61])
    with monkeypatch.context() as patch:
        spec = lake.spec().model_dump(by_alias=True, exclude_none=True, mode="json")
        other = SinkSpec.parse({**spec, "dead_letter": {"table": "shop.other_dead"}})
        patch.setattr(lake, "spec", lambda _: other)
        for epoch, first in ((4, 63), (5, 66)):
            PlayedStart(lake).start().epoch(epoch, {0: range(first, first + 3)})
    assert lake.set_aside() == [(0, 61)]


def test_a_sink_without_a_table_of_letters_starts_once_nothing_is_pending(
    lake: IcebergHarness, start: PlayedStart, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_pending(start, lake)
    given = lake.spec().model_dump(by_alias=True, exclude_none=True, mode="json")
    without = SinkSpec.parse({name: part for name, part in given.items() if name != "dead_letter"})
    with monkeypatch.context() as patch:
        patch.setattr(lake, "spec", lambda _: without)
        with pytest.raises(RefusedError, match="have no table any more") as refused:
            PlayedStart(lake).open()
    assert "Write shop.orders_dead as dead_letter" in refused.value.hint
    PlayedStart(lake).start()
    assert lake.set_aside() == [(0, 51)]
    monkeypatch.setattr(lake, "spec", lambda _: without)
    PlayedStart(lake).open()


def test_a_start_whose_data_table_is_gone_takes_the_table_of_letters(
    lake: IcebergHarness, start: PlayedStart
) -> None:
    start.epoch(3, {0: range(50, 53)}, bad=[51])
    table = lake.table()
    table.catalog.drop_table(table.name())
    again = PlayedStart(lake).start()
    again.epoch(1, {0: range(5)}, bad=[3])
    assert lake.set_aside() == [(0, 3), (0, 51)]
    with pytest.raises((FencedError, RefusedError)):  # the new table is not as far as the old one was
        start.connector.demand_in_force()


# ---- looking at them


def test_what_is_set_aside_is_shown_as_it_is_stored(lake: IcebergHarness, start: PlayedStart) -> None:
    start.epoch(3, {0: range(50, 55), 1: range(16, 18)}, bad=[51, 53, 17])
    start.epoch(4, {0: range(55, 60)}, bad=[57])
    with stored_letters(lake.spec(), ResolvedConnections({"lake": lake._options})) as letters:
        assert sorted(letter.place for letter in letters.all()) == [(0, 51), (0, 53), (0, 57), (1, 17)]
        newest = letters.newest(2, lambda letter: letter.place[0] == 0)
        found, none = letters.at((0, 51)), letters.at((0, 52))
    assert newest[0].place == (0, 57)
    assert len(newest) == 2
    assert none is None
    assert found is not None
    assert (found.sink, found.error, found.value, found.epoch) == (SINK, "no JSON", b"as it came", 3)
    assert (found.origin.topic, found.origin.partition, found.origin.offset) == (SOURCE.name, 0, 51)
    assert found.can_be_replayed


def test_a_table_of_letters_that_is_not_there_has_none(lake: IcebergHarness) -> None:
    PlayedStart(lake).start()
    dead = lake.table(suffix="_dead")
    dead.catalog.drop_table(dead.name())
    with stored_letters(lake.spec(), ResolvedConnections({"lake": lake._options})) as letters:
        assert (list(letters.all()), letters.at((0, 0)), letters.newest(3, lambda _: True)) == ([], None, [])


def leave_pending_fourth(start: PlayedStart) -> None:
    with pytest.MonkeyPatch.context() as patch:
        failing(patch, f"{SINK}_dead", FencedError("killed"))
        with pytest.raises(FencedError):
            start.epoch(4, {0: range(70, 73)}, bad=[71])


def compact_and_expire(lake: IcebergHarness) -> None:
    """Rewrite all rows, expire what was before, and remove files that no snapshot has."""
    compacted = lake.table()
    compacted.overwrite(compacted.scan().to_arrow())
    table = lake.table()
    old = [s.snapshot_id for s in table.metadata.snapshots if s != table.metadata.current_snapshot()]
    table.maintenance.expire_snapshots().by_ids(old).commit()
    live = {task.file.file_path for task in lake.table().scan().plan_files()}
    for path in lake.folder.rglob("*.parquet"):
        if f"/{SINK}/data/" in str(path) and path.as_uri() not in live:
            path.unlink()
