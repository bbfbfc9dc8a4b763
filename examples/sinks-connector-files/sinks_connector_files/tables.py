"""A table: a folder with a marker that says which table it is, and Parquet files.

A file belongs to the table only when a manifest names it, and when it begins with the marker's ``contents``.
So a table is emptied at once, by another ``contents``, and one that is made anew shows nothing of the older.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from sinks_connector_files import disk

MARKER = "_table.json"
SUFFIX = ".parquet"


def _new_id() -> str:
    return uuid.uuid4().hex


@dataclass(frozen=True)
class Table:
    """What a marker says.

    :param sink: whose table it is; empty for a progress place, which sinks may share.
    :param id: given once, and never again.
    :param contents: the beginning of the names of its files.
    """

    sink: str
    id: str = field(default_factory=_new_id)
    contents: str = field(default_factory=_new_id)

    def encode(self) -> bytes:
        """Return it as it stands in the marker."""
        return json.dumps(asdict(self), sort_keys=True).encode()


def find(folder: Path) -> Table | None:
    """Return which table a folder is, or nothing.

    :raises OSError: it could not be seen.
    :raises ValueError: the marker is not ours.
    """
    try:
        text = (folder / MARKER).read_bytes()
    except FileNotFoundError:
        return None
    try:
        return Table(**json.loads(text))
    except TypeError as error:
        raise ValueError(str(error)) from error


def make(folder: Path, sink: str) -> None:
    """Make a folder a table, unless it is one."""
    folder.mkdir(parents=True, exist_ok=True)
    disk.create(folder / MARKER, Table(sink).encode())


def empty(folder: Path, table: Table) -> None:
    """Let no reader see what the table holds, then free the space."""
    disk.replace(folder / MARKER, replace(table, contents=_new_id()).encode())
    _remove(file for file in files(folder) if file.name.startswith(table.contents))


def delete(folder: Path) -> None:
    """Let the folder be no table any more, then free the space; what others put there stays."""
    (folder / MARKER).unlink(missing_ok=True)
    disk.sync(folder)
    _remove(files(folder))


def leftovers(folder: Path, run: str) -> list[Path]:
    """Return the files of other runs, whether a manifest names them or not."""
    return [file for file in files(folder) if f"-{run}-" not in file.name]


def sweep(found: Iterable[Path], named: frozenset[str]) -> None:
    """Remove those of these files that no manifest names."""
    _remove(file for file in found if file.name not in named)


def files(folder: Path) -> Iterator[Path]:
    """Return the files of the folder, whether a manifest names them or not."""
    return folder.glob(f"*{SUFFIX}")


def size_bytes(folder: Path) -> int:
    """Return what the files of the folder take; they may go while they are looked at."""
    total = 0
    for file in files(folder):
        with suppress(FileNotFoundError):
            total += file.stat().st_size
    return total


def _remove(found: Iterable[Path]) -> None:
    for file in found:
        file.unlink(missing_ok=True)
