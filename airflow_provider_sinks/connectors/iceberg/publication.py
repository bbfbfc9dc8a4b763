"""One change of a table: data files, the progress, and the summary, as one snapshot that is committed once.

The catalog compares the current snapshot with the one that the change was put together on. Where somebody
else was first (another writer, a compaction, a newer start of the sink) the table is loaded and judged again,
as if it were the first time. Data files stay the same; the lists of them are written anew.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_provider_sinks.connectors.iceberg.catalog import TableCatalog
from airflow_provider_sinks.connectors.iceberg.catalog_errors import OvertakenError
from airflow_provider_sinks.connectors.iceberg.progress import Place, State, key_of, read
from airflow_provider_sinks.core.errors import UnavailableError

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

    from airflow_provider_sinks.connectors.iceberg.row_delta import OneSnapshot

_ATTEMPTS = 30
_AGAIN_SECONDS = 0.05
_AGAIN_SECONDS_MAX = 2.0


@dataclass(frozen=True)
class Change:
    """What becomes of a table.

    :param state: the progress that is committed.
    :param summary: what the snapshot says of it.
    :param files: that become part of the table, all of one partitioning; those of keys delete older rows.
    """

    state: State
    summary: Mapping[str, str]
    files: Sequence[DataFile] = field(default=(), repr=False)


Judge = Callable[["Table", "State | None", Place], "Change | None"]
"""Is given a table as it was just loaded, its progress, and the place of the snapshot to come; returns the
change, or nothing where there is nothing to do. Raises what forbids it."""


def publish(catalog: TableCatalog, name: str, sink: str, judge: Judge) -> bool:
    """Change a table; False where there was nothing to do.

    :param name: of the table.
    :raises MissingError: there is no such table.
    :raises InDoubtError: no answer.
    :raises ProgressFormatError: the progress in it cannot be read.
    :raises UnavailableError: others are first again and again.
    """
    given_up: tuple[Table, Snapshot] | None = None
    for attempt in range(_ATTEMPTS):
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
            wait = min(_AGAIN_SECONDS * 2**attempt, _AGAIN_SECONDS_MAX)
            time.sleep(wait * random.uniform(0.5, 1))  # noqa: S311  so that two do not meet again
        else:
            return True
    raise UnavailableError(
        f'table "{name}" could not be changed: others were first {_ATTEMPTS} times',
        "Each time its current snapshot was another one when the change was to be committed.",
        "See who else writes to it so often, and let them, or the sink, commit less often.",
    )


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

    from airflow_provider_sinks.connectors.iceberg.stage import answering

    changes.transaction.spec_id = next((file.spec_id for file in change.files), None)
    with answering(table.location()):
        changes.producer.add(change.files, change.summary)
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
