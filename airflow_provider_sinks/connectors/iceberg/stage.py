"""What writers have written and nobody has published: data files, and for each a small file that names them.

A stage is one such small file, ``<table>/sinks-staged/<sink>/<run>/<name>.json``; its name is the token of a
writer. It is there before the first byte of a data file is, and tells all of it when the writer has handed
over. So whatever a killed writer leaves is named by a stage, and :mod:`.sweep` need not list the files of the
table. A stage that is gone, or that names a file which is gone, is a lost one: a table must never point to
nothing.
"""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.errors import UnavailableError

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem
    from pyiceberg.io import FileIO
    from pyiceberg.io.pyarrow import PyArrowFileIO
    from pyiceberg.manifest import DataFile
    from pyiceberg.table.metadata import TableMetadata

FOLDER: Final = "sinks-staged"
_SUFFIX = ".json"
_STATISTICS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts")
_BOUNDS = ("lower_bounds", "upper_bounds")


@dataclass(frozen=True)
class StagedFile:
    """A data file that is written, and not yet part of a table.

    :param role: of the table that it is for.
    :param rows: how many it has.
    :param partition: the value of each field of the partitioning, encoded as Iceberg's single values.
    :param statistics: by the names of Iceberg's manifests; bounds are encoded.
    :param equality_ids: of a file of keys, whose older rows are deleted, the ids of its columns.
    """

    role: Role
    path: str
    size_bytes: int = 0
    rows: int = 0
    spec_id: int = 0
    partition: tuple[str | None, ...] = ()
    statistics: Mapping[str, Any] = field(default_factory=dict)
    equality_ids: tuple[int, ...] = ()

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
        )

    def data_file(self, metadata: TableMetadata) -> DataFile:
        """Return it as a manifest of its table has it."""
        from pyiceberg.conversions import from_bytes
        from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
        from pyiceberg.typedef import Record

        spec = metadata.specs()[self.spec_id]
        types = [field.field_type for field in spec.partition_type(metadata.schema()).fields]
        values: list[Any] = [
            None if text is None else from_bytes(kind, base64.b64decode(text))  # type: ignore[arg-type]
            for kind, text in zip(types, self.partition, strict=True)
        ]
        counts: dict[str, Any] = {name: _by_id(self.statistics.get(name, {})) for name in _STATISTICS}
        bounds: dict[str, Any] = {
            name: {
                number: base64.b64decode(text)
                for number, text in _by_id(self.statistics.get(name, {})).items()
            }
            for name in _BOUNDS
        }
        made = DataFile.from_args(
            content=DataFileContent.EQUALITY_DELETES if self.equality_ids else DataFileContent.DATA,
            file_path=self.path,
            file_format=FileFormat.PARQUET,
            partition=Record(*values),
            record_count=self.rows,
            file_size_in_bytes=self.size_bytes,
            split_offsets=self.statistics.get("split_offsets"),
            equality_ids=list(self.equality_ids) or None,
            key_metadata=None,
            sort_order_id=None,
            **counts,
            **bounds,
        )
        made.spec_id = self.spec_id
        return made


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

    :param properties: how to reach the storage; may hold secrets.
    :param location: of the table.
    """

    def __init__(self, properties: Mapping[str, str], location: str, sink: str) -> None:
        self._properties = dict(properties)
        self._folder = f"{location.rstrip('/')}/{FOLDER}/{sink}"
        self._io: FileIO | None = None

    @property
    def io(self) -> FileIO:
        """What reads and writes the files; made at the first use, in each process."""
        if self._io is None:
            from pyiceberg.io import load_file_io

            self._io = load_file_io(self._properties, self._folder)
        return self._io

    def write(self, stage: Stage) -> None:
        """Write a stage, in the place of an earlier one of its name.

        :raises UnavailableError: it could not be written.
        """
        with (
            answering(self._folder),
            self.io.new_output(self._path(stage.run, stage.name)).create(True) as out,
        ):
            out.write(stage.encode())

    def read(self, run: str, name: str, role: Role | None = None) -> Stage | None:
        """Return a stage; nothing where it, or a file that it names, is gone, or where it is not whole.

        :param role: only files for this table need be there; ``None``: all.
        :raises UnavailableError: it could not be read.
        """
        with answering(self._folder):
            try:
                with self.io.new_input(self._path(run, name)).open() as source:
                    stage = Stage.decode(name, source.read())
            except (FileNotFoundError, ValueError):
                return None
            needed = stage.files if role is None else stage.of(role)
            whole = stage.is_whole and all(self._is_there(file) for file in needed)
        return stage if whole else None

    def leftovers(self, but: str) -> Iterator[Stage]:
        """Give the stages of all runs but one; half a file names nothing that could be removed.

        :raises UnavailableError: they could not be listed.
        """
        from pyarrow.fs import FileSelector, FileType

        with answering(self._folder):
            files, folder = self._file_system()
            found = files.get_file_info(FileSelector(folder, allow_not_found=True, recursive=True))
        for info in found:
            run, name = info.path.rsplit("/", 2)[-2:]
            if info.type is FileType.File and name.endswith(_SUFFIX) and run != but:
                name = name.removesuffix(_SUFFIX)
                with answering(self._folder), suppress(FileNotFoundError):
                    with self.io.new_input(self._path(run, name)).open() as source:
                        data = source.read()
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
                    self.io.delete(file.path)
            with suppress(FileNotFoundError):
                self.io.delete(self._path(stage.run, stage.name))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_io": None}

    def _is_there(self, file: StagedFile) -> bool:
        found = self.io.new_input(file.path)
        return found.exists() and len(found) == file.size_bytes

    def _path(self, run: str, name: str) -> str:
        return f"{self._folder}/{run}/{name}{_SUFFIX}"

    def _file_system(self) -> tuple[FileSystem, str]:
        io = cast("PyArrowFileIO", self.io)  # the catalog's storage says so
        scheme, netloc, path = io.parse_location(self._folder, io.properties)
        return io.fs_by_scheme(scheme, netloc), path


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


def _by_id(found: Mapping[str, Any]) -> dict[int, Any]:
    return {int(number): value for number, value in found.items()}
