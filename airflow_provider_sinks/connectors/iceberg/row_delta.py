"""A snapshot that adds rows and deletes older ones by their keys, which PyIceberg does not write yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyiceberg.io import FileIO
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriterV2,
)
from pyiceberg.schema import Schema
from pyiceberg.table import Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update.snapshot import _MergeAppendFiles
from pyiceberg.typedef import TableVersion
from pyiceberg.types import IntegerType, ListType, NestedField, StructType

_EQUALITY_IDS = 135


class _DeleteManifestWriter(ManifestWriterV2):
    """Writes a manifest of files that delete.

    PyIceberg has the ids of columns as numbers of eight bytes in its manifests. The format has four, and
    Iceberg's own readers fail on any other.
    """

    def _with_partition(self, format_version: TableVersion) -> Schema:
        entry = super()._with_partition(format_version)
        file = next(field for field in entry.fields if field.name == "data_file")
        assert isinstance(file.field_type, StructType)  # noqa: S101  it is the format's own
        fields = [_of_four_bytes(field) for field in file.field_type.fields]
        mended = file.model_copy(update={"field_type": StructType(*fields)})
        return Schema(*(mended if field is file else field for field in entry.fields))

    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


class OneSnapshot(Transaction):
    """A change of a table that is one snapshot, put together from the table as it was loaded.

    PyIceberg copies all metadata each time that a transaction is asked for them: a dozen times for a
    snapshot, and they grow with each.

    It also lists all new files as files of the newest partitioning. Dead letters may have been staged before
    somebody changed that of their table.
    """

    spec_id: int | None = None
    """The partitioning of the files that are added; ``None``: the table's own."""

    @property
    def table_metadata(self) -> TableMetadata:
        """The metadata as they were loaded: nothing is asked for once there is an update."""
        if self._updates:
            return super().table_metadata
        loaded = self._table.metadata
        if self.spec_id in (None, loaded.default_spec_id):
            return loaded
        return loaded.model_copy(update={"default_spec_id": self.spec_id})


def _of_four_bytes(field: NestedField) -> NestedField:
    if field.field_id != _EQUALITY_IDS:
        return field
    ids = ListType(element_id=136, element_type=IntegerType(), element_required=True)
    return field.model_copy(update={"field_type": ids})


class RowDelta(_MergeAppendFiles):
    """One snapshot on top of the current one.

    Files that delete share its sequence number: they delete older rows, and none that come with them.
    Manifests of rows are merged where the table's own properties say so.
    """

    def __init__(self, transaction: Transaction, io: FileIO) -> None:
        super().__init__(operation=Operation.APPEND, transaction=transaction, io=io)

    def add(self, files: Sequence[DataFile], summary: Mapping[str, str]) -> None:
        """Put the snapshot together, with what its summary says."""
        self.snapshot_properties = dict(summary)
        self._added_data_files = list(files)
        if self._deleting:
            self._operation = Operation.OVERWRITE
        self.commit()

    @property
    def _deleting(self) -> list[DataFile]:
        return [file for file in self._added_data_files if file.content is not DataFileContent.DATA]

    def _manifests(self) -> list[ManifestFile]:
        added, deleting = self._added_data_files, self._deleting
        self._added_data_files = [file for file in added if file.content is DataFileContent.DATA]
        try:
            found = super()._manifests()
        finally:
            self._added_data_files = added
        return [*found, self._delete_manifest(deleting)] if deleting else found

    def _delete_manifest(self, files: Sequence[DataFile]) -> ManifestFile:
        metadata = self._transaction.table_metadata
        writer = _DeleteManifestWriter(
            metadata.spec(),
            metadata.schema(),
            self.new_manifest_output(),
            self._snapshot_id,
            self._compression,
        )
        with writer:
            for file in files:
                writer.add(
                    ManifestEntry.from_args(
                        status=ManifestEntryStatus.ADDED,
                        snapshot_id=self._snapshot_id,
                        sequence_number=None,
                        file_sequence_number=None,
                        data_file=file,
                    )
                )
        return writer.to_manifest_file()
