"""Rows and letters of a Delta sink as others read them, wherever its tables lie and however they are laid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Schema

from airflow_provider_sinks.connectors.delta import storage
from airflow_provider_sinks.connectors.delta.storage import DeltaFiles
from airflow_provider_sinks.connectors.epoch_writer import Token
from airflow_provider_sinks.connectors.stored_letters import stored_letters
from airflow_provider_sinks.connectors.table_format.publisher import Publisher
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.errors import FencedError, RefusedError
from airflow_provider_sinks.core.lifecycle.steps import DeleteOutput
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.streaming import patience
from airflow_provider_sinks.streaming.patience import Patience
from airflow_provider_sinks.streaming.staged_commit import commit_staged
from airflow_provider_sinks.testing.connector_contract import FIRST, SECOND
from airflow_provider_sinks.testing.played_start import (
    SINK,
    SOURCE,
    PlayedStart,
    PlayedTask,
    begins,
    ends,
    rows_of,
)
from tests.contract.delta_harness import DeltaHarness, losing


@pytest.fixture
def lake(tmp_path: Path) -> DeltaHarness:
    return DeltaHarness(tmp_path)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "_AGAIN_SECONDS", 0.01)


def commit(start: PlayedStart, epoch: int, ranges: Mapping[int, range], bad: Sequence[int]) -> bool:
    """Commit an epoch as the runtime does."""
    tasks = [PlayedTask(start, epoch, partition, ranges, bad).go_on() for partition in ranges]
    tokens: list[Token] = [task.token for task in tasks if task.token]
    rows = sum(token.rows for token in tokens)
    record = start.record(epoch, begins(ranges), ends(ranges), rows=rows, rows_total=start.rows_total + rows)
    start.rows_total += rows
    return commit_staged(start.connector, record, tokens, Patience(timedelta(seconds=1)))


# ---- rows


def wide_table(lake: DeltaHarness, by: list[str]) -> None:
    """A table with more columns than the sink writes, of which some have names that SQL must quote."""
    columns = {"part": pa.int32(), "at": pa.int64(), "what": pa.string(), "Odd.Name": pa.string()}
    DeltaTable.create(lake.path(), Schema.from_arrow(pa.schema(columns)), partition_by=by)


@pytest.mark.parametrize("mode", [{}, {"mode": "upsert", "key": ["part", "at"]}], ids=["append", "upsert"])
@pytest.mark.parametrize("by", [[], ["part"]], ids=["whole", "partitioned"])
def test_columns_that_are_not_written_are_null(tmp_path: Path, mode: dict[str, Any], by: list[str]) -> None:
    lake = DeltaHarness(tmp_path, columns=["part", "at"], create=False, **mode)
    wide_table(lake, by)
    start = PlayedStart(lake).start()
    start.epoch(1, FIRST)
    start.epoch(2, SECOND)
    assert lake.visible() == rows_of(FIRST, SECOND)
    assert {(row["what"], row["Odd.Name"]) for row in lake.rows()} == {(None, None)}


def test_a_merge_leaves_what_it_does_not_write_and_rows_of_other_keys(tmp_path: Path) -> None:
    lake = DeltaHarness(tmp_path, columns=["part", "at"], create=False, mode="upsert", key=["part", "at"])
    wide_table(lake, ["part"])
    PlayedStart(lake).start().epoch(1, {0: range(4)})
    lake.table().update(predicate="at < 3", updates={"what": "'theirs'"})
    again = PlayedStart(lake).start()
    again.epoch(2, {0: range(2, 6)})
    assert sorted((row["at"], row["what"]) for row in lake.rows()) == [
        *((at, "theirs") for at in range(3)),
        *((at, None) for at in range(3, 6)),
    ]


def test_readers_skip_files_by_their_bounds(lake: DeltaHarness) -> None:
    start = PlayedStart(lake).start()
    start.epoch(1, {0: range(10)})
    start.epoch(2, {0: range(10, 20)})
    actions = pa.table(lake.table().get_add_actions(flatten=True)).to_pylist()
    found = {(row["num_records"], row["min.at"], row["max.at"], row["null_count.what"]) for row in actions}
    assert found == {(10, 0, 9, 0), (10, 10, 19, 0)}
    assert lake.table().to_pyarrow_table(filters=[("at", ">", 15)]).num_rows == 4


def test_an_object_store_is_read_and_written_by_the_client_of_delta_itself(
    lake: DeltaHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same folder, as the only store that is at hand: by delta-rs, as a bucket is, and not by Arrow."""
    monkeypatch.setattr(storage, "is_local", lambda _: False)
    start = PlayedStart(lake).start()
    start.epoch(1, FIRST, bad=[3])
    for call in ("write_batch", "flush", "pre_commit"):
        PlayedTask(start, 2, 0, SECOND, bad=[25]).go_on(until=call)
    again = PlayedStart(lake).start()
    again.epoch(2, SECOND)
    files = DeltaFiles({}, str(lake.path()))
    assert len(files.below(f"{lake.path()}/_sinks_progress")) == 1
    assert files.below(f"{lake.path()}/_sinks_staged") == files.below(f"{lake.path()}/nothing") == []
    assert lake.set_aside() == [(0, 3), (1, 3)]
    assert lake.visible() == sorted(set(rows_of(FIRST, SECOND)) - {(0, 3), (1, 3)})
    again.connector.reset(DeleteOutput("data table", again.connector.observe(SOURCE).data))
    assert lake.visible() == []
    assert again.connector.observe(SOURCE).data.existence == "missing"


# ---- letters


@pytest.mark.parametrize("name", [SINK, f"{SINK}_dead"])
@pytest.mark.parametrize("happens", [True, False])
def test_a_commit_in_doubt_costs_no_letter(
    lake: DeltaHarness, monkeypatch: pytest.MonkeyPatch, name: str, happens: bool
) -> None:
    start = PlayedStart(lake).start()
    losing(monkeypatch, happens=happens, name=f"/{name}", times=1)
    assert commit(start, 1, {0: range(5)}, [1])
    assert lake.set_aside() == [(0, 1)]
    assert commit(start, 2, {0: range(5, 10)}, [7])
    PlayedStart(lake).start()
    assert lake.set_aside() == [(0, 1), (0, 7)]
    assert lake.visible() == [(0, at) for at in range(10) if at not in (1, 7)]


def test_letters_are_pending_until_they_have_a_table_of_their_partitioning(lake: DeltaHarness) -> None:
    start = PlayedStart(lake).start()
    leave_pending(start, lake)
    schema = lake.table(suffix="_dead").schema()
    DeltaTable.create(lake.path(suffix="_dead"), schema, partition_by=["epoch"], mode="overwrite")
    with pytest.raises(RefusedError, match="for a table of another partitioning"):
        PlayedStart(lake).start()
    DeltaTable.create(lake.path(suffix="_dead"), schema, mode="overwrite")
    PlayedStart(lake).start().epoch(2, {0: range(5, 10)}, bad=[7])
    assert lake.set_aside() == [(0, 1), (0, 7)]


def test_letters_of_one_partitioning_do_not_go_into_another_of_as_many_columns(lake: DeltaHarness) -> None:
    PlayedStart(lake).start()
    schema, dead = lake.table(suffix="_dead").schema(), lake.path(suffix="_dead")
    DeltaTable.create(dead, schema, partition_by=["source_partition"], mode="overwrite")
    leave_pending(PlayedStart(lake).start(), lake)
    DeltaTable.create(dead, schema, partition_by=["replays"], mode="overwrite")
    with pytest.raises(RefusedError, match="for a table of another partitioning"):
        PlayedStart(lake).start()
    DeltaTable.create(dead, schema, partition_by=["source_partition"], mode="overwrite")
    PlayedStart(lake).start()
    assert lake.set_aside() == [(0, 1)]


def test_a_sink_may_change_its_table_of_letters_and_come_back_to_it(
    lake: DeltaHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    PlayedStart(lake).start().epoch(1, {0: range(5)}, bad=[1])
    with monkeypatch.context() as patch:
        spec = lake.spec().model_dump(by_alias=True, exclude_none=True, mode="json")
        other = SinkSpec.parse({**spec, "dead_letter": {"path": str(lake.folder / "other")}})
        patch.setattr(lake, "spec", lambda _: other)
        PlayedStart(lake).start().epoch(2, {0: range(5, 10)}, bad=[7])
    assert lake.set_aside() == [(0, 1)]
    PlayedStart(lake).start().epoch(3, {0: range(10, 15)}, bad=[11])
    assert lake.set_aside() == [(0, 1), (0, 11)]


@pytest.mark.parametrize("letters", [{"dead_letter": "other"}, {}], ids=["another", "none"])
def test_letters_that_are_pending_for_a_table_that_a_sink_has_no_more_are_told(
    lake: DeltaHarness, monkeypatch: pytest.MonkeyPatch, letters: dict[str, str]
) -> None:
    leave_pending(PlayedStart(lake).start(), lake)
    with monkeypatch.context() as patch:
        found = with_letters(lake, **letters)
        patch.setattr(lake, "spec", lambda _: found)
        with pytest.raises(RefusedError, match="have no table any more") as refused:
            PlayedStart(lake).start()
    assert f"Write {lake.path(suffix='_dead')} as dead_letter" in refused.value.hint
    PlayedStart(lake).start()
    assert lake.set_aside() == [(0, 1)]


def test_letters_that_were_published_stay_in_a_table_that_a_sink_has_no_more(
    lake: DeltaHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Publisher, "_forget", lambda *_: None)  # its driver dies behind the last commit
        PlayedStart(lake).start().epoch(1, {0: range(5)}, bad=[1])
    with monkeypatch.context() as patch:
        found = with_letters(lake, dead_letter="other")
        patch.setattr(lake, "spec", lambda _: found)
        for epoch, first in ((2, 5), (3, 10)):
            PlayedStart(lake).start().epoch(epoch, {0: range(first, first + 5)})
    assert lake.set_aside() == [(0, 1)]


def with_letters(lake: DeltaHarness, dead_letter: str = "") -> SinkSpec:
    """The sink with another table for its letters, or none."""
    given = lake.spec().model_dump(by_alias=True, exclude_none=True, mode="json")
    rest = {name: part for name, part in given.items() if name != "dead_letter"}
    more = {"dead_letter": {"path": str(lake.folder / dead_letter)}} if dead_letter else {}
    return SinkSpec.parse({**rest, **more})


def test_what_is_set_aside_is_shown_as_it_is_stored(lake: DeltaHarness) -> None:
    with stored_letters(lake.spec(), ResolvedConnections({})) as letters:
        assert (list(letters.all()), letters.at((0, 0)), letters.newest(3, lambda _: True)) == ([], None, [])
    start = PlayedStart(lake).start()
    start.epoch(1, {0: range(5), 1: range(2)}, bad=[1])
    start.epoch(2, {0: range(5, 10)}, bad=[7])
    with stored_letters(lake.spec(), ResolvedConnections({})) as letters:
        assert sorted(letter.place for letter in letters.all()) == [(0, 1), (0, 7), (1, 1)]
        (newest,) = letters.newest(1, lambda letter: letter.place[0] == 0)
        found, none = letters.at((0, 1)), letters.at((0, 2))
    assert (newest.place, none) == ((0, 7), None)
    assert found is not None
    assert (found.sink, found.error, found.value, found.epoch) == (SINK, "no JSON", b"as it came", 1)
    assert found.can_be_replayed


def leave_pending(start: PlayedStart, lake: DeltaHarness) -> None:
    """Commit rows of epoch 1, and die before its dead letters are published."""
    with pytest.MonkeyPatch.context() as patch:
        from airflow_provider_sinks.connectors.table_format.dead_letters import DeadLetters

        patch.setattr(DeadLetters, "keep", _killed)
        with pytest.raises(FencedError):
            start.epoch(1, {0: range(5)}, bad=[1])
    assert lake.set_aside() == []


def _killed(*_: Any) -> None:
    raise FencedError("killed")
