"""What a writer has staged for an Iceberg table: where it lies, and what it is to the table's manifests."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from airflow_provider_sinks.connectors.iceberg.layout import demand_same
from airflow_provider_sinks.connectors.table_format.stage import StagedFile

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table.metadata import TableMetadata

    from airflow_provider_sinks.connectors.iceberg.file_io import BoundFileIO

FOLDER: Final = "sinks-staged"
"""Beside the table's own folders."""
_PIECE_BYTES = 8 * 1024 * 1024
_STATISTICS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts")
_BOUNDS = ("lower_bounds", "upper_bounds")


class IcebergFiles:
    """See :class:`.stage.Files`.

    :param properties: how to reach the storage; may hold secrets.
    """

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = dict(properties)
        self._io: BoundFileIO | None = None

    @property
    def io(self) -> BoundFileIO:
        """What reads and writes the files; made at the first use, in each process."""
        if self._io is None:
            from airflow_provider_sinks.connectors.iceberg.file_io import BoundFileIO

            self._io = BoundFileIO(self._properties)
        return self._io

    def write(self, path: str, data: bytes) -> None:
        """Write a file, in the place of an earlier one."""
        with self.io.new_output(path).create(True) as out:
            out.write(data)

    def read(self, path: str) -> bytes:
        """Return what is in a file."""
        with self.io.new_input(path).open() as source:
            return source.read()

    def copy(self, path: str, to: str) -> None:
        """Copy a file piece by piece, in the place of an earlier one.

        :raises FileNotFoundError: there is none.
        """
        with self.io.new_input(path).open() as source, self.io.new_output(to).create(True) as out:
            shutil.copyfileobj(source, out, _PIECE_BYTES)

    def size(self, path: str) -> int | None:
        """Return how large a file is."""
        found = self.io.new_input(path)
        return len(found) if found.exists() else None

    def delete(self, path: str) -> None:
        """Remove a file."""
        self.io.delete(path)

    def below(self, folder: str) -> list[str]:
        """Return the paths of all files below a folder."""
        from pyarrow.fs import FileSelector, FileType

        io = self.io
        scheme, netloc, path = io.parse_location(folder, io.properties)
        selector = FileSelector(path, allow_not_found=True, recursive=True)
        found = io.fs_by_scheme(scheme, netloc).get_file_info(selector)
        return [info.path for info in found if info.type is FileType.File]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_io": None}


def data_file(staged: StagedFile, metadata: TableMetadata) -> DataFile:
    """Return a staged file as a manifest of its table has it.

    :raises ElsewhereError: it is of dead letters, and the table has other columns, or lies elsewhere.
    :raises KeyError: the table does not have that partitioning.
    :raises ValueError: it has another one of that number.
    """
    from pyiceberg.conversions import from_bytes
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    demand_same(metadata, staged.spec_id, staged.layout)
    spec = metadata.specs()[staged.spec_id]
    types = [field.field_type for field in spec.partition_type(metadata.schema()).fields]
    values: list[Any] = [
        None if text is None else from_bytes(kind, base64.b64decode(text))  # type: ignore[arg-type]
        for kind, text in zip(types, staged.partition, strict=True)
    ]
    counts: dict[str, Any] = {name: _by_id(staged.statistics.get(name, {})) for name in _STATISTICS}
    bounds: dict[str, Any] = {
        name: {
            number: base64.b64decode(text) for number, text in _by_id(staged.statistics.get(name, {})).items()
        }
        for name in _BOUNDS
    }
    made = DataFile.from_args(
        content=DataFileContent.EQUALITY_DELETES if staged.equality_ids else DataFileContent.DATA,
        file_path=staged.path,
        file_format=FileFormat.PARQUET,
        partition=Record(*values),
        record_count=staged.rows,
        file_size_in_bytes=staged.size_bytes,
        split_offsets=staged.statistics.get("split_offsets"),
        equality_ids=list(staged.equality_ids) or None,
        key_metadata=None,
        sort_order_id=None,
        **counts,
        **bounds,
    )
    made.spec_id = staged.spec_id
    return made


def _by_id(found: Mapping[str, Any]) -> dict[int, Any]:
    return {int(number): value for number, value in found.items()}
