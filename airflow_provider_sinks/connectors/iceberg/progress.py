"""The progress of a sink in the metadata of its table: a property, and the summaries of its snapshots.

The property ``sinks.progress.<sink>`` is the state: which run is in force, the newest record of each writer,
the snapshot that came with the newest record, and dead letters that are still to be published. Every change
of it is committed together with a new snapshot, in whose summary the record stands again. Each is there for
what happens to the other:

- ``expire_snapshots`` removes snapshots, and their summaries with them; the property stays.
- A roll-back to an older snapshot, and ``CREATE OR REPLACE``, take rows away and leave all properties. So the
  state names its snapshot, and :func:`standing` looks whether the table still stands on it.
- Somebody who removes the property leaves the summaries, from which it is read again: records from those that
  have them, all else from the newest one.

Why a new snapshot with each change, also where there is no row: REST catalogs compare the table's current
snapshot, and nothing else that a run could change by fencing. See :meth:`.catalog.TableCatalog.commit`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_provider_sinks.connectors.table_format.state import (
    VERSION,
    Place,
    Standing,
    State,
    dump,
    key_of,
    plain,
    plain_pending,
    read_pending,
    read_record,
)
from airflow_provider_sinks.core.progress.record import Format, ProgressFormatError, ProgressRecord, WriterId

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot


def summary(
    sink: str, state: State, writer: WriterId = "", record: ProgressRecord | None = None
) -> dict[str, str]:
    """Return what the summary of a snapshot says: who made it, with which record, and what goes on with it.

    Each snapshot has one, so a record that stands there stands there once.
    """
    said: dict[str, Any] = {"v": VERSION, "run": state.run}
    if record is not None:
        said |= {"writer": writer, "record": plain(record)}
    if state.lacks:
        said["lacks"] = state.lacks
    if state.pending is not None:
        pending = plain_pending(state.pending)
        said["pending"] = {k: v for k, v in pending.items() if k != "record" or v != said.get("record")}
    return {key_of(sink): dump(said)}


def read(metadata: TableMetadata, sink: str) -> State | None:
    """Return the progress of a sink in a table; nothing where there is none.

    :raises ProgressFormatError: something else stands in its place.
    """
    text = metadata.properties.get(key_of(sink))
    return State.decode(text) if text is not None else _from_summaries(metadata, sink)


def standing(metadata: TableMetadata, place: Place | None) -> Standing:
    """Say whether a table stands on a snapshot: walk back from the current one, until that is told.

    Numbers fall on the way. Below the snapshot's own it cannot come any more. A snapshot without a parent is
    where somebody began anew, or the oldest that was not expired: PyIceberg, unlike others, then forgets the
    parent. That the snapshot asked for is still there tells them apart.
    """
    at = metadata.current_snapshot()
    if place is None or (at is not None and at.snapshot_id == place.snapshot):
        return Standing.ON_IT
    known = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
    while at is not None and (at.sequence_number or 0) > place.sequence:
        if at.parent_snapshot_id is None and place.snapshot in known:
            return Standing.LEFT
        if at.parent_snapshot_id not in known:
            return Standing.EXPIRED
        at = known[at.parent_snapshot_id]
    return Standing.ON_IT if at is not None and at.snapshot_id == place.snapshot else Standing.LEFT


def said_by(snapshot: Snapshot, sink: str) -> Mapping[str, Any] | None:
    """Return what the summary of a snapshot says about a sink, if it does.

    :raises ProgressFormatError: it says something else.
    """
    text = snapshot.summary.get(key_of(sink)) if snapshot.summary is not None else None
    if text is None:
        return None
    try:
        found = json.loads(text)
        return {**found, "run": str(found["run"])}
    except (ValueError, KeyError, TypeError) as error:
        raise ProgressFormatError(Format.GARBAGE, f"{type(error).__name__}: {error}") from error


def records_of_snapshots(metadata: TableMetadata, sink: str) -> list[tuple[WriterId, ProgressRecord]]:
    """Return the records of all snapshots that were not expired, with their writers, oldest first."""
    found: list[tuple[WriterId, ProgressRecord]] = []
    for snapshot in sorted(metadata.snapshots, key=lambda one: one.sequence_number or 0):
        with suppress(ProgressFormatError):
            said = said_by(snapshot, sink)
            if said is not None and "record" in said:
                found.append((str(said["writer"]), read_record(said["record"])))
    return found


def _begun(said: Mapping[str, Any]) -> State:
    """Return what the newest summary says beside its record.

    :raises ProgressFormatError: it says something else.
    """
    try:
        pending = said.get("pending")
        return State(
            said["run"],
            lacks=int(said.get("lacks", 0)),
            pending=read_pending({"record": said.get("record"), **pending}) if pending else None,
        )
    except ProgressFormatError:
        raise
    except (ValueError, KeyError, TypeError) as error:
        raise ProgressFormatError(Format.GARBAGE, f"{type(error).__name__}: {error}") from error


def _from_summaries(metadata: TableMetadata, sink: str) -> State | None:
    """Put the state together from the snapshots that the table stands on, newest first."""
    known = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
    state: State | None = None
    at = metadata.current_snapshot()
    while at is not None:
        said = said_by(at, sink)
        if said is not None:
            state = state or _begun(said)
            if "record" in said and said["writer"] not in state.records:
                records = {**state.records, said["writer"]: read_record(said["record"])}
                place = state.at or Place(at.snapshot_id, at.sequence_number or 0)
                state = replace(state, records=records, at=place)
        at = known.get(at.parent_snapshot_id) if at.parent_snapshot_id is not None else None
    return state
