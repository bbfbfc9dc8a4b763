"""What befalls an Iceberg table beside its sink: what is seen of it, and that no row is lost or doubled."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.table import Table
from pyiceberg.table.update import RemovePropertiesUpdate, RemoveSnapshotRefUpdate, SetPropertiesUpdate
from pyiceberg.types import StringType

from airflow_provider_sinks.connectors.iceberg.catalog import TableCatalog
from airflow_provider_sinks.connectors.iceberg.connector import IcebergConnector
from airflow_provider_sinks.connectors.iceberg.spec import iceberg_sink
from airflow_provider_sinks.connectors.iceberg.staged_files import FOLDER
from airflow_provider_sinks.connectors.iceberg.tables import IcebergTables
from airflow_provider_sinks.connectors.table_format.dead_letters import DeadLetters
from airflow_provider_sinks.connectors.table_format.publisher import Publisher
from airflow_provider_sinks.connectors.table_format.sink_tables import SinkTables
from airflow_provider_sinks.core.decision.facts import Existence, Observation, ResourceFacts
from airflow_provider_sinks.core.errors import FencedError, JobFailedError, RefusedError, SinkError
from airflow_provider_sinks.core.lifecycle.steps import DeleteOutput, EmptyOutput
from airflow_provider_sinks.core.progress.history import Finding
from airflow_provider_sinks.core.progress.record import DRIVER, SINGLE_WRITER
from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.testing.connector_contract import FIRST, SECOND, THIRD, assert_exact
from airflow_provider_sinks.testing.played_start import (
    SINK,
    SOURCE,
    PlayedStart,
    PlayedTask,
    ends,
    rows_of,
)
from tests.contract.iceberg_harness import IcebergHarness

PROPERTY = f"sinks.progress.{SINK}"


def observe(lake: IcebergHarness, sink: str = SINK) -> Observation:
    connector = lake.connector(sink)
    try:
        return connector.observe(SOURCE)
    finally:
        connector.close()


def seen(lake: IcebergHarness) -> ResourceFacts:
    return observe(lake).data


def of_others(table: Table, count: int = 3) -> pa.Table:
    """Rows that another program appends; the suite's own are told apart by their partition."""
    columns = {"part": pa.array([9] * count, pa.int32()), "at": pa.array(range(count), pa.int64())}
    return pa.table({**columns, "what": pa.array(["theirs"] * count)}).select(table.schema().column_names)


def ours(lake: IcebergHarness) -> list[tuple[int, int]]:
    return [row for row in lake.visible() if row[0] != 9]


def go_back(lake: IcebergHarness, sequence: int) -> int:
    """Roll the table back to the snapshot of this number, and return the one that it stood on."""
    table = lake.table()
    before = table.metadata.current_snapshot_id
    target = next(s for s in table.metadata.snapshots if s.sequence_number == sequence)
    table.manage_snapshots().set_current_snapshot(target.snapshot_id).commit()
    assert before is not None
    return before


def data_files(lake: IcebergHarness) -> list[Path]:
    return sorted(lake.folder.rglob("*.parquet"))


def stages(lake: IcebergHarness) -> list[Path]:
    return [path for path in lake.folder.rglob("*.json") if FOLDER in path.parts]


# ---- what others do, and changes nothing


def test_appends_of_others_expired_snapshots_and_compaction_change_nothing(
    lake: IcebergHarness, start: PlayedStart
) -> None:
    for _ in range(3):
        lake.table().append(of_others(lake.table()))
    table = lake.table()
    old = [s.snapshot_id for s in table.metadata.snapshots if s != table.metadata.current_snapshot()]
    table.maintenance.expire_snapshots().by_ids(old).commit()
    assert len(lake.table().metadata.snapshots) == 1
    start.epoch(3, THIRD)
    compacted = lake.table()
    compacted.overwrite(compacted.scan().to_arrow())

    again = PlayedStart(lake).start()
    again.epoch(4, {0: range(60, 70)})

    assert ours(lake) == rows_of(FIRST, SECOND, THIRD, {0: range(60, 70)})
    assert (again.connector.progress().epoch, seen(lake).id) == (4, str(lake.table().metadata.table_uuid))


def test_an_append_of_another_between_load_and_commit_is_gone_round(
    lake: IcebergHarness, start: PlayedStart, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        once = before_commits(patch, lambda: lake.table().append(of_others(lake.table())))
        start.epoch(3, THIRD)
    assert once == [1]
    assert ours(lake) == rows_of(FIRST, SECOND, THIRD)
    assert len(lake.visible()) == len(ours(lake)) + 3


def test_progress_is_read_from_the_snapshots_where_somebody_removed_the_property(
    lake: IcebergHarness, start: PlayedStart
) -> None:
    table = lake.table()
    table.catalog.commit_table(table, (), (RemovePropertiesUpdate(removals=[PROPERTY]),))
    found = start.connector.progress()
    assert (found.epoch, found.rows_total, set(found.records)) == (2, 66, {DRIVER, SINGLE_WRITER})
    start.epoch(3, THIRD)
    assert_exact(lake, start.connector, 3, FIRST, SECOND, THIRD)


# ---- fencing


def test_a_driver_that_slept_between_load_and_commit_is_fenced(
    lake: IcebergHarness, start: PlayedStart, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = [PlayedTask(start, 3, part, THIRD).go_on().token for part in THIRD]
    with monkeypatch.context() as patch:
        before_commits(patch, lambda: PlayedStart(lake).start())
        with pytest.raises(FencedError):
            start.commit(3, THIRD, [token for token in tokens if token])
    assert lake.visible() == rows_of(FIRST, SECOND)


def test_the_commit_of_pyiceberg_itself_would_let_the_sleeper_publish(
    lake: IcebergHarness, start: PlayedStart, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It repeats a commit on what it reads anew: the broken variant that the tests beside it must tell."""
    tokens = [PlayedTask(start, 3, part, THIRD).go_on().token for part in THIRD]

    def commit(self: TableCatalog, table: Table, changes: Any) -> None:
        del self, table
        monkeypatch.undo()
        PlayedStart(lake).open()
        changes.commit_transaction()

    monkeypatch.setattr(TableCatalog, "commit", commit)
    start.commit(3, THIRD, [token for token in tokens if token])
    assert lake.visible() == rows_of(FIRST, SECOND, THIRD)


def test_a_table_that_was_rolled_back_to_what_a_sleeper_had_loaded_takes_nothing_of_it(
    lake: IcebergHarness, start: PlayedStart, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = [PlayedTask(start, 3, part, THIRD).go_on().token for part in THIRD]
    loaded = lake.table().metadata.current_snapshot()
    assert loaded is not None

    def fence_and_go_back() -> None:
        PlayedStart(lake).start()
        assert loaded.sequence_number is not None
        go_back(lake, loaded.sequence_number)

    with monkeypatch.context() as patch:
        before_commits(patch, fence_and_go_back)
        with pytest.raises(SinkError):
            start.commit(3, THIRD, [token for token in tokens if token])
    assert lake.visible() == rows_of(FIRST, SECOND)
    with pytest.raises(FencedError):
        start.commit(3, THIRD, [token for token in tokens if token])


# ---- what stops a sink


@pytest.mark.usefixtures("start")
def test_a_catalog_that_was_put_back_behind_a_run_has_no_newer_start(lake: IcebergHarness) -> None:
    earlier = lake.table().metadata_location
    runs = [PlayedStart(lake).start() for _ in range(2)]
    token = PlayedTask(runs[-1], 3, 0, THIRD).go_on().token
    lake.put_back(earlier)

    with pytest.raises(RefusedError, match="was rolled back while the sink ran"):
        runs[-1].connector.demand_in_force()
    with pytest.raises(RefusedError, match="was rolled back while the sink ran"):
        runs[-1].commit(3, THIRD, [token] if token else [])
    assert lake.visible() == rows_of(FIRST, SECOND)


def test_a_table_that_was_rolled_back_is_another_one_until_it_is_rolled_forward(
    lake: IcebergHarness, start: PlayedStart
) -> None:
    before = seen(lake)
    task = PlayedTask(start, 3, 0, THIRD).go_on()
    newest = go_back(lake, 2)
    found = observe(lake)
    assert found.data.id == f"{before.id} without snapshot {newest}"
    assert (found.progress.id, found.known.epoch) == (before.id, 2)
    with pytest.raises(RefusedError, match="was rolled back"):
        start.commit(3, THIRD, [task.token] if task.token else [])

    lake.table().manage_snapshots().set_current_snapshot(newest).commit()

    assert seen(lake) == before
    start.epoch(3, THIRD)
    assert_exact(lake, start.connector, 3, FIRST, SECOND, THIRD)


@pytest.mark.usefixtures("start")
def test_who_goes_on_with_a_table_that_was_rolled_back_is_not_asked_again(lake: IcebergHarness) -> None:
    go_back(lake, 2)
    asked = seen(lake).id
    again = PlayedStart(lake).start()
    assert again.identities.data.id == asked
    again.epoch(3, THIRD)
    assert seen(lake).id == asked
    table = lake.table()
    table.catalog.commit_table(table, (), (RemovePropertiesUpdate(removals=[PROPERTY]),))
    assert seen(lake).id == asked
    assert lake.visible() == rows_of(FIRST, THIRD)


@pytest.mark.usefixtures("start")
def test_a_table_that_was_begun_anew_under_its_uuid_is_another_one(lake: IcebergHarness) -> None:
    table = lake.table()  # what CREATE OR REPLACE does to the metadata
    uuid = str(table.metadata.table_uuid)
    table.catalog.commit_table(table, (), (RemoveSnapshotRefUpdate.model_validate({"ref-name": "main"}),))
    assert " without snapshot " in seen(lake).id
    lake.table().append(of_others(table))
    assert seen(lake).id.startswith(f"{uuid} without snapshot ")


def test_a_table_that_was_dropped_is_missing_and_one_made_anew_has_another_id(
    lake: IcebergHarness, start: PlayedStart
) -> None:
    table, task = lake.table(), PlayedTask(start, 3, 0, THIRD).go_on()
    before = seen(lake)
    table.catalog.drop_table(f"shop.{SINK}")
    found = observe(lake)
    assert (found.data.existence, found.progress.existence) == (Existence.MISSING, Existence.MISSING)
    assert found.known.epoch == 0
    with pytest.raises(RefusedError, match="is gone"):
        start.commit(3, THIRD, [task.token] if task.token else [])
    table.catalog.create_table(f"shop.{SINK}", table.schema())
    assert seen(lake).id != before.id
    with pytest.raises(RefusedError, match="has no progress any more"):
        start.commit(3, THIRD, [task.token] if task.token else [])


def test_a_column_that_was_renamed_under_a_running_sink_stops_it(
    lake: IcebergHarness, start: PlayedStart
) -> None:
    task = PlayedTask(start, 3, 0, THIRD).go_on()
    with lake.table().update_schema() as change:
        change.add_column("note", StringType())
    start.connector.demand_in_force()
    with lake.table().update_schema() as change:
        change.rename_column("what", "whatever")
    with pytest.raises(JobFailedError, match="was altered"):
        start.commit(3, THIRD, [task.token] if task.token else [])
    assert len(lake.visible()) == len(rows_of(FIRST, SECOND))


def test_a_column_that_was_added_disturbs_nobody(lake: IcebergHarness, start: PlayedStart) -> None:
    tokens = [PlayedTask(start, 3, part, THIRD).go_on().token for part in THIRD]
    with lake.table().update_schema() as change:
        change.add_column("note", StringType())
    start.commit(3, THIRD, [token for token in tokens if token])
    assert_exact(lake, start.connector, 3, FIRST, SECOND, THIRD)


def test_progress_that_cannot_be_read_is_a_flaw(lake: IcebergHarness, start: PlayedStart) -> None:
    for text, finding in (("no JSON", Finding.GARBAGE), ('{"v": 99}', Finding.NEWER_FORMAT)):
        table = lake.table()
        table.catalog.commit_table(table, (), (SetPropertiesUpdate(updates={PROPERTY: text}),))
        assert [flaw.finding for flaw in observe(lake).known.flaws] == [finding]
        with pytest.raises(SinkError):
            start.epoch(3, THIRD)


def test_a_table_of_format_version_1_is_unfit(lake: IcebergHarness) -> None:
    start = PlayedStart(lake).start()
    del start
    table = lake.table()
    table.catalog.create_table("shop.old", table.schema(), properties={"format-version": "1"})
    unfit = observe(lake, "old").data.unfit
    assert unfit is not None
    assert unfit.what == "is of format version 1"
    assert "'format-version' = '2'" in unfit.repair


def test_a_login_that_may_only_read_is_told_before_anything_is_written(
    lake: IcebergHarness, postgres: Postgres
) -> None:
    PlayedStart(lake).start()
    with postgres.connect() as connection:
        connection.execute(
            "DO $$ BEGIN CREATE ROLE reader LOGIN PASSWORD 'r'; EXCEPTION WHEN OTHERS THEN END $$"
        )
        connection.execute("GRANT SELECT ON iceberg_tables, iceberg_namespace_properties TO reader")
    options = lake.options(postgres, postgres.port)
    given = {**options.parameters, "login": "reader", "password": "r"}
    target = iceberg_sink(lake.spec()).target.iceberg
    connector = IcebergConnector(SinkTables(SINK, target.table), target, replace(options, parameters=given))
    found = connector.observe(SOURCE).data
    connector.close()
    assert found.existence is Existence.UNKNOWN
    assert found.reason == "permission denied: UPDATE on table iceberg_tables"
    assert found.grant == 'GRANT UPDATE ON iceberg_tables TO "reader";'


# ---- what is left behind


def test_what_killed_writers_and_drivers_have_left_is_swept_and_nothing_else(
    lake: IcebergHarness, start: PlayedStart
) -> None:
    published = data_files(lake)
    for call in ("write_batch", "flush", "pre_commit"):
        PlayedTask(start, 3, 0, THIRD, bad=[55]).go_on(until=call)
    assert len(data_files(lake)) > len(published)
    assert stages(lake)
    PlayedStart(lake).start()
    assert (data_files(lake), stages(lake)) == (published, [])


def test_stages_that_a_driver_left_behind_its_commit_cost_no_row(
    lake: IcebergHarness, start: PlayedStart, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Publisher, "_forget", lambda *_: None)
        start.epoch(3, THIRD)
    assert stages(lake)
    again = PlayedStart(lake).start()
    assert stages(lake) == []
    assert_exact(lake, again.connector, 3, FIRST, SECOND, THIRD)


def test_dead_letters_of_a_driver_that_died_behind_the_rows_are_published_once(
    lake: IcebergHarness, start: PlayedStart, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(DeadLetters, "keep", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            start.epoch(3, THIRD, bad=[52, 57])
    assert lake.set_aside() == []
    for _ in range(2):
        again = PlayedStart(lake).start()
        assert lake.set_aside() == [(0, 52), (0, 57)]
    assert stages(lake) == []
    again.epoch(4, {0: range(60, 70)}, bad=[61])
    assert lake.set_aside() == [(0, 52), (0, 57), (0, 61)]


def test_dead_letters_are_not_published_by_a_driver_that_was_overtaken(
    lake: IcebergHarness, start: PlayedStart, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish = IcebergTables.publish

    def overtaken(self: IcebergTables, name: str, judge: Any) -> bool:
        if name.endswith("_dead"):
            monkeypatch.undo()
            PlayedStart(lake).start()
        return publish(self, name, judge)

    monkeypatch.setattr(IcebergTables, "publish", overtaken)
    with pytest.raises(FencedError):
        start.epoch(3, THIRD, bad=[52])
    assert lake.set_aside() == [(0, 52)]


# ---- a reset


def test_a_table_is_emptied_and_keeps_its_progress(lake: IcebergHarness, start: PlayedStart) -> None:
    start.connector.reset(EmptyOutput("data table", seen(lake)))
    assert (lake.visible(), seen(lake).is_empty) == ([], True)
    start.connector.reset(EmptyOutput("data table", seen(lake)))
    start.epoch(3, THIRD)
    assert lake.visible() == rows_of(THIRD)


def test_a_table_is_made_anew_as_it_was(lake: IcebergHarness, start: PlayedStart) -> None:
    before, connector = seen(lake), start.connector
    creation = lake.creations()[1].anew(before, connector.settings(before))
    assert creation.hindrance is None
    connector.reset(DeleteOutput("data table", before))
    connector.reset(DeleteOutput("data table", before))
    connector.ensure(creation)
    assert seen(lake).id != before.id
    with pytest.raises(RefusedError, match="is not the one any more"):
        connector.reset(DeleteOutput("data table", before))
    assert lake.table().schema().column_names == ["part", "at", "what"]
    start.identities = connector.observe(SOURCE).identities()
    connector.announce(start.record(0, ends(FIRST), ends(FIRST)))
    assert lake.visible() == []


def test_past_epochs_are_told_by_the_snapshots(start: PlayedStart) -> None:
    begins = {found.epoch: found.begin for found in start.connector.past_epochs()}
    assert (begins[1], begins[2], begins[3]) == ({0: 0, 1: 0}, {0: 20, 1: 10}, ends(SECOND))


def test_an_epoch_of_dead_letters_only_is_known_to_be_done(lake: IcebergHarness, start: PlayedStart) -> None:
    start.epoch(3, {0: range(50, 52)}, bad=[50, 51])
    assert (lake.visible(), lake.set_aside()) == (rows_of(FIRST, SECOND), [(0, 50), (0, 51)])
    assert start.connector.progress().epoch == 3
    assert lake.table().scan(AlwaysTrue()).count() == 66


def before_commits(patch: pytest.MonkeyPatch, act: Any) -> list[int]:
    """Let something happen once, right before the next commit; return how often it did."""
    commit, happened = TableCatalog.commit, list[int]()

    def commit_behind(self: TableCatalog, table: Table, changes: Any) -> None:
        patch.setattr(TableCatalog, "commit", commit)
        happened.append(1)
        act()
        commit(self, table, changes)

    patch.setattr(TableCatalog, "commit", commit_behind)
    return happened
