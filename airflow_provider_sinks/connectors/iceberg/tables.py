"""Iceberg tables, as a run of a sink changes them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, cast

from airflow_provider_sinks.connectors.iceberg.catalog import TableCatalog
from airflow_provider_sinks.connectors.iceberg.factory import IcebergWriterFactory
from airflow_provider_sinks.connectors.iceberg.layout import (
    Layout,
    TablePlan,
    demand_own_files,
    demand_unaltered,
    is_at,
    moved_to,
)
from airflow_provider_sinks.connectors.iceberg.progress import read, standing
from airflow_provider_sinks.connectors.iceberg.publication import publish
from airflow_provider_sinks.connectors.iceberg.spec import IcebergTarget
from airflow_provider_sinks.connectors.iceberg.staged_files import FOLDER, IcebergFiles, data_file
from airflow_provider_sinks.connectors.table_format.fit import written
from airflow_provider_sinks.connectors.table_format.format import Judge, TableFormat
from airflow_provider_sinks.connectors.table_format.letters import letter_columns
from airflow_provider_sinks.connectors.table_format.spec import Mode
from airflow_provider_sinks.connectors.table_format.stage import Copy, StagedFile, StageFolder, new_name
from airflow_provider_sinks.connectors.table_format.state import Place, Standing, State
from airflow_provider_sinks.connectors.table_format.sweep import elsewhere
from airflow_provider_sinks.core.dead_letters.letter import Circumstances

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table

_PLACES = ("write.data.path", "write.object-storage.path")
"""Properties of a table that name folders of its files."""


class IcebergTables(TableFormat["Table"]):
    """The tables of one sink. Safe for threads, as far as its catalog is.

    :param has_deletes: its rows say themselves whether they take their key away.
    """

    def __init__(
        self, sink: str, target: IcebergTarget, catalog: TableCatalog, *, has_deletes: bool = False
    ) -> None:
        self._sink = sink
        self._has_deletes = has_deletes
        self._target = target
        self._catalog = catalog
        self._layout: Layout | None = None
        self._columns: tuple[str, ...] = ()

    def load(self, name: str) -> Table:
        """Return a table as it is now."""
        return self._catalog.load(name)

    def state(self, table: Table) -> State | None:
        """Return the progress in its property, or in its snapshots."""
        return read(table.metadata, self._sink)

    def standing(self, table: Table, place: Place | None) -> Standing:
        """Say whether a snapshot is an ancestor of the current one."""
        return standing(table.metadata, place)

    def publish(self, name: str, judge: Judge[Table]) -> bool:
        """Change a table by one snapshot."""
        return publish(self._catalog, name, self._sink, judge)

    def added(self, table: Table, staged: Iterable[StagedFile]) -> Sequence[DataFile]:
        """Return staged files as manifests of a table have them."""
        return [data_file(file, table.metadata) for file in staged]

    def strays(self, table: Table, staged: Iterable[StagedFile]) -> Sequence[StagedFile]:
        """Return those dead letters that lie where the table was before."""
        return [file for file in staged if not is_at(file.layout, table.location())]

    def copies(self, table: Table, stages: StageFolder, staged: Sequence[StagedFile]) -> Sequence[Copy]:
        """Return dead letters of another table as copies in the folder of this one."""
        files, here = cast("IcebergFiles", stages.files), table.location()
        places, found = table.location_provider(), list[Copy]()
        for file in staged:
            path = places.new_data_location(f"sinks-{new_name()}.parquet")
            copy = replace(file, path=path, layout=moved_to(file.layout, here))
            found.append(Copy(copy, partial(files.copy, file.path, path)))
        return found

    def demand_as_begun(self, table: Table) -> None:
        """See that files mean what they meant, and that an upsert deletes in all files."""
        if self._layout is not None:
            demand_unaltered(table, self._layout, self._columns, self._sink)
        if self._target.mode is Mode.UPSERT:
            demand_own_files(table)

    def referenced(self, tables: Iterable[Table], paths: Collection[str]) -> set[str]:
        """Return which of these files any snapshot of a table has."""
        loaded, wanted = list(tables), set(paths)
        found = elsewhere(wanted, (folder for table in loaded for folder in _folders(table)))
        for table in loaded:
            seen: set[str] = set()
            for snapshot in table.metadata.snapshots:
                for manifest in snapshot.manifests(table.io):
                    if manifest.manifest_path in seen:
                        continue
                    seen.add(manifest.manifest_path)
                    entries = manifest.fetch_manifest_entry(table.io, discard_deleted=False)
                    found |= wanted & {entry.data_file.file_path for entry in entries}
        return found

    def stages(self, table: Table) -> StageFolder:
        """Return where the sink's stages lie, beside its data table."""
        folder = f"{table.location().rstrip('/')}/{FOLDER}/{self._sink}"
        return StageFolder(IcebergFiles(table.io.properties), folder)

    def factory(
        self,
        run: str,
        circumstances: Circumstances,
        columns: Sequence[str],
        data: Table,
        dead: Table | None,
    ) -> IcebergWriterFactory:
        """Return what makes writers of data files."""
        self._layout = Layout.of(data)
        given = [*columns] or [field.name for field in data.schema().fields]
        self._columns = written(given, self._target.columns)
        return IcebergWriterFactory(
            sink=self._sink,
            run=run,
            circumstances=circumstances,
            columns=self._columns,
            key=self._target.key,
            stages=self.stages(data),
            data=_plan(data),
            dead=_plan(dead) if dead is not None else None,
            letter_columns=letter_columns(dead.schema().column_names) if dead is not None else (),
            has_deletes=self._has_deletes,
        )


def _folders(table: Table) -> list[str]:
    """Return the folders that a table has its files in."""
    return [table.location(), *(table.properties[name] for name in _PLACES if name in table.properties)]


def _plan(table: Table) -> TablePlan:
    properties = {name: value for name, value in table.properties.items() if name.startswith("write.")}
    return TablePlan(table.location(), Layout.of(table), table.spec().spec_id, properties)
