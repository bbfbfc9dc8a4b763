"""Is the DAG of a running task gone for good? Decided from looks at Airflow and at this worker's files.

Airflow lets a task run on whose DAG file was removed, and shows it to nobody any more. Such a sink ends by
itself, but late and on evidence only: a sink that ends by mistake costs more than one that runs on.

* A DAG whose file cannot be read for now is not gone; nor is one that cannot be looked for.
* What Airflow says counts. Only where it cannot be asked does this worker's copy of the file: missing there,
  in a folder that holds others, is the same evidence; being there is none, because the DAG may have been
  taken out of it.
* Every look must find it gone for :data:`GONE_FOR_SECONDS`: longer than a deployment that removes all files
  before it writes the new ones, or a volume that is away for a while.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

GONE_FOR_SECONDS = 900.0
LOOK_SECONDS = 60.0
LOOK_OF_MANY_SECONDS = 300.0
"""A triggerer serves few calls a second, and may hold a thousand sinks."""


class Listed(enum.Enum):
    """What Airflow says of a DAG."""

    LISTED = "a file names it"
    BROKEN = "its file cannot be read"
    GONE = "no file names it any more"
    UNKNOWN = "Airflow could not be asked"


class File(enum.Enum):
    """What this worker sees of a DAG's file."""

    THERE = "it is there"
    MISSING = "it is not there, and others are"
    UNSEEN = "it cannot be told"


def is_gone(listed: Listed, file: File) -> bool:
    """Return whether one look says that the DAG is gone."""
    match listed:
        case Listed.GONE:
            return True
        case Listed.UNKNOWN:
            return file is File.MISSING
        case Listed.LISTED | Listed.BROKEN:
            return False


@dataclass(frozen=True)
class Absence:
    """For how long every look has found a DAG gone.

    :param since_seconds: of the first of them, on any clock; ``None`` while it is there.
    """

    since_seconds: float | None = None

    def seen(self, *, gone: bool, at_seconds: float) -> Absence:
        """Return the absence after one more look."""
        if not gone:
            return Absence()
        return self if self.since_seconds is not None else Absence(at_seconds)

    def is_final(self, at_seconds: float) -> bool:
        """Return whether the DAG has been gone for so long that it will not come back."""
        return self.since_seconds is not None and at_seconds - self.since_seconds >= GONE_FOR_SECONDS
