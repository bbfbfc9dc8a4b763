"""Data files of an Iceberg table, with what its manifests say of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from pyiceberg.conversions import to_bytes
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import ParquetFormatWriter, _determine_partitions, schema_to_pyarrow
from pyiceberg.partitioning import PartitionKey, PartitionSpec
from pyiceberg.schema import Schema, sanitize_column_names
from pyiceberg.table.locations import load_location_provider
from pyiceberg.typedef import Record

from airflow_provider_sinks.connectors.iceberg.layout import TablePlan, letters_layout
from airflow_provider_sinks.connectors.iceberg.types import field_of
from airflow_provider_sinks.connectors.table_format.data_files import Announce, DataFiles, Part
from airflow_provider_sinks.connectors.table_format.stage import StagedFile, encoded, new_name
from airflow_provider_sinks.connectors.table_format.typed_columns import small_schema
from airflow_provider_sinks.core.decision.facts import Role

_FILE_BYTES_DEFAULT = 512 * 1024 * 1024
_FILE_BYTES = "write.target-file-size-bytes"


class IcebergDataFiles(DataFiles[ParquetFormatWriter]):
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
        announce: Announce,
        *,
        is_of_keys: bool = False,
    ) -> None:
        self._schema, self._spec = plan.layout.read()
        written = Schema(*(field_of(self._schema, name) for name in columns))
        self._sanitized = sanitize_column_names(written)
        self._plan, self._role, self._io = plan, role, io
        self._equality_ids = tuple(field.field_id for field in written.fields) if is_of_keys else ()
        is_of_letters = role is Role.DEAD_LETTER
        self._layout = (
            letters_layout(self._schema, self._spec, columns, plan.location) if is_of_letters else {}
        )
        self._places = load_location_provider(plan.location, dict(plan.properties))
        limit_bytes = int(plan.properties.get(_FILE_BYTES, _FILE_BYTES_DEFAULT))
        in_file = small_schema(schema_to_pyarrow(self._sanitized))
        super().__init__([field.name for field in written.fields], in_file, announce, limit_bytes)

    def _parts(self, rows: pa.Table) -> list[Part]:
        if self._spec.is_unpartitioned():
            return [Part(None, None, rows)]
        found = _determine_partitions(self._spec, self._schema, rows)
        return [
            Part(part.partition_key.partition, part.partition_key, part.arrow_table_partition)
            for part in found
        ]

    def _new_file(self, partition: PartitionKey | None) -> StagedFile:
        path = self._places.new_data_location(f"sinks-{new_name()}.parquet", partition)
        values = _encoded(partition, self._spec, self._schema) if partition else ()
        return StagedFile(
            self._role,
            path,
            spec_id=self._plan.spec_id,
            partition=values,
            equality_ids=self._equality_ids,
            layout=self._layout,
        )

    def _writer(self, file: StagedFile) -> ParquetFormatWriter:
        output = self._io.new_output(file.path)
        return ParquetFormatWriter(output, self._sanitized, dict(self._plan.properties))

    def _finished(self, file: StagedFile, writer: ParquetFormatWriter) -> StagedFile:
        found = writer.close().to_serialized_dict()
        rows = int(found.pop("record_count"))
        for name in ("lower_bounds", "upper_bounds"):
            found[name] = {number: encoded(value) for number, value in found[name].items()}
        size_bytes = len(self._io.new_input(file.path))
        return replace(file, size_bytes=size_bytes, rows=rows, statistics=found)

    def _delete(self, path: str) -> None:
        self._io.delete(path)


def _encoded(partition: PartitionKey, spec: PartitionSpec, schema: Schema) -> tuple[str | None, ...]:
    values: Record = partition.partition
    types = [field.field_type for field in spec.partition_type(schema).fields]
    return tuple(
        None if values[index] is None else encoded(to_bytes(kind, values[index]))  # type: ignore[arg-type]
        for index, kind in enumerate(types)
    )
