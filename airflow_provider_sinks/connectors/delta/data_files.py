"""Data files of a Delta table, with what a commit says of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from airflow_provider_sinks.connectors.delta.layout import PARTITIONED_BY, TablePlan
from airflow_provider_sinks.connectors.delta.statistics import Statistics
from airflow_provider_sinks.connectors.delta.storage import DeltaFiles
from airflow_provider_sinks.connectors.rows import DELETED
from airflow_provider_sinks.connectors.table_format.data_files import Announce, DataFiles, Part
from airflow_provider_sinks.connectors.table_format.stage import StagedFile, new_name
from airflow_provider_sinks.connectors.table_format.types import SparkType
from airflow_provider_sinks.core.decision.facts import Role

STATISTICS = "json"
"""Under which name a staged file has its statistics."""
_FILE_BYTES_DEFAULT = 512 * 1024 * 1024
_ROW = "__sinks_row"
_ARROW: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}


class _File:
    """A file that is being written, and its statistics."""

    def __init__(self, files: DeltaFiles, path: str, schema: pa.Schema, statistics: Statistics) -> None:
        files.make_folder(path)
        system, place = files.place(path)
        self._writer = pq.ParquetWriter(place, schema, filesystem=system)
        self.statistics = statistics

    def write(self, rows: pa.Table) -> None:
        self._writer.write_table(rows)
        self.statistics.take(rows)

    def close(self) -> None:
        self._writer.close()


class DeltaDataFiles(DataFiles[_File]):
    """The files of one writer for one table in one epoch.

    :param columns: those of the table that are written, in the order of the batches.
    :param files: the storage.
    :param folder: where the files lie.
    :param is_split: each file is of one partition, of whose columns it has none; else it is no part of the
        table, and has all columns.
    """

    def __init__(
        self,
        plan: TablePlan,
        role: Role,
        columns: Sequence[str],
        files: DeltaFiles,
        announce: Announce,
        *,
        folder: str,
        is_split: bool,
    ) -> None:
        types: dict[str, SparkType] = {field["name"]: field["type"] for field in plan.layout.fields}
        types[DELETED] = "boolean"
        self._by = plan.layout.partitioned_by if is_split else ()
        is_of_letters = role is Role.DEAD_LETTER
        self._begun = {PARTITIONED_BY: list(self._by)} if is_of_letters else {}
        self._whole = pa.schema([pa.field(name, arrow_type(types[name])) for name in columns])
        self._plan, self._role, self._files, self._folder = plan, role, files, folder
        schema = pa.schema([field for field in self._whole if field.name not in self._by])
        super().__init__(columns, schema, announce, _FILE_BYTES_DEFAULT)

    def _parts(self, rows: pa.Table) -> list[Part]:
        if not self._by:
            return [Part(None, (), rows)]
        keys = rows.select(list(self._by))
        numbered = keys.append_column(_ROW, pa.array(range(rows.num_rows), pa.int64()))
        found = numbered.group_by(list(self._by), use_threads=False).aggregate([(_ROW, "list")])
        texts = [found.column(name).cast(pa.string()).to_pylist() for name in self._by]
        partitions = list(zip(*texts, strict=True))
        rest = rows.drop_columns(list(self._by))
        return [
            Part(partition, partition, rest.take(pc.list_flatten(pa.array([numbers]))))
            for partition, numbers in zip(partitions, found.column(f"{_ROW}_list").to_pylist(), strict=True)
        ]

    def _new_file(self, partition: tuple[str | None, ...]) -> StagedFile:
        path = f"{self._folder}/sinks-{new_name()}.parquet"
        return StagedFile(self._role, path, partition=partition, layout=self._begun)

    def _writer(self, file: StagedFile) -> _File:
        statistics = Statistics.of(self._in_file, self._plan.properties)
        return _File(self._files, file.path, self._in_file, statistics)

    def _finished(self, file: StagedFile, writer: _File) -> StagedFile:
        writer.close()
        found = writer.statistics
        size_bytes = self._files.size(file.path) or 0
        more: dict[str, Any] = {STATISTICS: json.loads(found.to_json())}
        return replace(file, size_bytes=size_bytes, rows=found.rows, statistics=more)

    def _delete(self, path: str) -> None:
        self._files.delete(path)


def arrow_type(given: SparkType) -> pa.DataType:
    """Return Arrow's type of a column, as Spark sends it."""
    if isinstance(given, str):
        if given.startswith("decimal"):
            precision, scale = given.removeprefix("decimal(").removesuffix(")").split(",")
            return pa.decimal128(int(precision), int(scale))
        return _ARROW[given]
    match given["type"]:
        case "struct":
            return pa.struct([pa.field(one["name"], arrow_type(one["type"])) for one in given["fields"]])
        case "array":
            return pa.list_(arrow_type(given["elementType"]))
    return pa.map_(arrow_type(given["keyType"]), arrow_type(given["valueType"]))
