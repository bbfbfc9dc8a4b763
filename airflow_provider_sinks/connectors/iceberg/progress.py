"""The progress of a sink in the metadata of its table: a property, and the summaries of its snapshots.

The property ``sinks.progress.<sink>`` is the state: which run is in force, the newest record of each writer,
the snapshot that came with the newest record, and dead letters that are still to be published. Every change
of it is committed together with a new snapshot, in whose summary the record stands again. Each is there for
what happens to the other:

- ``expire_snapshots`` removes snapshots, and their summaries with them; the property stays.
- A roll-back to an older snapshot, and ``CREATE OR REPLACE``, take rows away and leave all properties. So the
  state names its snapshot, and :func:`standing` looks whether the table still stands on it.
- Somebody who removes the property leaves the summaries, from which it is read again.

Why a new snapshot with each change, also where there is no row: REST catalogs compare the table's current
snapshot, and nothing else that a run could change by fencing. See :meth:`.catalog.TableCatalog.commit`.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from airflow_provider_sinks.core.progress.history import Finding, Flaw, History
from airflow_provider_sinks.core.progress.record import (
    SINGLE_WRITER,
    Format,
    ProgressFormatError,
    ProgressRecord,
    WriterId,
)

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot

PREFIX: Final = "sinks.progress."
"""What properties and summaries of ours begin with; the sink's name follows."""
_VERSION = 1


class Standing(enum.Enum):
    """Whether the newest record's snapshot is what the table stands on."""

    ON_IT = "it is the current snapshot, or an ancestor"
    LEFT = "the table was rolled back behind it, or begun anew"
    EXPIRED = "so much was expired that nobody can tell; somebody has appended since"


@dataclass(frozen=True)
class Place:
    """A snapshot, by its id and its number; later ones have larger numbers."""

    snapshot: int
    sequence: int


@dataclass(frozen=True)
class Pending:
    """Dead letters of an epoch whose rows are committed: whoever finds them here publishes them.

    :param stages: the names of what is staged.
    :param table: that they were staged for; a sink may have another one since.
    """

    record: ProgressRecord
    stages: tuple[str, ...]
    table: str = ""


@dataclass(frozen=True)
class State:
    """The progress of one sink.

    :param run: the run in force.
    :param records: the newest of each writer.
    :param at: the snapshot that came with the newest record; a fence does not change it.
    :param lacks: the id of a snapshot that a person has agreed to go on without; 0 for none.
    :param pending: dead letters to be published.
    """

    run: str = ""
    records: Mapping[WriterId, ProgressRecord] = field(default_factory=dict)
    at: Place | None = None
    lacks: int = 0
    pending: Pending | None = None

    @property
    def epoch(self) -> ProgressRecord | None:
        """The record of the newest epoch that had rows."""
        return self.records.get(SINGLE_WRITER)

    @property
    def history(self) -> History:
        """The records, as everybody judges them."""
        return History(dict(self.records))

    def having(self, writer: WriterId, record: ProgressRecord, at: Place) -> State:
        """Return it with a record that came with a snapshot."""
        return replace(self, records={**self.records, writer: record}, at=at)

    def encode(self) -> str:
        """Write it as the property has it."""
        return _dump(
            {
                "v": _VERSION,
                "run": self.run,
                "records": {writer: _plain(record) for writer, record in sorted(self.records.items())},
                "at": [self.at.snapshot, self.at.sequence] if self.at else None,
                "lacks": self.lacks,
                "pending": _pending(self.pending),
            }
        )

    @classmethod
    def decode(cls, text: str) -> State:
        """Read what :meth:`encode` wrote.

        :raises ProgressFormatError: it is something else, or of a newer release.
        """
        try:
            found = json.loads(text)
            version, pending = int(found["v"]), found.get("pending")
            if version <= _VERSION:
                return cls(
                    str(found["run"]),
                    {str(writer): _record(record) for writer, record in found["records"].items()},
                    Place(*map(int, found["at"])) if found["at"] else None,
                    int(found["lacks"]),
                    _pending_of(pending) if pending else None,
                )
        except ProgressFormatError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ProgressFormatError(Format.GARBAGE, f"{type(error).__name__}: {error}") from error
        raise ProgressFormatError(
            Format.NEWER, f"is of version {version}, this release reads up to {_VERSION}"
        )


def key_of(sink: str) -> str:
    """Return the name of a sink's property."""
    return f"{PREFIX}{sink}"


def summary(
    sink: str, run: str, writer: WriterId = "", record: ProgressRecord | None = None
) -> dict[str, str]:
    """Return what the summary of a snapshot says: who made it, and with which record."""
    said: dict[str, Any] = {"v": _VERSION, "run": run}
    if record is not None:
        said |= {"writer": writer, "record": _plain(record)}
    return {key_of(sink): _dump(said)}


def read(metadata: TableMetadata, sink: str) -> State | None:
    """Return the progress of a sink in a table; nothing where there is none.

    :raises ProgressFormatError: something else stands in its place.
    """
    text = metadata.properties.get(key_of(sink))
    return State.decode(text) if text is not None else _from_summaries(metadata, sink)


def flawed(error: ProgressFormatError) -> History:
    """Return the history of a sink whose progress cannot be read."""
    finding = Finding.NEWER_FORMAT if error.why is Format.NEWER else Finding.GARBAGE
    return History(flaws=(Flaw(finding, SINGLE_WRITER, 0, str(error)),))


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
                found.append((str(said["writer"]), _record(said["record"])))
    return found


def _from_summaries(metadata: TableMetadata, sink: str) -> State | None:
    """Put the state together from the snapshots that the table stands on, newest first."""
    known = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
    state: State | None = None
    at = metadata.current_snapshot()
    while at is not None:
        said = said_by(at, sink)
        if said is not None:
            state = state or State(said["run"])
            if "record" in said and said["writer"] not in state.records:
                records = {**state.records, said["writer"]: _record(said["record"])}
                place = state.at or Place(at.snapshot_id, at.sequence_number or 0)
                state = replace(state, records=records, at=place)
        at = known.get(at.parent_snapshot_id) if at.parent_snapshot_id is not None else None
    return state


def _plain(record: ProgressRecord) -> Any:
    return json.loads(record.encode())


def _record(found: Any) -> ProgressRecord:
    return ProgressRecord.decode(_dump(found).encode())


def _pending(pending: Pending | None) -> Any:
    if pending is None:
        return None
    return {"record": _plain(pending.record), "stages": list(pending.stages), "table": pending.table}


def _pending_of(found: Mapping[str, Any]) -> Pending:
    return Pending(_record(found["record"]), tuple(found["stages"]), str(found.get("table", "")))


def _dump(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
