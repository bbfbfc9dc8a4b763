"""Data files as a writer makes them: every row in one of them, and bounds that no row is outside of."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Schema
from deltalake.transaction import AddAction

from airflow_provider_sinks.connectors.delta.data_files import DeltaDataFiles
from airflow_provider_sinks.connectors.delta.layout import Layout, TablePlan
from airflow_provider_sinks.connectors.delta.statistics import Statistics
from airflow_provider_sinks.connectors.delta.storage import DeltaFiles
from airflow_provider_sinks.connectors.table_format import data_files
from airflow_provider_sinks.connectors.table_format.stage import StagedFile
from airflow_provider_sinks.core.decision.facts import Role


def statistics(kind: pa.DataType, *batches: list[Any], **properties: str) -> dict[str, Any]:
    schema = pa.schema([pa.field("x", kind)])
    found = Statistics.of(schema, {f"delta.{name}": value for name, value in properties.items()})
    for values in batches:
        found.take(pa.table([pa.array(values, kind)], schema=schema))
    told: dict[str, Any] = json.loads(found.to_json())
    return told


def bounds(kind: pa.DataType, *batches: list[Any]) -> tuple[Any, Any]:
    told = statistics(kind, *batches)
    return told.get("minValues", {}).get("x"), told.get("maxValues", {}).get("x")


UTC = dt.UTC
YEAR = dt.datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)


@pytest.mark.parametrize(
    ("kind", "values", "least", "greatest"),
    [
        (pa.int64(), [3, None, -(2**62)], -(2**62), 3),
        (pa.float64(), [1.5, -0.5], -0.5, 1.5),
        (pa.float64(), [1.5, math.nan], None, None),
        (pa.float64(), [1.5, math.inf], None, None),
        (pa.float32(), [0.0], -0.0, 0.0),
        (pa.decimal128(10, 2), [Decimal("1.50"), Decimal("-2.25")], -2.25, 1.5),
        (pa.decimal128(38, 2), [Decimal("1.50")], None, None),
        (pa.date32(), [dt.date(2026, 1, 2), dt.date(1, 1, 1)], "0001-01-01", "2026-01-02"),
        (pa.timestamp("us", "UTC"), [YEAR], "2026-01-02T03:04:05.678901Z", "2026-01-02T03:04:05.678901Z"),
        (pa.timestamp("us"), [YEAR.replace(tzinfo=None)], *["2026-01-02T03:04:05.678901"] * 2),
        (pa.string(), ["b", "a", None], "a", "b"),
        (pa.string(), ["x" * 40, "a" * 40], "a" * 32, "x" * 32 + chr(0x10FFFF)),
        (pa.binary(), [b"x"], None, None),
        (pa.bool_(), [True, False], False, True),
        (pa.string(), [None], None, None),
    ],
)
def test_a_bound_is_exact_or_is_left_out(
    kind: pa.DataType, values: list[Any], least: Any, greatest: Any
) -> None:
    assert bounds(kind, values) == (least, greatest)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.bool_(), [True, False]),
        (pa.string(), ["x" * 33, "a"]),
        (pa.string(), [chr(0x10FFFF) * 40, "é" * 33]),
        (pa.float64(), [-0.0]),
        (pa.float64(), [1.5, math.nan]),
        (pa.float32(), [0.1]),
        (pa.decimal128(15, 2), [Decimal("1.25")]),
        (pa.decimal128(38, 2), [Decimal("123456789012345678.99")]),
        (pa.date32(), [dt.date(1, 1, 1)]),
        (pa.timestamp("us", "UTC"), [YEAR]),
        (pa.binary(), [b"x"]),
    ],
    ids=str,
)
def test_whoever_asks_for_a_value_finds_its_row(tmp_path: Path, kind: pa.DataType, values: list[Any]) -> None:
    schema = pa.schema([pa.field("x", kind)])
    DeltaTable.create(tmp_path, Schema.from_arrow(schema))
    pq.write_table(pa.table([pa.array(values, kind)], schema=schema), tmp_path / "a.parquet")
    stats = json.dumps(statistics(kind, values))
    add = AddAction("a.parquet", (tmp_path / "a.parquet").stat().st_size, {}, 0, True, stats)
    table = DeltaTable(tmp_path)
    table.create_write_transaction([add], "append", table.schema())
    found = DeltaTable(tmp_path).to_pyarrow_table(filters=[("x", "=", pa.scalar(values[0], kind))])
    assert found.num_rows == 1


def test_bounds_and_counts_go_over_all_batches_of_a_file() -> None:
    told = statistics(pa.int32(), [5, None], [None, None], [7, 1])
    assert told == {"numRecords": 6, "minValues": {"x": 1}, "maxValues": {"x": 7}, "nullCount": {"x": 3}}


def test_a_nan_of_an_earlier_batch_is_not_forgotten() -> None:
    assert bounds(pa.float32(), [math.nan], [1.0]) == (None, None)


def test_only_the_columns_that_the_table_wants_have_statistics() -> None:
    assert statistics(pa.int32(), [1], dataSkippingNumIndexedCols="0")["nullCount"] == {}
    assert statistics(pa.int32(), [1], dataSkippingNumIndexedCols="-1")["nullCount"] == {"x": 0}


def files_by(folder: Path, *by: str, announced: list[StagedFile]) -> DeltaDataFiles:
    types = {"rate": "string", "day": "date", "id": "long"}
    fields = [{"name": n, "type": kind, "nullable": True, "metadata": {}} for n, kind in types.items()]
    layout = Layout(json.dumps({"type": "struct", "fields": fields}), by)

    def announce(coming: Iterable[StagedFile]) -> None:
        announced.extend(coming)

    plan, storage = TablePlan(str(folder), layout), DeltaFiles({}, str(folder))
    return DeltaDataFiles(plan, Role.DATA, tuple(types), storage, announce, folder=str(folder), is_split=True)


def rows(ids: list[int], rate: str | None = "a") -> pa.RecordBatch:
    days = pa.array([dt.date(2026, 1, 1)] * len(ids))
    return pa.record_batch(
        {"rate": pa.array([rate] * len(ids), pa.string()), "day": days, "id": pa.array(ids)}
    )


def test_each_partition_has_files_of_its_own_without_its_columns(tmp_path: Path) -> None:
    files = files_by(tmp_path, "rate", "day", announced=[])
    for number, rate in enumerate(["a", None, "ü /%=", "a"]):
        files.take(rows([number], rate))
    written = {file.partition: file for file in files.close()}
    assert set(written) == {(rate, "2026-01-01") for rate in ("a", None, "ü /%=")}
    assert pq.read_table(written["a", "2026-01-01"].path).to_pylist() == [{"id": 0}, {"id": 3}]
    assert all(Path(file.path).stat().st_size == file.size_bytes for file in written.values())


def test_no_more_files_are_open_than_the_limit_and_no_row_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_files, "OPEN_FILES_MAX", 4)
    monkeypatch.setattr(data_files, "ROW_GROUP_BYTES", 1)
    announced: list[StagedFile] = []
    files, most = files_by(tmp_path, "id", announced=announced), 0
    for first in (0, 10, 0, 10):
        files.take(rows(list(range(first, first + 10))))
        most = max(most, len(files._open))
    written = files.close()
    assert most == 4
    assert {file.path for file in written} == {file.path for file in announced}
    assert sorted(int(file.partition[0] or -1) for file in written for _ in range(file.rows)) == sorted(
        [*range(20), *range(20)]
    )
