"""What befalls a Delta table beside its sink: what is seen of it, and that no row is lost or doubled."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, Field
from deltalake.schema import PrimitiveType

from airflow_provider_sinks.connectors.delta import log
from airflow_provider_sinks.connectors.delta.tables import DeltaTables
from airflow_provider_sinks.connectors.epoch_writer import InDoubtError
from airflow_provider_sinks.connectors.table_format.dead_letters import DeadLetters
from airflow_provider_sinks.connectors.table_format.publisher import Publisher
from airflow_provider_sinks.core.decision.facts import Existence, Observation, ResourceFacts
from airflow_provider_sinks.core.errors import FencedError, JobFailedError, RefusedError, SinkError
from airflow_provider_sinks.core.lifecycle.steps import DeleteOutput, EmptyOutput
from airflow_provider_sinks.core.progress.history import Finding
from airflow_provider_sinks.core.progress.record import DRIVER, SINGLE_WRITER
from airflow_provider_sinks.testing.connector_contract import FIRST, SECOND, THIRD, assert_exact
from airflow_provider_sinks.testing.played_start import SINK, SOURCE, PlayedStart, PlayedTask, ends, rows_of
from tests.contract.delta_harness import DeltaHarness, append_of_others, losing

KEY = f"sinks.progress.{SINK}"


@pytest.fixture
def lake(tmp_path: Path) -> DeltaHarness:
    return DeltaHarness(tmp_path)


@pytest.fixture
def start(lake: DeltaHarness) -> PlayedStart:
    """A sink that has committed two epochs."""
    started = PlayedStart(lake).start()
    started.epoch(1, FIRST)
    started.epoch(2, SECOND)
    return started


def observe(lake: DeltaHarness) -> Observation:
    return lake.connector().observe(SOURCE)


def seen(lake: DeltaHarness) -> ResourceFacts:
    return observe(lake).data


def ours(lake: DeltaHarness) -> list[tuple[int, int]]:
    return [row for row in lake.visible() if row[0] != 9]


def data_files(lake: DeltaHarness) -> list[Path]:
    return sorted(lake.folder.rglob("sinks-*.parquet"))


def stages(lake: DeltaHarness) -> list[Path]:
    return [path for path in lake.folder.rglob("*.json") if "_sinks_staged" in path.parts]


def states(lake: DeltaHarness) -> list[Path]:
    return list((lake.path() / "_sinks_progress").rglob("*.json"))


def staged(start: PlayedStart, epoch: int = 3, ranges: Any = THIRD) -> list[Any]:
    tasks = [PlayedTask(start, epoch, part, ranges).go_on() for part in ranges]
    return [task.token for task in tasks if task.token]


def clean_up_log(lake: DeltaHarness) -> None:
    """Do what others do some day: remove files of no version, then the commits before a checkpoint."""
    append_of_others(lake.table())
    lake.table().vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
    lake.table().create_checkpoint()
    for path in sorted((lake.path() / "_delta_log").glob("*.json"))[:-1]:
        path.unlink()


def before_commits(patch: pytest.MonkeyPatch, act: Callable[[], object]) -> list[int]:
    """Let something happen once, right before the next commit; return how often it did."""
    commit, happened = log.commit, list[int]()

    def commit_behind(*arguments: Any) -> None:
        patch.setattr(log, "commit", commit)
        happened.append(1)
        act()
        commit(*arguments)

    patch.setattr(log, "commit", commit_behind)
    return happened


# ---- what others do, and changes nothing


def test_appends_compaction_and_vacuum_of_others_change_nothing(
    lake: DeltaHarness, start: PlayedStart
) -> None:
    for _ in range(3):
        append_of_others(lake.table())
    lake.table().optimize.compact()
    lake.table().vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
    start.epoch(3, THIRD)
    again = PlayedStart(lake).start()
    again.epoch(4, {0: range(60, 70)})
    assert ours(lake) == rows_of(FIRST, SECOND, THIRD, {0: range(60, 70)})
    assert (again.connector.progress().epoch, seen(lake).id) == (4, str(lake.table().metadata().id))


def test_an_append_of_another_between_load_and_commit_is_gone_round(
    lake: DeltaHarness, start: PlayedStart, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        once = before_commits(patch, lambda: append_of_others(lake.table()))
        start.epoch(3, THIRD)
    assert once == [1]
    assert ours(lake) == rows_of(FIRST, SECOND, THIRD)
    assert len(lake.visible()) == len(ours(lake)) + 3


def test_the_progress_survives_the_clean_up_of_the_log(lake: DeltaHarness, start: PlayedStart) -> None:
    before = start.connector.progress()
    clean_up_log(lake)
    assert start.connector.progress() == before
    again = PlayedStart(lake).start()
    again.epoch(3, THIRD)
    assert ours(lake) == rows_of(FIRST, SECOND, THIRD)


def test_the_progress_survives_whoever_removes_its_file(lake: DeltaHarness, start: PlayedStart) -> None:
    shutil.rmtree(lake.path() / "_sinks_progress")
    found = start.connector.progress()
    assert (found.epoch, found.rows_total, set(found.records)) == (2, 66, {DRIVER, SINGLE_WRITER})
    start.epoch(3, THIRD)
    assert_exact(lake, start.connector, 3, FIRST, SECOND, THIRD)


def test_progress_of_which_nothing_but_the_number_is_left_is_a_flaw(
    lake: DeltaHarness, start: PlayedStart
) -> None:
    clean_up_log(lake)
    shutil.rmtree(lake.path() / "_sinks_progress")
    (flaw,) = observe(lake).known.flaws
    assert flaw.finding is Finding.GARBAGE
    assert "generation 1, epoch 2 was committed" in flaw.what
    with pytest.raises(SinkError, match="cannot be read"):
        start.epoch(3, THIRD)


def test_a_file_of_progress_that_was_tampered_with_is_not_believed(
    lake: DeltaHarness, start: PlayedStart
) -> None:
    (path,) = states(lake)
    path.write_text(json.dumps({**json.loads(path.read_text()), "run": "another"}))
    assert start.connector.progress().epoch == 2
    start.connector.demand_in_force()


def test_whoever_asks_delta_itself_is_told_how_far_the_sink_is(
    lake: DeltaHarness, start: PlayedStart
) -> None:
    del start
    table = lake.table()
    assert table.transaction_version(KEY) == table.version()
    assert table.transaction_version(f"{KEY}.epoch") == 1 << 32 | 2


# ---- fencing


def test_a_driver_that_slept_between_load_and_commit_is_fenced(
    lake: DeltaHarness, start: PlayedStart, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = staged(start)
    with monkeypatch.context() as patch:
        before_commits(patch, lambda: PlayedStart(lake).start())
        with pytest.raises(FencedError):
            start.commit(3, THIRD, tokens)
    assert lake.visible() == rows_of(FIRST, SECOND)


def test_the_retries_of_delta_rs_itself_would_let_the_sleeper_publish(
    lake: DeltaHarness, start: PlayedStart, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken variant that the test beside it must tell."""
    tokens, once = staged(start), log.once

    def many(*arguments: Any) -> Any:
        properties = once(*arguments)
        properties.max_commit_retries = 5
        properties.app_transactions = []
        return properties

    monkeypatch.setattr(log, "once", many)
    before_commits(monkeypatch, lambda: append_of_others(lake.table()))
    start.commit(3, THIRD, tokens)
    assert ours(lake) == rows_of(FIRST, SECOND, THIRD)
    assert lake.table().transaction_version(KEY) != lake.table().version()


@pytest.mark.parametrize("happens", [True, False])
def test_a_commit_in_doubt_is_no_commit_and_no_failure(
    lake: DeltaHarness, start: PlayedStart, monkeypatch: pytest.MonkeyPatch, happens: bool
) -> None:
    tokens = staged(start)
    record = start.record(3, {0: 50, 1: 16}, ends(THIRD), rows=14, rows_total=start.rows_total + 14)
    losing(monkeypatch, happens=happens, times=1)
    with pytest.raises(InDoubtError):
        start.connector.commit_epoch(record, tokens)
    start.connector.commit_epoch(record, tokens)
    assert_exact(lake, start.connector, 3, FIRST, SECOND, THIRD)


# ---- what stops a sink


def test_a_table_that_was_restored_is_another_one_until_it_is_restored_forward(
    lake: DeltaHarness, start: PlayedStart
) -> None:
    before, newest = seen(lake), lake.table().version()
    tokens = staged(start)
    lake.table().restore(newest - 1)
    found = observe(lake)
    assert found.data.id == f"{before.id} without snapshot {newest}"
    assert (found.progress.id, found.known.epoch) == (before.id, 2)
    with pytest.raises(RefusedError, match="was rolled back"):
        start.commit(3, THIRD, tokens)

    lake.table().restore(newest)

    assert seen(lake).id == before.id
    start.epoch(3, THIRD)
    assert_exact(lake, start.connector, 3, FIRST, SECOND, THIRD)


@pytest.mark.usefixtures("start")
def test_who_goes_on_with_a_table_that_was_restored_is_not_asked_again(lake: DeltaHarness) -> None:
    lake.table().restore(lake.table().version() - 1)
    asked = seen(lake).id
    again = PlayedStart(lake).start()
    assert again.identities.data.id == asked
    again.epoch(3, THIRD)
    assert seen(lake).id == asked
    assert lake.visible() == rows_of(FIRST, THIRD)


def test_a_table_that_was_replaced_or_made_anew_has_another_id(
    lake: DeltaHarness, start: PlayedStart
) -> None:
    tokens, before, schema = staged(start), seen(lake), lake.table().schema()
    DeltaTable.create(lake.path(), schema, mode="overwrite")
    assert seen(lake).id != before.id
    with pytest.raises(RefusedError, match="begun anew"):
        start.commit(3, THIRD, tokens)
    shutil.rmtree(lake.path())
    found = observe(lake)
    assert (found.data.existence, found.progress.existence) == (Existence.MISSING, Existence.MISSING)
    with pytest.raises(RefusedError, match="is gone"):
        start.commit(3, THIRD, tokens)
    DeltaTable.create(lake.path(), schema)
    with pytest.raises(RefusedError, match="has no progress any more"):
        start.commit(3, THIRD, tokens)


def test_a_column_that_was_added_disturbs_nobody(lake: DeltaHarness, start: PlayedStart) -> None:
    tokens = staged(start)
    lake.table().alter.add_columns(Field("note", PrimitiveType("string")))
    start.commit(3, THIRD, tokens)
    assert_exact(lake, start.connector, 3, FIRST, SECOND, THIRD)


def test_columns_and_partitions_that_were_changed_under_a_running_sink_stop_it(
    lake: DeltaHarness, start: PlayedStart
) -> None:
    tokens = staged(start)
    change(lake, partitioned_by=["part"])
    with pytest.raises(JobFailedError, match="was altered"):
        start.commit(3, THIRD, tokens)
    change(lake, retyped={"what": "binary"})
    with pytest.raises(JobFailedError, match="Column 'what' is another one"):
        start.commit(3, THIRD, tokens)


def test_a_constraint_that_is_added_under_a_running_sink_ends_it(
    lake: DeltaHarness, start: PlayedStart
) -> None:
    """The next start checks it: what is staged was not."""
    tokens = staged(start)
    lake.table().alter.add_constraint({"small": "at < 1000000"})
    with pytest.raises(JobFailedError) as caught:
        start.commit(3, THIRD, tokens)
    assert caught.value.detail == "Its constraints are others."
    assert seen(lake).unfit is None
    PlayedStart(lake).start().epoch(3, THIRD)
    assert lake.visible() == rows_of(FIRST, SECOND, THIRD)


def test_a_folder_that_may_not_be_written_is_told_before_anything_is_staged(
    lake: DeltaHarness, start: PlayedStart, monkeypatch: pytest.MonkeyPatch
) -> None:
    del start
    monkeypatch.setattr("os.access", lambda *_: False)
    found = seen(lake)
    assert (found.existence, found.reason) == (
        Existence.UNKNOWN,
        f"{lake.path()} cannot be written from here",
    )


# ---- what is left behind


def test_what_killed_writers_and_drivers_have_left_is_swept_and_nothing_else(
    lake: DeltaHarness, start: PlayedStart
) -> None:
    published = data_files(lake)
    for call in ("write_batch", "flush", "pre_commit"):
        PlayedTask(start, 3, 0, THIRD, bad=[55]).go_on(until=call)
    assert len(data_files(lake)) > len(published)
    assert stages(lake)
    PlayedStart(lake).start()
    assert (data_files(lake), stages(lake)) == (published, [])


def test_stages_that_a_driver_left_behind_its_commit_cost_no_row_of_any_version(
    lake: DeltaHarness, start: PlayedStart, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Publisher, "_forget", lambda *_: None)
        start.epoch(3, THIRD)
    version = lake.table().version()
    lake.table().optimize.compact()
    again = PlayedStart(lake).start()
    assert stages(lake) == []
    assert_exact(lake, again.connector, 3, FIRST, SECOND, THIRD)
    assert DeltaTable(lake.path(), version).to_pyarrow_table().num_rows == len(rows_of(FIRST, SECOND, THIRD))


def test_of_the_files_of_the_progress_one_is_left(lake: DeltaHarness, start: PlayedStart) -> None:
    table = lake.table()
    assert len(states(lake)) == 1
    lost = lake.path() / "_sinks_progress" / SINK / f"{table.version():020}-{17:016x}.json"
    lost.write_text("of an attempt that was overtaken")
    coming = lost.with_name(f"{table.version() + 50:020}-{17:016x}.json")
    coming.write_text("of an attempt that is on its way")
    start.connector.sweep()
    assert len(states(lake)) == 2
    assert (lost.exists(), coming.exists()) == (False, True)


def test_dead_letters_of_a_driver_that_died_behind_the_rows_are_published_once(
    lake: DeltaHarness, start: PlayedStart, monkeypatch: pytest.MonkeyPatch
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
    lake: DeltaHarness, start: PlayedStart, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish = DeltaTables.publish

    def overtaken(self: DeltaTables, name: str, judge: Any) -> bool:
        if name.endswith("_dead"):
            monkeypatch.undo()
            PlayedStart(lake).start()
        return publish(self, name, judge)

    monkeypatch.setattr(DeltaTables, "publish", overtaken)
    with pytest.raises(FencedError):
        start.epoch(3, THIRD, bad=[52])
    assert lake.set_aside() == [(0, 52)]


# ---- a reset


def test_a_table_is_emptied_and_keeps_its_progress(lake: DeltaHarness, start: PlayedStart) -> None:
    start.connector.reset(EmptyOutput("data table", seen(lake)))
    assert (lake.visible(), seen(lake).is_empty) == ([], True)
    start.connector.reset(EmptyOutput("data table", seen(lake)))
    start.epoch(3, THIRD)
    assert lake.visible() == rows_of(THIRD)


def test_a_table_is_made_anew_as_it_was(lake: DeltaHarness, start: PlayedStart) -> None:
    before, connector = seen(lake), start.connector
    creation = lake.creations()[1].anew(before, connector.settings(before))
    assert creation.hindrance is None
    connector.reset(DeleteOutput("data table", before))
    connector.reset(DeleteOutput("data table", before))
    connector.ensure(creation)
    assert seen(lake).id != before.id
    with pytest.raises(RefusedError, match="is not the one any more"):
        connector.reset(DeleteOutput("data table", before))
    assert [field.name for field in lake.table().schema().fields] == ["part", "at", "what"]
    start.identities = connector.observe(SOURCE).identities()
    connector.announce(start.record(0, ends(FIRST), ends(FIRST)))
    assert lake.visible() == []


@pytest.mark.parametrize("other", ["_delta_log", "_sinks_progress/theirs"])
def test_a_table_whose_folder_holds_what_is_somebody_elses_is_not_removed(
    lake: DeltaHarness, start: PlayedStart, other: str
) -> None:
    inner = lake.path() / (other if "/" in other else f"inner/{other}")
    inner.mkdir(parents=True)
    (inner / "0.json").write_text("{}")
    with pytest.raises(RefusedError, match="its folder holds more than its own"):
        start.connector.reset(DeleteOutput("data table", seen(lake)))
    assert lake.visible() == rows_of(FIRST, SECOND)


def test_past_epochs_are_told_by_the_commits(start: PlayedStart) -> None:
    begins = {found.epoch: found.begin for found in start.connector.past_epochs()}
    assert (begins[1], begins[2], begins[3]) == ({0: 0, 1: 0}, {0: 20, 1: 10}, ends(SECOND))


def test_an_epoch_of_dead_letters_only_is_known_to_be_done(lake: DeltaHarness, start: PlayedStart) -> None:
    start.epoch(3, {0: range(50, 52)}, bad=[50, 51])
    assert (lake.visible(), lake.set_aside()) == (rows_of(FIRST, SECOND), [(0, 50), (0, 51)])
    assert start.connector.progress().epoch == 3


def change(
    lake: DeltaHarness, partitioned_by: list[str] | None = None, retyped: dict[str, str] | None = None
) -> None:
    """Alter the metadata as no reader of old files would: what only CREATE OR REPLACE of others does."""
    path = lake.path() / "_delta_log" / f"{lake.table().version() + 1:020}.json"
    for found in sorted((lake.path() / "_delta_log").glob("*.json")):
        for line in found.read_text().splitlines():
            if "metaData" in line:
                metadata = json.loads(line)["metaData"]
    schema = json.loads(metadata["schemaString"])
    for field in schema["fields"]:
        field["type"] = (retyped or {}).get(field["name"], field["type"])
    metadata |= {"schemaString": json.dumps(schema), "partitionColumns": partitioned_by or []}
    entries = [{"commitInfo": {"timestamp": 0, "operation": "CHANGE COLUMN"}}, {"metaData": metadata}]
    path.write_text("\n".join(map(json.dumps, entries)))
