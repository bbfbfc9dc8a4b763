"""The reader of tables of files catches what it is there for: snapshots are made by hand, right and wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, write_deltalake

from airflow_provider_sinks.connectors.delta.factory import STAGED
from airflow_provider_sinks.connectors.delta.spec import DeltaTarget
from airflow_provider_sinks.connectors.table_format.spec import Mode
from airflow_provider_sinks.connectors.table_format.stage import Stage, StagedFile
from airflow_provider_sinks.connectors.table_format.state import State, key_of
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.progress.identity import Identities, Identity
from airflow_provider_sinks.core.progress.record import DRIVER, SINGLE_WRITER, ProgressRecord
from tests.faults.buckets import BUCKET_ROWS
from tests.faults.driver import SinkUnderTest
from tests.faults.feed import Row
from tests.faults.lake_output import LakeOutput, LakeWatch, look_of
from tests.faults.lake_tables import DeltaReader, Snapshot

ROWS = [Row.make(0, seq) for seq in range(BUCKET_ROWS + 3)]
NEWEST = [*ROWS[BUCKET_ROWS - 4 : BUCKET_ROWS], *ROWS[BUCKET_ROWS:]]
"""What is left of them where rows of one key and bucket replace each other."""
TABLE = Identity("system", "table", "id", 1)


def snapshot(rows: Sequence[Row], recorded: int) -> Snapshot:
    identities = Identities(TABLE, TABLE, TABLE)
    record = ProgressRecord(1, "me", "run", 1, {0: 0}, {0: recorded}, identities, rows_total=recorded)
    seen = [{**asdict(row), "bucket": row.seq // BUCKET_ROWS} for row in rows]
    return Snapshot(seen, State("run", {SINGLE_WRITER: record, DRIVER: record}))


@pytest.mark.parametrize(("rows", "replaces"), [(ROWS, False), (NEWEST, True)], ids=["append", "upsert"])
def test_rows_with_their_record_have_nothing_wrong(rows: Sequence[Row], replaces: bool) -> None:
    assert list(look_of(snapshot(rows, len(ROWS)), replaces=replaces).torn()) == []


@pytest.mark.parametrize(
    ("rows", "replaces", "said"),
    [
        pytest.param(ROWS[:-1], False, "42 rows are visible, and 43 are recorded", id="one is missing"),
        pytest.param(
            [*ROWS[:-1], ROWS[0]], False, "1 rows are visible twice", id="one is missing, one is doubled"
        ),
        pytest.param(NEWEST[:-1], True, "42 rows are visible, and 43 are recorded", id="a key is missing"),
        pytest.param(
            [ROWS[32], *NEWEST[1:]], True, "42 rows are visible, and 43 are recorded", id="a key is older"
        ),
        pytest.param([*NEWEST, ROWS[0]], True, "1 rows are visible twice", id="an older row stays"),
    ],
)
def test_a_part_of_an_epoch_is_told(rows: Sequence[Row], replaces: bool, said: str) -> None:
    assert said in list(look_of(snapshot(rows, len(ROWS)), replaces=replaces).torn())


class Broken:
    """A table that names a file which is gone."""

    def read(self) -> Snapshot:
        raise FileNotFoundError("sinks-1.parquet")

    def stages(self) -> list[Path]:
        return []

    def close(self) -> None:
        pass


def test_a_table_that_cannot_be_read_is_told() -> None:
    watch = LakeWatch(Broken(), replaces=False)

    watch.look_around()

    assert watch.torn == ["cannot be read: FileNotFoundError: sinks-1.parquet"]


SINK = "by-hand"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A Delta table with the first three rows and their record, that somebody has written who is no sink."""
    seen = snapshot(ROWS[:3], 3)
    assert seen.state is not None
    said = CommitProperties(custom_metadata={key_of(SINK): seen.state.encode()})
    rows = pa.Table.from_pylist([{**row, "version": 1} for row in seen.rows])
    write_deltalake(tmp_path / "table", rows, commit_properties=said)
    return tmp_path / "table"


def stage(table: Path, name: str, row: Row, *, is_whole: bool = True) -> None:
    """Leave a stage with one row beside a table."""
    folder = table / STAGED / SINK / "run"
    folder.mkdir(parents=True, exist_ok=True)
    file = StagedFile(Role.DATA, str(folder / f"{name}.parquet"))
    pq.write_table(pa.table({"id": [row.id]}), file.path)
    (folder / f"{name}.json").write_bytes(Stage(name, "run", (file,), is_whole).encode())


def test_rows_and_progress_of_one_version_are_read(table: Path) -> None:
    read = DeltaReader(SINK, DeltaTarget(path=str(table))).read()

    assert sorted(row["id"] for row in read.rows) == [row.id for row in ROWS[:3]]
    assert list(look_of(read, replaces=False).torn()) == []


def test_what_was_staged_is_left_behind_unless_its_rows_are_there(table: Path, tmp_path: Path) -> None:
    output = LakeOutput(
        SinkUnderTest({}, ResolvedConnections({}), tmp_path),
        DeltaReader(SINK, DeltaTarget(path=str(table))),
        Mode.APPEND,
    )
    stage(table, "published", ROWS[0])
    assert output.left_behind() == 0
    stage(table, "lost", ROWS[3])
    stage(table, "begun", ROWS[0], is_whole=False)

    assert output.left_behind() == 2
