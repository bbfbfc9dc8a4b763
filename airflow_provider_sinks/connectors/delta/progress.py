"""The progress of a sink in the log of its Delta table: transactions of applications, commits, and a file.

A commit that changes the progress carries three *application transactions*, which Delta keeps in the state of
the table, over checkpoints and the clean-up of the log, over ``RESTORE`` and ``REPLACE``:

- ``sinks.progress.<sink>``: the version of the table that the commit makes. It is known before, as a commit
  is made on top of the very version that was loaded, or not at all.
- ``sinks.progress.<sink>.state``: a digest of the state: which run is in force, the newest record of each
  writer, dead letters that are still to be published.
- ``sinks.progress.<sink>.epoch``: generation << 32 | epoch, for whoever wants to know how far the sink is.

The state itself is too large for a number. It stands twice, and the digest tells the right one from others:

- in the commit of that version, as ``sinks.progress.<sink>``. The clean-up of the log removes it some day:
  thirty days later, unless somebody has set another time.
- in a file, ``_sinks_progress/<sink>/<version>-<digest>.json``, which is written before the commit. VACUUM
  leaves folders alone whose names begin with ``_``. Two that write for the same version have two digests, so
  neither takes the other's. A file is removed by the commit behind the one that named it, and by the next
  start: only those of versions that are over, and which the table does not name.

So each memory is there for what happens to the other: somebody who removes the folder leaves the commits,
the clean-up of the log leaves the folder. Where both are gone the transactions say that there was progress,
and nobody goes on as if there were none.

A roll-back (``RESTORE``) and ``CREATE OR REPLACE`` take rows away, and leave the transactions. So the state
names the version that came with its newest record, and :func:`standing` reads what has been done since.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from typing import Any, Final

from airflow_provider_sinks.connectors.delta.log import LOG, DeltaVersion
from airflow_provider_sinks.connectors.table_format.stage import Files, answering
from airflow_provider_sinks.connectors.table_format.state import (
    VERSION,
    Place,
    Standing,
    State,
    dump,
    key_of,
    plain,
    read_record,
)
from airflow_provider_sinks.core.errors import SinkError
from airflow_provider_sinks.core.progress.record import Format, ProgressFormatError, ProgressRecord, WriterId

FOLDER: Final = "_sinks_progress"
_OPERATION, _PARAMETERS = "operation", "operationParameters"
_REPLACED = ("REPLACE", "CLONE")


def transactions(sink: str, version: int, state: State) -> dict[str, int]:
    """Return what a commit that makes a version carries."""
    key, epoch = key_of(sink), state.history
    return {
        key: version,
        f"{key}.state": _digest(state.encode()),
        f"{key}.epoch": epoch.generation << 32 | epoch.epoch,
    }


def said(sink: str, state: State, writer: WriterId, record: ProgressRecord | None) -> dict[str, str]:
    """Return what a commit says of itself: the state, and the record that came with it."""
    found = {key_of(sink): state.encode()}
    if record is not None:
        found[f"{key_of(sink)}.record"] = dump({"v": VERSION, "writer": writer, "record": plain(record)})
    return found


def keep(files: Files, root: str, sink: str, version: int, state: State) -> str:
    """Write the state beside the table, before the commit, and return its path."""
    path = _path(root, sink, version, _digest(state.encode()))
    with answering(root):
        files.write(path, state.encode().encode())
    return path


def read(table: DeltaVersion, files: Files, sink: str) -> State | None:
    """Return the progress of a sink in a table; nothing where there is none.

    :raises ProgressFormatError: it cannot be read any more.
    :raises UnavailableError: the storage did not answer.
    """
    key = key_of(sink)
    version, digest = table.transaction(key), table.transaction(f"{key}.state")
    if version is None:
        return None
    for text in (_beside(table, files, sink, version, digest), _in_commit(table, files, key, version)):
        if text is not None and _digest(text) == digest:
            return State.decode(text)
    found = table.transaction(f"{key}.epoch") or 0
    raise ProgressFormatError(
        Format.GARBAGE,
        f"generation {found >> 32}, epoch {found & 0xFFFFFFFF} was committed as version {version} of the "
        f"table, and neither that commit is in the log any more, nor is its file in {FOLDER}",
    )


def forget(table: DeltaVersion, files: Files, sink: str) -> None:
    """Remove files of the state that no version of a table will ever name again. Must not raise."""
    named = _named(table, sink)
    with suppress(SinkError, OSError), answering(table.name):
        for path in files.below(f"{table.name}/{FOLDER}/{sink}"):
            version = path.rpartition("/")[2].partition("-")[0]
            if version.isdecimal() and int(version) <= table.number and path != named:
                with suppress(FileNotFoundError):
                    files.delete(path)


def forget_before(table: DeltaVersion, files: Files, sink: str) -> None:
    """Remove the file of the state that a table named before the commit behind it. Must not raise."""
    if (path := _named(table, sink)) is not None:
        with suppress(SinkError, OSError), answering(table.name):
            files.delete(path)


def standing(table: DeltaVersion, place: Place | None) -> Standing:
    """Say whether a table stands on a version: by walking back over what each commit has done.

    Whoever appends, deletes, merges or compacts goes on from the version before; whoever restores a version,
    from that one; whoever begins the table anew, from none.
    """
    if place is None or table.number == place.sequence:
        return Standing.ON_IT
    commits = {int(commit["version"]): commit for commit in table.commits_since(place.sequence)}
    at: int | None = table.number
    while at is not None and at > place.sequence:
        if at not in commits:
            return Standing.EXPIRED
        at = _made_from(commits[at], at)
    return Standing.ON_IT if at == place.sequence else Standing.LEFT


def records_of_commits(table: DeltaVersion, sink: str) -> list[tuple[WriterId, ProgressRecord]]:
    """Return the records of all commits that are still in the log, with their writers, oldest first."""
    found: list[tuple[WriterId, ProgressRecord]] = []
    for commit in reversed(table.raw.history()):
        text = commit.get(f"{key_of(sink)}.record")
        with suppress(ProgressFormatError, ValueError, KeyError, TypeError):
            if text is not None:
                entry = json.loads(text)
                found.append((str(entry["writer"]), read_record(entry["record"])))
    return found


def _made_from(commit: dict[str, Any], version: int) -> int | None:
    """Return the version from which a commit went on; nothing where that is none, or nobody can tell."""
    operation, parameters = str(commit.get(_OPERATION, "")).upper(), commit.get(_PARAMETERS) or {}
    if operation == "RESTORE":
        to = str(parameters.get("version", ""))
        return int(to) if to.isdecimal() and int(to) < version else None
    return None if any(word in operation for word in _REPLACED) else version - 1


def _named(table: DeltaVersion, sink: str) -> str | None:
    """Return the file of the state that a table names."""
    key = key_of(sink)
    version, digest = table.transaction(key), table.transaction(f"{key}.state")
    return None if version is None else _path(table.name, sink, version, digest or 0)


def _beside(table: DeltaVersion, files: Files, sink: str, version: int, digest: int | None) -> str | None:
    with answering(table.name), suppress(FileNotFoundError):
        return files.read(_path(table.name, sink, version, digest or 0)).decode(errors="replace")
    return None


def _in_commit(table: DeltaVersion, files: Files, key: str, version: int) -> str | None:
    with answering(table.name), suppress(FileNotFoundError, ValueError):
        for line in files.read(f"{table.name}/{LOG}/{version:020}.json").splitlines():
            found = json.loads(line).get("commitInfo")
            if found is not None and key in found:
                return str(found[key])
    return None


def _path(root: str, sink: str, version: int, digest: int) -> str:
    return f"{root}/{FOLDER}/{sink}/{version:020}-{digest:016x}.json"


def _digest(text: str) -> int:
    """Return 63 bits that tell a state from any other: what a transaction has room for."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) >> 1
