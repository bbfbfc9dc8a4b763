"""Dead letters of an Iceberg sink whose table is another one since they were staged, or was altered."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyiceberg.table import Table
from pyiceberg.table.update import RemovePropertiesUpdate
from pyiceberg.types import BinaryType

from airflow_provider_sinks.connectors.iceberg.catalog import TableCatalog
from airflow_provider_sinks.connectors.iceberg.staged_files import FOLDER
from airflow_provider_sinks.connectors.table_format.dead_letters import DeadLetters
from airflow_provider_sinks.connectors.table_format.errors import HiddenError
from airflow_provider_sinks.core.errors import FencedError, JobFailedError, RefusedError
from airflow_provider_sinks.testing.connector_contract import FIRST, SECOND
from airflow_provider_sinks.testing.played_start import SINK, PlayedStart, rows_of
from tests.contract.iceberg_harness import IcebergHarness
from tests.contract.iceberg_letters import DEAD, OTHER, by_hand, commit, leave_pending, naming, of_letters

PROPERTY = f"sinks.progress.{SINK}"


# ---- what staged files go by: the numbers of columns


def test_letters_are_not_published_into_a_table_whose_columns_have_other_numbers(
    lake: IcebergHarness, start: PlayedStart
) -> None:
    leave_pending(start, lake)
    by_hand(lake, OTHER, "source_topic")
    with pytest.MonkeyPatch.context() as patch:
        naming(patch, lake, OTHER)
        with pytest.raises(RefusedError, match="have no table any more") as refused:
            PlayedStart(lake).start()
    assert of_letters(lake, "other") == []
    assert f"Write {DEAD} as dead_letter" in refused.value.hint
    PlayedStart(lake).start()
    (letter,) = of_letters(lake)
    assert (letter["error"], letter["source_topic"]) == ("no JSON", "source")


def test_letters_whose_table_was_made_anew_by_hand_go_into_one_that_the_sink_makes(
    lake: IcebergHarness, start: PlayedStart, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_pending(start, lake)
    lake._reader.drop_table(DEAD)
    by_hand(lake, DEAD, "source_topic")
    with pytest.raises(RefusedError, match="were staged for a table of other columns") as refused:
        PlayedStart(lake).start()
    assert "Column 'at' was number 1, timestamptz when they were staged" in refused.value.detail
    assert of_letters(lake) == []
    naming(monkeypatch, lake, OTHER)
    PlayedStart(lake).start()
    assert (lake.set_aside(), lake.set_aside("other")) == ([], [(0, 51)])


def test_letters_of_one_partitioning_do_not_go_into_another_of_its_number(
    lake: IcebergHarness, start: PlayedStart, monkeypatch: pytest.MonkeyPatch
) -> None:
    with lake.table(suffix="_dead").update_spec() as change:
        change.add_identity("source_partition")
    start = PlayedStart(lake).start()
    leave_pending(start, lake)
    by_hand(lake, OTHER, "at")
    with lake.table("other", "_dead").update_spec() as change:
        change.add_identity("replays")
    naming(monkeypatch, lake, OTHER)
    with pytest.raises(RefusedError, match="another partitioning"):
        PlayedStart(lake).start()
    assert lake.set_aside("other") == []


def test_a_column_of_letters_that_is_another_one_stops_a_running_sink_before_its_rows(
    lake: IcebergHarness, start: PlayedStart
) -> None:
    with lake.table(suffix="_dead").update_schema(allow_incompatible_changes=True) as change:
        change.delete_column("value")
    with lake.table(suffix="_dead").update_schema() as change:
        change.add_column("value", BinaryType())
    assert commit(start, 3, {0: range(50, 52)})
    with pytest.raises(JobFailedError, match=f'table "{DEAD}" was altered') as failed:
        commit(start, 4, {0: range(52, 55)}, [53])
    assert "Column 'value' was number 8, binary" in failed.value.detail
    assert lake.visible() == rows_of(FIRST, SECOND, {0: range(50, 52)})
    PlayedStart(lake).start().epoch(4, {0: range(52, 55)}, bad=[53])
    assert [letter["value"] for letter in of_letters(lake)] == [b"as it came"]


def test_a_stage_of_an_earlier_release_is_read(lake: IcebergHarness, start: PlayedStart) -> None:
    leave_pending(start, lake)
    for path in [path for path in lake.folder.rglob("*.json") if FOLDER in path.parts]:
        found = json.loads(path.read_text())
        assert [file.pop("layout") != {} for file in found["files"]] == [False, True]
        path.write_text(json.dumps(found))
    PlayedStart(lake).start()
    assert lake.set_aside() == [(0, 51)]


# ---- a driver that wakes late


def test_a_driver_that_wakes_late_publishes_nothing_where_a_newer_start_has_another_table(
    lake: IcebergHarness, start: PlayedStart, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep = DeadLetters.keep

    def sleep(self: DeadLetters[Table], *given: Any) -> None:
        monkeypatch.setattr(DeadLetters, "keep", keep)
        with pytest.MonkeyPatch.context() as patch:
            naming(patch, lake, OTHER)
            PlayedStart(lake).open()
        keep(self, *given)

    by_hand(lake, OTHER, "at")
    monkeypatch.setattr(DeadLetters, "keep", sleep)
    with pytest.raises(FencedError):
        start.epoch(3, {0: range(50, 55)}, bad=[51])
    assert (lake.set_aside("other"), lake.set_aside()) == ([(0, 51)], [])


def test_letters_go_nowhere_else_while_their_table_is_hidden(
    lake: IcebergHarness, start: PlayedStart, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_pending(start, lake)
    naming(monkeypatch, lake, OTHER)
    load = TableCatalog.load

    def hide(self: TableCatalog, name: str) -> Table:
        if name == DEAD:
            raise HiddenError("403: not yours")
        return load(self, name)

    with monkeypatch.context() as patch:
        patch.setattr(TableCatalog, "load", hide)
        with pytest.raises(RefusedError, match=f'may be in table "{DEAD}", which is hidden'):
            PlayedStart(lake).start()
    PlayedStart(lake).start()
    assert (lake.set_aside("other"), lake.set_aside()) == ([(0, 51)], [])


# ---- the property of the data table


def test_letters_are_pending_where_somebody_removed_the_property(
    lake: IcebergHarness, start: PlayedStart
) -> None:
    leave_pending(start, lake)
    for _ in range(2):  # the second time behind a fence, whose snapshot says it too
        table = lake.table()
        table.catalog.commit_table(table, (), (RemovePropertiesUpdate(removals=[PROPERTY]),))
        PlayedStart(lake).open()
    PlayedStart(lake).start()
    assert lake.set_aside() == [(0, 51)]
