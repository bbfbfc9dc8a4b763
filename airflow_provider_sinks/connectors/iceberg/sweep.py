"""What older runs staged and nobody will publish is removed; what a table has, in any snapshot, stays."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from airflow_provider_sinks.connectors.iceberg.stage import Stage, StageFolder
from airflow_provider_sinks.core.decision.facts import Role

if TYPE_CHECKING:
    from pyiceberg.table import Table


def sweep(stages: StageFolder, run: str, tables: Mapping[Role, Table], kept: Collection[str]) -> int:
    """Remove the leftovers of all runs but one, behind its fence; return how many files that were.

    :param tables: those of the sink, loaded behind the fence.
    :param kept: the names of stages that are still to be published.
    :raises UnavailableError: the storage did not answer.
    """
    left = [stage for stage in stages.leftovers(but=run) if stage.name not in kept]
    if not left:
        return 0
    live = referenced(tables.values(), {file.path for stage in left for file in stage.files})
    removed = 0
    for stage in left:
        gone = tuple(file for file in stage.files if file.path not in live)
        stages.remove(Stage(stage.name, stage.run, gone, stage.is_whole), with_files=True)
        removed += len(gone)
    return removed


def referenced(tables: Iterable[Table], paths: set[str]) -> set[str]:
    """Return which of these files any snapshot of a table has: old ones are read too, for a while."""
    found: set[str] = set()
    for table in tables:
        seen: set[str] = set()
        for snapshot in table.metadata.snapshots:
            for manifest in snapshot.manifests(table.io):
                if manifest.manifest_path in seen:
                    continue
                seen.add(manifest.manifest_path)
                entries = manifest.fetch_manifest_entry(table.io, discard_deleted=False)
                found |= paths & {entry.data_file.file_path for entry in entries}
    return found
