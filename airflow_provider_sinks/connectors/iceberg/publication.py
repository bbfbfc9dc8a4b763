"""One change of a table: data files, the progress, and the summary, as one snapshot that is committed once.

The catalog compares the current snapshot with the one that the change was put together on. Where somebody
else was first (another writer, a compaction, a newer start of the sink) the table is loaded and judged again,
as if it were the first time. Data files stay the same; the lists of them are written anew.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_sinks.connectors.iceberg.catalog import TableCatalog
from airflow_provider_sinks.connectors.iceberg.progress import read, summary
from airflow_provider_sinks.connectors.iceberg.widening import put_into
from airflow_provider_sinks.connectors.table_format.attempts import attempts
from airflow_provider_sinks.connectors.table_format.errors import OvertakenError
from airflow_provider_sinks.connectors.table_format.format import Change, Judge
from airflow_provider_sinks.connectors.table_format.stage import answering
from airflow_provider_sinks.connectors.table_format.state import Place, key_of

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

    from airflow_provider_sinks.connectors.iceberg.row_delta import OneSnapshot


def publish(catalog: TableCatalog, name: str, sink: str, judge: Judge[Table]) -> bool:
    """Change a table; False where there was nothing to do.

    :param name: of the table.
    :raises MissingError: there is no such table.
    :raises InDoubtError: no answer.
    :raises ProgressFormatError: the progress in it cannot be read.
    :raises UnavailableError: others are first again and again.
    """
    given_up: tuple[Table, Snapshot] | None = None
    for _ in attempts(name):
        table = catalog.load(name)
        if given_up is not None:
            _discard(*given_up, table)
        changes, place = _begin(table)
        change = judge(table, read(table.metadata, sink), place)
        if change is None:
            return False
        snapshot = _fill(table, changes, change, sink)
        try:
            catalog.commit(table, changes.transaction)
        except OvertakenError:
            given_up = table, snapshot
        else:
            return True
    raise AssertionError("the last attempt raises")


@dataclass(frozen=True)
class _Changes:
    """A change that is being put together."""

    transaction: OneSnapshot
    producer: Any


def _begin(table: Table) -> tuple[_Changes, Place]:
    from airflow_provider_sinks.connectors.iceberg.row_delta import OneSnapshot, RowDelta

    transaction = OneSnapshot(table, autocommit=False)
    producer = RowDelta(transaction, table.io)
    place = Place(producer.snapshot_id, table.metadata.next_sequence_number())
    return _Changes(transaction, producer), place


def _fill(table: Table, changes: _Changes, change: Change, sink: str) -> Snapshot:
    """Put a change together: files that nobody sees before the commit."""
    from pyiceberg.table.update import AddSnapshotUpdate

    changes.transaction.spec_id = next((file.spec_id for file in change.files), None)
    if change.steps:
        put_into(changes.transaction, ".".join(table.name()), change.steps)
    with answering(table.location()):
        changes.producer.add(change.files, summary(sink, change.state, change.writer, change.record))
        changes.transaction.set_properties({key_of(sink): change.state.encode()})
    updates = changes.transaction._updates  # noqa: SLF001  PyIceberg has no public word for it
    return next(update.snapshot for update in updates if isinstance(update, AddSnapshotUpdate))


def _discard(table: Table, snapshot: Snapshot, now: Table) -> None:
    """Remove the lists of a change that was not committed, unless it was after all."""
    if any(found.snapshot_id == snapshot.snapshot_id for found in now.metadata.snapshots):
        return
    with suppress(Exception):
        for manifest in snapshot.manifests(table.io):
            if manifest.added_snapshot_id == snapshot.snapshot_id:
                table.io.delete(manifest.manifest_path)
        table.io.delete(snapshot.manifest_list)
