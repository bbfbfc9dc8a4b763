"""What writers have written and nobody has published: data files, and for each a small file that names them.

A stage is one such small file, ``<table>/<folder>/<sink>/<run>/<name>.json``; its name is the token of a
writer. It is there before the first byte of a data file is, and tells all of it when the writer has handed
over. So whatever a killed writer leaves is named by a stage, and :mod:`.sweep` need not list the files of the
table. A stage that is gone, or that names a file which is gone, is a lost one: a table must never point to
nothing.
"""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.errors import UnavailableError

_SUFFIX = ".json"


class Files(Protocol):
    """The storage that a table lies on. Travels to executors, so its ``repr`` must hide secrets."""

    def write(self, path: str, data: bytes) -> None:
        """Write a file, in the place of an earlier one."""

    def read(self, path: str) -> bytes:
        """Return what is in a file.

        :raises FileNotFoundError: there is none.
        """

    def size(self, path: str) -> int | None:
        """Return how large a file is; ``None`` where there is none."""

    def delete(self, path: str) -> None:
        """Remove a file.

        :raises FileNotFoundError: there is none; not every storage tells.
        """

    def below(self, folder: str) -> list[str]:
        """Return the paths of all files below a folder; none where there is no folder."""


@dataclass(frozen=True)
class StagedFile:
    """A data file that is written, and not yet part of a table.

    :param role: of the table that it is for.
    :param rows: how many it has.
    :param spec_id: the number of the partitioning, where the format has one.
    :param partition: the value of each field of the partitioning, as the format encodes it.
    :param statistics: as the format has them; bounds are encoded.
    :param equality_ids: of a file of keys, whose older rows are deleted, the ids of its columns.
    :param layout: of dead letters, what their table was like, as the format compares it; nothing where it
        needs not, and in stages of earlier releases.
    """

    role: Role
    path: str
    size_bytes: int = 0
    rows: int = 0
    spec_id: int = 0
    partition: tuple[str | None, ...] = ()
    statistics: Mapping[str, Any] = field(default_factory=dict)
    equality_ids: tuple[int, ...] = ()
    layout: Mapping[str, Any] = field(default_factory=dict)

    def to_mapping(self) -> dict[str, Any]:
        """Write it as a stage has it."""
        return {
            "role": self.role.name,
            "path": self.path,
            "size_bytes": self.size_bytes,
            "rows": self.rows,
            "spec_id": self.spec_id,
            "partition": list(self.partition),
            "statistics": dict(self.statistics),
            "equality_ids": list(self.equality_ids),
            "layout": dict(self.layout),
        }

    @classmethod
    def from_mapping(cls, data: Mapping[str, Any]) -> StagedFile:
        """Read what :meth:`to_mapping` wrote."""
        return cls(
            Role[data["role"]],
            data["path"],
            data["size_bytes"],
            data["rows"],
            data["spec_id"],
            tuple(data["partition"]),
            data["statistics"],
            tuple(data["equality_ids"]),
            data.get("layout", {}),
        )


@dataclass(frozen=True)
class Copy:
    """A copy of a staged file that is still to be made.

    :param file: as it is staged then.
    :param make: copies it.
    """

    file: StagedFile
    make: Callable[[], None] = field(repr=False)


@dataclass(frozen=True)
class Stage:
    """What one writer has written in one epoch.

    :param name: the token.
    :param run: whose it is.
    :param is_whole: it was handed over; else its writer may be anywhere.
    """

    name: str
    run: str
    files: tuple[StagedFile, ...]
    is_whole: bool

    def of(self, role: Role) -> tuple[StagedFile, ...]:
        """Return the files for one table."""
        return tuple(file for file in self.files if file.role is role)

    def encode(self) -> bytes:
        """Write it."""
        files = [file.to_mapping() for file in self.files]
        return json.dumps({"run": self.run, "files": files, "is_whole": self.is_whole}).encode()

    @classmethod
    def decode(cls, name: str, data: bytes) -> Stage:
        """Read what :meth:`encode` wrote.

        :raises ValueError: it is something else, such as half of it.
        """
        found = json.loads(data)
        try:
            files = tuple(map(StagedFile.from_mapping, found["files"]))
            return cls(name, found["run"], files, found["is_whole"])
        except (KeyError, TypeError) as error:
            raise ValueError(str(error)) from error


class StageFolder:
    """The stages of one sink beside its data table.

    :param files: the storage; may hold secrets.
    :param folder: of all stages of the sink.
    """

    def __init__(self, files: Files, folder: str) -> None:
        self.files = files
        self._folder = folder

    def write(self, stage: Stage) -> None:
        """Write a stage, in the place of an earlier one of its name.

        :raises UnavailableError: it could not be written.
        """
        with answering(self._folder):
            self.files.write(self._path(stage.run, stage.name), stage.encode())

    def read(self, run: str, name: str, role: Role | None = None) -> Stage | None:
        """Return a stage; nothing where it, or a file that it names, is gone, or where it is not whole.

        :param role: only files for this table need be there; ``None``: all.
        :raises UnavailableError: it could not be read.
        """
        with answering(self._folder):
            try:
                stage = Stage.decode(name, self.files.read(self._path(run, name)))
            except (FileNotFoundError, ValueError):
                return None
            needed = stage.files if role is None else stage.of(role)
            whole = stage.is_whole and all(self.files.size(file.path) == file.size_bytes for file in needed)
        return stage if whole else None

    def copied(self, run: str, copies: Sequence[Copy]) -> Stage:
        """Copy files, and return their stage: as a writer's, it names them before their first byte is there.

        :param run: in whose folder the stage lies.
        :raises UnavailableError: one could not be copied; what there is of them is swept.
        """
        stage = Stage(new_name(), run, tuple(copy.file for copy in copies), is_whole=False)
        self.write(stage)
        for copy in copies:
            with answering(copy.file.path):
                try:
                    copy.make()
                except FileNotFoundError as error:
                    hint = "The next start looks again."
                    raise UnavailableError(
                        "a staged file went while it was copied", str(error), hint
                    ) from error
        whole = replace(stage, is_whole=True)
        self.write(whole)
        return whole

    def leftovers(self, but: str) -> Iterator[Stage]:
        """Give the stages of all runs but one; half a file names nothing that could be removed.

        :raises UnavailableError: they could not be listed.
        """
        with answering(self._folder):
            found = self.files.below(self._folder)
        for path in found:
            run, name = path.rsplit("/", 2)[-2:]
            if name.endswith(_SUFFIX) and run != but:
                name = name.removesuffix(_SUFFIX)
                with answering(self._folder), suppress(FileNotFoundError):
                    data = self.files.read(self._path(run, name))
                    try:
                        yield Stage.decode(name, data)
                    except ValueError:
                        yield Stage(name, run, (), is_whole=False)

    def remove(self, stage: Stage, *, with_files: bool) -> None:
        """Remove a stage, and what it names unless that is part of a table now. What is gone is fine.

        :raises UnavailableError: it could not be removed.
        """
        with answering(self._folder):
            for file in stage.files if with_files else ():
                with suppress(FileNotFoundError):
                    self.files.delete(file.path)
            with suppress(FileNotFoundError):
                self.files.delete(self._path(stage.run, stage.name))

    def _path(self, run: str, name: str) -> str:
        return f"{self._folder}/{run}/{name}{_SUFFIX}"


def new_name() -> str:
    """Return a name that no stage has."""
    return uuid.uuid4().hex


@contextmanager
def answering(where: str) -> Iterator[None]:
    """Tell errors of the storage as what they are to a sink: something that may work a little later."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UnavailableError(
            f"the storage at {where} could not be used", str(error), "See that it can be read and written."
        ) from error


def encoded(value: bytes | None) -> str | None:
    """Return bytes as a stage has them."""
    return None if value is None else base64.b64encode(value).decode()
