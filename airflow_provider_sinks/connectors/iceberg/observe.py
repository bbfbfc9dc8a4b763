"""What is seen of a sink's tables: facts, without judgement. Changes nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_provider_sinks.connectors.iceberg.catalog import FORMAT_VERSION, TableCatalog
from airflow_provider_sinks.connectors.iceberg.layout import (
    OTHER_FILES,
    REWRITE_OTHER_FILES,
    WHY_OTHER_FILES,
    has_other_files,
)
from airflow_provider_sinks.connectors.iceberg.progress import read, standing
from airflow_provider_sinks.connectors.iceberg.types import columns_of
from airflow_provider_sinks.connectors.table_format.errors import HiddenError, MissingError
from airflow_provider_sinks.connectors.table_format.letters import unfit_for_letters
from airflow_provider_sinks.connectors.table_format.stage import answering
from airflow_provider_sinks.connectors.table_format.state import State, flawed
from airflow_provider_sinks.connectors.table_format.state import identity as state_identity
from airflow_provider_sinks.core.decision.facts import Existence, ResourceFacts, Role, Unfit
from airflow_provider_sinks.core.progress.history import NO_HISTORY, History
from airflow_provider_sinks.core.progress.identity import ResourceKind
from airflow_provider_sinks.core.progress.record import ProgressFormatError

if TYPE_CHECKING:
    from pyiceberg.table import Table

_UNREACHED = Unfit(OTHER_FILES, WHY_OTHER_FILES, REWRITE_OTHER_FILES)
_RECORDS, _SIZE = "total-records", "total-files-size"


def look(catalog: TableCatalog, name: str, sink: str, role: Role) -> tuple[ResourceFacts, Table | None]:
    """Return which table it is now, and whether it can be written; and the table, where it could be loaded.

    :raises UnavailableError: the catalog did not answer.
    """
    facts = ResourceFacts(name, Existence.UNKNOWN, kind=ResourceKind.TABLE)
    try:
        facts = replace(facts, system=catalog.system())
        table = catalog.load(name)
    except MissingError:
        return replace(facts, existence=Existence.MISSING), None
    except HiddenError as error:
        return replace(facts, reason=str(error)), None
    unfit = _unfit(table, role)
    found = replace(
        facts,
        existence=Existence.PRESENT,
        id=identity(table, sink),
        size_bytes=size_bytes(table),
        unfit=unfit,
    )
    return found, table


def with_other_files(facts: ResourceFacts, table: Table) -> ResourceFacts:
    """Return a table that an upsert writes as unfit where it has files that no delete of it reaches.

    :raises UnavailableError: the storage did not answer.
    """
    with answering(table.location()):
        is_unfit = facts.unfit is None and has_other_files(table)
    return replace(facts, unfit=_UNREACHED) if is_unfit else facts


def identity(table: Table, sink: str) -> str:
    """Return which table it is: its uuid, and what of ours is not in it any more."""
    uuid = str(table.metadata.table_uuid)
    try:
        state = read(table.metadata, sink)
    except ProgressFormatError:
        return uuid
    return state_identity(uuid, state, standing(table.metadata, state.at if state else None))


def history(table: Table | None, sink: str) -> History:
    """Return the progress that stands in a table."""
    if table is None:
        return NO_HISTORY
    try:
        state: State | None = read(table.metadata, sink)
    except ProgressFormatError as error:
        return flawed(error)
    return state.history if state is not None else NO_HISTORY


def progress_place(data: ResourceFacts, table: Table | None) -> ResourceFacts:
    """Return the place of the progress: the data table, whatever became of its rows."""
    uuid = str(table.metadata.table_uuid) if table is not None else ""
    return replace(data, id=uuid, unfit=None, size_bytes=0)


def size_bytes(table: Table) -> int:
    """Return how large the files of a table are; 0 only where it certainly has no row."""
    snapshot = table.metadata.current_snapshot()
    if snapshot is None or snapshot.summary is None:
        return 0
    if snapshot.summary.get(_RECORDS) == "0":
        return 0
    return int(snapshot.summary.get(_SIZE) or 1)


def _unfit(table: Table, role: Role) -> Unfit | None:
    version = table.metadata.format_version
    if version != FORMAT_VERSION:
        return Unfit(
            f"is of format version {version}",
            "Version 1 has no sequence numbers, by which a commit is fenced; newer ones are not written yet.",
            "ALTER TABLE ... SET TBLPROPERTIES ('format-version' = '2')"
            if version < FORMAT_VERSION
            else "Make a table of format version 2.",
        )
    if role is not Role.DEAD_LETTER:
        return None
    schema = table.schema()
    by = [str(schema.find_column_name(field.source_id)) for field in table.spec().fields]
    return unfit_for_letters(columns_of(schema), by, "ALTER TABLE ... DROP PARTITION FIELD")
