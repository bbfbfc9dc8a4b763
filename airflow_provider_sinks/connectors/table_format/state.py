"""The progress of a sink as its table keeps it: one state, which each change of the table carries on.

It says which run is in force, the newest record of each writer, the snapshot that came with the newest
record, and dead letters that are still to be published. Where it stands each format says by itself.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from airflow_provider_sinks.core.progress.history import Finding, Flaw, History
from airflow_provider_sinks.core.progress.record import (
    SINGLE_WRITER,
    Format,
    ProgressFormatError,
    ProgressRecord,
    WriterId,
)

PREFIX: Final = "sinks.progress."
"""What the names of ours in a table begin with; the sink's name follows."""
VERSION: Final = 1


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

    :param stages: the names of what is staged; they lie with the record's run.
    :param table: the only one in which they may be, or become, published. A sink may have another one since:
        they are staged for that, and this says so, before anything is published there.
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
        """Write it as a table keeps it."""
        return dump(
            {
                "v": VERSION,
                "run": self.run,
                "records": {writer: plain(record) for writer, record in sorted(self.records.items())},
                "at": [self.at.snapshot, self.at.sequence] if self.at else None,
                "lacks": self.lacks,
                "pending": plain_pending(self.pending),
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
            if version <= VERSION:
                return cls(
                    str(found["run"]),
                    {str(writer): read_record(record) for writer, record in found["records"].items()},
                    Place(*map(int, found["at"])) if found["at"] else None,
                    int(found["lacks"]),
                    read_pending(pending) if pending else None,
                )
        except ProgressFormatError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ProgressFormatError(Format.GARBAGE, f"{type(error).__name__}: {error}") from error
        raise ProgressFormatError(
            Format.NEWER, f"is of version {version}, this release reads up to {VERSION}"
        )


def has_letters(state: State | None, pending: Pending) -> bool:
    """Whether dead letters are in a table with this progress: it has the record of their epoch."""
    return state is not None and state.epoch == pending.record


def key_of(sink: str) -> str:
    """Return the name of a sink's progress."""
    return f"{PREFIX}{sink}"


def flawed(error: ProgressFormatError) -> History:
    """Return the history of a sink whose progress cannot be read."""
    finding = Finding.NEWER_FORMAT if error.why is Format.NEWER else Finding.GARBAGE
    return History(flaws=(Flaw(finding, SINGLE_WRITER, 0, str(error)),))


def identity(table_id: str, state: State | None, standing: Standing) -> str:
    """Return which table it is: its id, and what of ours is not in it any more.

    A table that was rolled back behind the newest record, or begun anew, keeps its id, and is another one
    than that which rows were written to. A person who agrees to go on with it has this said by the next
    announcement.

    :param standing: on the snapshot of the state.
    """
    if state is None:
        return table_id
    if state.at is not None and standing is Standing.LEFT:
        return f"{table_id} without snapshot {state.at.snapshot}"
    return f"{table_id} without snapshot {state.lacks}" if state.lacks else table_id


def plain(record: ProgressRecord) -> Any:
    """Return a record as part of a JSON text."""
    return json.loads(record.encode())


def read_record(found: Any) -> ProgressRecord:
    """Read what :func:`plain` gave.

    :raises ProgressFormatError: it is something else.
    """
    return ProgressRecord.decode(dump(found).encode())


def plain_pending(pending: Pending | None) -> Any:
    """Return dead letters to be published as part of a JSON text."""
    if pending is None:
        return None
    return {"record": plain(pending.record), "stages": list(pending.stages), "table": pending.table}


def read_pending(found: Mapping[str, Any]) -> Pending:
    """Read what :func:`plain_pending` gave for some.

    :raises ProgressFormatError: their record is something else.
    """
    return Pending(read_record(found["record"]), tuple(found["stages"]), str(found.get("table", "")))


def dump(value: Any) -> str:
    """Return JSON, the same for the same value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
