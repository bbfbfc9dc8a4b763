"""Data files of one table, as they are written on an executor: Parquet by Arrow, one file for each partition.

Rows are collected until they are worth a row group. So what is held at a time is one group and the open
files, of which there are at most :data:`OPEN_FILES_MAX`, however many partitions there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import pyarrow as pa
from pyiceberg.conversions import to_bytes
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import ParquetFormatWriter, _determine_partitions, schema_to_pyarrow
from pyiceberg.partitioning import PartitionKey, PartitionSpec
from pyiceberg.schema import Schema, sanitize_column_names
from pyiceberg.table.locations import load_location_provider
from pyiceberg.typedef import Record

from airflow_provider_sinks.connectors.iceberg.factory import TablePlan
from airflow_provider_sinks.connectors.iceberg.stage import StagedFile, encoded, new_name
from airflow_provider_sinks.connectors.iceberg.types import field_of
from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.errors import RefusedError

ROW_GROUP_BYTES = 32 * 1024 * 1024
"""What is collected in memory before it is written, as Arrow counts it."""
OPEN_FILES_MAX = 64
"""So many files are written at a time; for one more partition the oldest is closed."""
_FILE_BYTES_DEFAULT = 512 * 1024 * 1024
_FILE_BYTES = "write.target-file-size-bytes"


@dataclass
class _OpenFile:
    """A file that is being written."""

    staged: StagedFile
    writer: ParquetFormatWriter
    size_bytes: int = 0


class DataFiles:
    """The files of one writer for one table in one epoch.

    :param columns: those of the table that are written, in the order of the batches.
    :param announce: told of files before they are there.
    :param is_of_keys: they are of keys whose older rows are deleted.
    """

    def __init__(
        self,
        plan: TablePlan,
        role: Role,
        columns: Sequence[str],
        io: FileIO,
        announce: Callable[[Iterable[StagedFile]], None],
        *,
        is_of_keys: bool = False,
    ) -> None:
        self._schema, self._spec = plan.layout.read()
        self._written = Schema(*(field_of(self._schema, name) for name in columns))
        self._in_file = sanitize_column_names(self._written)
        self._arrow = _small_schema(schema_to_pyarrow(self._in_file))
        self._plan, self._role, self._io, self._announce = plan, role, io, announce
        self._equality_ids = tuple(f.field_id for f in self._written.fields) if is_of_keys else ()
        self._places = load_location_provider(plan.location, dict(plan.properties))
        self._limit = int(plan.properties.get(_FILE_BYTES, _FILE_BYTES_DEFAULT))
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0
        self._open: dict[Any, _OpenFile] = {}
        self._done: list[StagedFile] = []

    @property
    def files(self) -> tuple[StagedFile, ...]:
        """All files so far; those that are open are without size and statistics."""
        return (*self._done, *(one.staged for one in self._open.values()))

    def take(self, rows: pa.RecordBatch | pa.Table) -> None:
        """Take rows of exactly the columns of the table that are written, in their order."""
        batches = rows.to_batches() if isinstance(rows, pa.Table) else [rows]
        self._held += batches
        self._held_bytes += rows.nbytes
        if self._held_bytes >= ROW_GROUP_BYTES:
            self._write()

    def close(self) -> tuple[StagedFile, ...]:
        """Write the rest, and return the files, which are whole."""
        self._write()
        for key in list(self._open):
            self._finish(key)
        return self.files

    def abandon(self) -> None:
        """Remove all files. Must not raise: what stays is named by a stage."""
        for one in self._open.values():
            with suppress(Exception):
                one.writer.close()
        for file in self.files:
            with suppress(Exception):
                self._io.delete(file.path)
        self._open, self._done, self._held = {}, [], []

    def _write(self) -> None:
        if not self._held:
            return
        rows = pa.Table.from_batches(self._held)
        self._held, self._held_bytes = [], 0
        parts = self._parts(rows.rename_columns([field.name for field in self._written.fields]))
        parts.sort(key=lambda part: _key(part[0]) not in self._open)  # those before one is closed for another
        new = self._announced([partition for partition, _ in parts])
        for partition, part in parts:
            key = _key(partition)
            if key in new:
                self._begin(key, new[key])
            self._open[key].writer.write(self._typed(part))
            self._open[key].size_bytes += part.nbytes
            if self._open[key].size_bytes >= self._limit:
                self._finish(key)

    def _parts(self, rows: pa.Table) -> list[tuple[PartitionKey | None, pa.Table]]:
        if self._spec.is_unpartitioned():
            return [(None, rows)]
        found = _determine_partitions(self._spec, self._schema, rows)
        parts: list[tuple[PartitionKey | None, pa.Table]]
        parts = [(part.partition_key, part.arrow_table_partition) for part in found]
        _demand_all(rows, [part for _, part in parts])
        return parts

    def _announced(self, partitions: Iterable[PartitionKey | None]) -> dict[Any, StagedFile]:
        """Announce a file for each partition that has none open, and return them."""
        new = {_key(one): self._new_file(one) for one in partitions if _key(one) not in self._open}
        if new:
            self._announce(new.values())
        return new

    def _begin(self, key: Any, file: StagedFile) -> None:
        while len(self._open) >= OPEN_FILES_MAX:
            self._finish(next(iter(self._open)))
        output = self._io.new_output(file.path)
        writer = ParquetFormatWriter(output, self._in_file, dict(self._plan.properties))
        self._open[key] = _OpenFile(file, writer)

    def _new_file(self, partition: PartitionKey | None) -> StagedFile:
        path = self._places.new_data_location(f"sinks-{new_name()}.parquet", partition)
        values = _encoded(partition, self._spec, self._schema) if partition else ()
        return StagedFile(
            self._role,
            path,
            spec_id=self._plan.spec_id,
            partition=values,
            equality_ids=self._equality_ids,
        )

    def _finish(self, key: Any) -> None:
        one = self._open[key]
        found = one.writer.close().to_serialized_dict()
        rows = int(found.pop("record_count"))
        for name in ("lower_bounds", "upper_bounds"):
            found[name] = {number: encoded(value) for number, value in found[name].items()}
        size = len(self._io.new_input(one.staged.path))
        self._done.append(replace(one.staged, size_bytes=size, rows=rows, statistics=found))
        del self._open[key]

    def _typed(self, rows: pa.Table) -> pa.Table:
        """Return rows with the names and types of the file."""
        columns = [_as(column, field.type) for column, field in zip(rows.columns, self._arrow, strict=True)]
        return pa.Table.from_arrays(columns, schema=self._arrow)


@dataclass(frozen=True)
class _Renamed:
    """An array that is read as one of another type, which must have the same layout in memory."""

    array: pa.Array
    kind: pa.DataType

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        del requested_schema
        _, data = self.array.__arrow_c_array__()
        return self.kind.__arrow_c_schema__(), data


def _as(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Return a column as one of a type that differs in names and time zones alone.

    A cast would match the fields of a struct by their names, and give null for one that is called otherwise
    in a file.
    """
    if column.type.equals(kind, check_metadata=False):
        return column
    if not _is_laid_out_as(column.type, kind):
        return column.cast(kind) if not pa.types.is_nested(kind) else _refuse(column.type, kind)
    return pa.chunked_array([pa.array(_Renamed(chunk, kind)) for chunk in column.chunks], kind)


def _is_laid_out_as(one: pa.DataType, other: pa.DataType) -> bool:
    if pa.types.is_timestamp(one) and pa.types.is_timestamp(other):
        return one.unit == other.unit and (one.tz is None) == (other.tz is None)
    if one.id != other.id or not pa.types.is_nested(one):
        return bool(one.equals(other, check_metadata=False))
    return one.num_fields == other.num_fields and all(
        _is_laid_out_as(one.field(index).type, other.field(index).type) for index in range(one.num_fields)
    )


def _refuse(given: pa.DataType, wanted: pa.DataType) -> NoReturn:
    raise TypeError(f"{given} is not laid out as {wanted}")


def _demand_all(rows: pa.Table, parts: Iterable[pa.Table]) -> None:
    """See that each row is in one part.

    :raises RefusedError: PyIceberg finds the rows of a partition by ``==``, which some values are not.
    """
    count = sum(part.num_rows for part in parts)
    if count != rows.num_rows:
        raise RefusedError(
            f"{rows.num_rows} rows fell into partitions with {count} rows",
            "A value of the partitioning does not equal itself, or equals another one.",
            "Partition the table by another column.",
        )


def _key(partition: PartitionKey | None) -> Any:
    return partition.partition if partition is not None else None


def _encoded(partition: PartitionKey, spec: PartitionSpec, schema: Schema) -> tuple[str | None, ...]:
    values: Record = partition.partition
    types = [field.field_type for field in spec.partition_type(schema).fields]
    return tuple(
        None if values[index] is None else encoded(to_bytes(kind, values[index]))  # type: ignore[arg-type]
        for index, kind in enumerate(types)
    )


def _small_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([_small(field) for field in schema])


def _small(field: pa.Field) -> pa.Field:
    """Return a field with the types that Spark sends: PyIceberg's have offsets of eight bytes."""
    kind = field.type
    if pa.types.is_large_string(kind):
        kind = pa.string()
    elif pa.types.is_large_binary(kind):
        kind = pa.binary()
    elif pa.types.is_large_list(kind):
        kind = pa.list_(_small(kind.value_field))
    elif pa.types.is_struct(kind):
        kind = pa.struct([_small(kind.field(index)) for index in range(kind.num_fields)])
    elif pa.types.is_map(kind):
        kind = pa.map_(_small(kind.key_field), _small(kind.item_field))
    return field.with_type(kind)
