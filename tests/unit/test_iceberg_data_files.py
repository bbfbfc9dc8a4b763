"""Data files as a writer makes them: every row in one of them, and not more of them open than is sound."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DoubleType, LongType, NestedField

from airflow_provider_sinks.connectors.iceberg.data_files import IcebergDataFiles
from airflow_provider_sinks.connectors.iceberg.layout import Layout, TablePlan
from airflow_provider_sinks.connectors.table_format import data_files
from airflow_provider_sinks.connectors.table_format.stage import StagedFile
from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.errors import RefusedError

SCHEMA = Schema(NestedField(1, "rate", DoubleType()), NestedField(2, "id", LongType()))


def files_by(column: int, folder: Path, announced: list[StagedFile]) -> IcebergDataFiles:
    spec = PartitionSpec(PartitionField(column, 1000, IdentityTransform(), "by"))
    layout = Layout(SCHEMA.model_dump_json(), spec.model_dump_json())
    plan = TablePlan(folder.as_uri(), layout)

    def announce(coming: Iterable[StagedFile]) -> None:
        announced.extend(coming)

    return IcebergDataFiles(plan, Role.DATA, ("rate", "id"), PyArrowFileIO(), announce)


def rows(rates: list[float | None], ids: list[int]) -> pa.RecordBatch:
    return pa.record_batch({"rate": pa.array(rates, pa.float64()), "id": pa.array(ids, pa.int64())})


@pytest.mark.parametrize("rates", [[1.0, float("nan"), float("nan")], [1.0, 0.0, -0.0]])
def test_rows_that_fall_into_no_partition_or_two_are_not_written(tmp_path: Path, rates: list[Any]) -> None:
    files = files_by(1, tmp_path, [])
    files.take(rows(rates, [1, 2, 3]))
    with pytest.raises(RefusedError, match="3 rows fell into partitions with"):
        files.close()


def test_no_more_files_are_open_than_the_limit_and_no_row_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_files, "OPEN_FILES_MAX", 4)
    monkeypatch.setattr(data_files, "ROW_GROUP_BYTES", 1)
    announced: list[StagedFile] = []
    files, most = files_by(2, tmp_path, announced), 0
    for _ in range(2):
        for first in range(0, 20, 10):
            ids = list(range(first, first + 10))
            files.take(rows([None] * 10, ids))
            most = max(most, len(files._open))
    written = files.close()
    assert most == 4
    assert {file.path for file in written} == {file.path for file in announced}
    found = [pq.read_table(file.path.removeprefix("file://")).column("id").to_pylist() for file in written]
    assert sorted(one for ids in found for one in ids) == sorted([*range(20), *range(20)])
    assert all(len(ids) == file.rows for ids, file in zip(found, written, strict=True))
