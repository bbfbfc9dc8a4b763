"""What is seen of a sink's tables: facts, without judgement. Changes nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_provider_sinks.connectors.iceberg.catalog import FORMAT_VERSION, TableCatalog
from airflow_provider_sinks.connectors.iceberg.catalog_errors import HiddenError, MissingError
from airflow_provider_sinks.connectors.iceberg.creation import DEAD_LETTER_COLUMNS
from airflow_provider_sinks.connectors.iceberg.layout import (
    OTHER_FILES,
    REWRITE_OTHER_FILES,
    WHY_OTHER_FILES,
    has_other_files,
)
from airflow_provider_sinks.connectors.iceberg.progress import (
    Standing,
    State,
    flawed,
    read,
    standing,
)
from airflow_provider_sinks.connectors.iceberg.stage import answering
from airflow_provider_sinks.connectors.iceberg.types import columns_of, spark_kind
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
    """Return which table it is: its uuid, and what of ours is not in it any more.

    A table that was rolled back behind the newest record, or begun anew by ``CREATE OR REPLACE``, keeps its
    uuid, and is another one than that which rows were written to. A person who agrees to go on with it has
    this said by the next announcement.
    """
    uuid = str(table.metadata.table_uuid)
    try:
        state = read(table.metadata, sink)
    except ProgressFormatError:
        return uuid
    if state is None:
        return uuid
    if state.at is not None and standing(table.metadata, state.at) is Standing.LEFT:
        return f"{uuid} without snapshot {state.at.snapshot}"
    return f"{uuid} without snapshot {state.lacks}" if state.lacks else uuid


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
    return _unfit_for_dead_letters(table) if role is Role.DEAD_LETTER else None


def _unfit_for_dead_letters(table: Table) -> Unfit | None:
    columns = columns_of(table.schema())
    for name, kind in DEAD_LETTER_COLUMNS.items():
        if name not in columns or columns[name].kind != spark_kind(kind):
            found = (
                f"has no column {name}" if name not in columns else f"has {name} as {columns[name].iceberg}"
            )
            return Unfit(
                found,
                f"Dead letters have {name} as {spark_kind(kind)}.",
                "Name a table that is not there: the sink makes it.",
            )
    by = [str(table.schema().find_column_name(field.source_id)) for field in table.spec().fields]
    if foreign := [name for name in by if name not in DEAD_LETTER_COLUMNS]:
        return Unfit(
            f"is partitioned by {foreign[0]}",
            "Dead letters have no such column.",
            f"ALTER TABLE ... DROP PARTITION FIELD {foreign[0]}",
        )
    required = [c.name for c in columns.values() if c.is_required and c.name not in DEAD_LETTER_COLUMNS]
    if not required:
        return None
    return Unfit(
        f"has column {required[0]}, which takes no null",
        "Dead letters have no such column.",
        f"ALTER TABLE ... ALTER COLUMN {required[0]} DROP NOT NULL",
    )
