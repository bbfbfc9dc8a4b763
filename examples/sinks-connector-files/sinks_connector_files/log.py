"""The log of a sink: one small file for each change, numbered without a gap. It is the only truth there is.

An entry says which run wrote it, the newest progress records, and for a commit the files that become visible
with them: it is the manifest. An entry is made under the number behind the newest, and only one can have a
number (:func:`.disk.create`). That one act is the whole protocol:

- A run that wants to be in force writes an entry. Whoever was in force finds the number taken by another
  run, and is fenced: there is no moment between looking who is in force and committing.
- A commit that is given twice finds its own entry there.
- Rows and progress are visible at once, since they are one file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from airflow_provider_sinks.connectors.epoch_writer import InDoubtError
from airflow_provider_sinks.core.errors import UnavailableError
from airflow_provider_sinks.core.progress.record import ProgressFormatError, ProgressRecord, WriterId
from sinks_connector_files import disk, tables

_DIGITS = 12


@dataclass(frozen=True)
class Entry:
    """One change.

    :param run: who made it, and is in force by it.
    :param records: the newest progress record of each writer, so that the newest entry tells all.
    :param files: the names of the files that it makes visible.
    """

    run: str = ""
    records: Mapping[WriterId, ProgressRecord] = field(default_factory=dict)
    files: tuple[str, ...] = ()

    def encode(self) -> bytes:
        """Return it as it stands in its file."""
        records = {writer: json.loads(record.encode()) for writer, record in self.records.items()}
        return json.dumps({"run": self.run, "records": records, "files": self.files}).encode()

    @classmethod
    def decode(cls, data: bytes) -> Entry:
        """Read what :meth:`encode` wrote.

        :raises ValueError: it is something else.
        """
        found = json.loads(data)
        records = {
            writer: ProgressRecord.decode(json.dumps(record).encode())
            for writer, record in found["records"].items()
        }
        return cls(found["run"], records, tuple(found["files"]))


class Log:
    """The entries of one sink.

    :param place: the folder of the progress, which sinks may share.
    """

    def __init__(self, place: Path, sink: str) -> None:
        self._folder = place / sink

    def at(self, number: int) -> Entry | None:
        """Return an entry; ``None`` if there is none yet.

        :raises UnavailableError: it could not be read.
        """
        if number == 0:
            return Entry()
        path = self._path(number)
        try:
            return Entry.decode(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, ProgressFormatError) as error:
            raise _unreadable(path, error) from error

    def newest(self) -> tuple[int, Entry]:
        """Return the number of the newest entry, and the entry; number 0 where nothing was written yet.

        :raises UnavailableError: it could not be read.
        """
        try:
            names = [path.name for path in self._folder.iterdir()]
        except FileNotFoundError:
            return 0, Entry()
        except OSError as error:
            raise _unreadable(self._folder, error) from error
        number = max((int(name[:_DIGITS]) for name in names if not name.startswith(".")), default=0)
        return number, self.at(number) or Entry()

    def all(self) -> Iterator[Entry]:
        """Return every entry, oldest first."""
        for number in range(1, self.newest()[0] + 1):
            yield self.at(number) or Entry()

    def append(self, number: int, entry: Entry) -> bool:
        """Write an entry under this number; False when another one has it.

        :raises InDoubtError: nobody knows whether it was written.
        """
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            return disk.create(self._path(number), entry.encode())
        except OSError as error:
            raise InDoubtError(f"writing {self._path(number)} failed", str(error)) from error

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:0{_DIGITS}}.json"


def visible_files(folder: Path, log: Log) -> list[Path]:
    """Return the files that a reader of a table may read, oldest first."""
    table = tables.find(folder)
    names = [name for entry in log.all() for name in entry.files] if table else []
    return [folder / name for name in names if table and name.startswith(table.contents)]


def _unreadable(path: Path, error: Exception) -> UnavailableError:
    return UnavailableError(f"{path} cannot be read", f"{type(error).__name__}: {error}")
