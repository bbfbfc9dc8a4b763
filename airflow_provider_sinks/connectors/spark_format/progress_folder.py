"""The progress of a sink whose target keeps none: numbered files beside Spark's checkpoint.

Each file is all there is to know, and the newest counts. A number can be taken once, so of two drivers one
is told that the other came first. It is told *behind* its rows: nothing ties the two together but what Spark
itself remembers (:mod:`.outputs`), and that is why the target promises Spark's guarantee and no other.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from airflow_provider_sinks.connectors.spark_format.storage import Storage, answering
from airflow_provider_sinks.core.errors import UnavailableError
from airflow_provider_sinks.core.progress.record import ProgressFormatError, ProgressRecord, WriterId

_SUFFIX: Final = ".json"
_KEPT: Final = 3


@dataclass(frozen=True)
class Progress:
    """What one file says.

    :param place: the id of the folder, made with its first file.
    :param run: the one that is in force.
    :param records: the newest of each writer.
    :param begun: the record of the epoch whose rows are being written, still without their number.
    :param batch: the number that Spark's file sink gives these rows, or the next ones.
    """

    place: str = field(default_factory=lambda: uuid.uuid4().hex)
    run: str = ""
    records: Mapping[WriterId, ProgressRecord] = field(default_factory=dict)
    begun: ProgressRecord | None = None
    batch: int = 0

    def encode(self) -> bytes:
        """Write it as JSON."""
        records = {writer: record.encode().decode() for writer, record in self.records.items()}
        begun = self.begun.encode().decode() if self.begun else None
        found = {
            "place": self.place,
            "run": self.run,
            "records": records,
            "begun": begun,
            "batch": self.batch,
        }
        return json.dumps(found, sort_keys=True, indent=1).encode()

    @classmethod
    def decode(cls, data: bytes) -> Progress:
        """Read back what :meth:`encode` wrote.

        :raises ValueError: it is something else.
        """
        try:
            found = json.loads(data)
            records = {w: ProgressRecord.decode(text.encode()) for w, text in found["records"].items()}
            begun = ProgressRecord.decode(found["begun"].encode()) if found["begun"] else None
            return cls(str(found["place"]), str(found["run"]), records, begun, int(found["batch"]))
        except (KeyError, TypeError, AttributeError, ProgressFormatError) as error:
            raise ValueError(f"{type(error).__name__}: {error}") from error


class ProgressFolder:
    """The files of one sink.

    :param storage: where they lie.
    :param folder: theirs alone.
    """

    def __init__(self, storage: Storage, folder: str) -> None:
        self._storage = storage
        self.folder = folder

    def newest(self) -> tuple[int, Progress | None]:
        """Return the newest file and its number; 0 and nothing where there is none.

        :raises UnavailableError: it could not be read.
        """
        with answering(self.folder):
            number = max(self._numbers(), default=0)
            data = self._storage.read(self._path(number)) if number else None
        if data is None:
            return 0, None
        try:
            return number, Progress.decode(data)
        except ValueError as error:
            raise UnavailableError(
                f"{self._path(number)} is no progress that can be read",
                str(error),
                "Remove the file if the one before it is whole: what is between them is written again.",
            ) from error

    def append(self, number: int, progress: Progress) -> bool:
        """Write the file of a number, unless it is taken; False when it is, by something else.

        :raises UnavailableError: it could not be written.
        """
        data = progress.encode()
        with answering(self.folder):
            if not self._storage.create(self._path(number), data):
                return self._storage.read(self._path(number)) == data
            for old in self._numbers():
                if old <= number - _KEPT:
                    self._storage.remove(self._path(old))
        return True

    def remove(self) -> None:
        """Remove all of it."""
        with answering(self.folder):
            self._storage.remove(self.folder)

    def _numbers(self) -> list[int]:
        names = self._storage.sizes(self.folder) or {}
        return [int(name.removesuffix(_SUFFIX)) for name in names if name.removesuffix(_SUFFIX).isdigit()]

    def _path(self, number: int) -> str:
        return f"{self.folder}/{number:012d}{_SUFFIX}"
