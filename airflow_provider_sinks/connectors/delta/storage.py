"""The storage beside a Delta table: folders of the machine by Arrow itself, object stores by delta-rs."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from airflow_provider_sinks.connectors.delta.places import is_local

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem


class DeltaFiles:
    """See :class:`.stage.Files`. Paths are those of a table, and what follows them.

    :param options: how to reach the storage; may hold secrets.
    :param roots: the tables, of which one lies in none of the others. Files of a table that a sink had before
        lie in none of them: then their own folder is one.
    """

    def __init__(self, options: Mapping[str, str], *roots: str) -> None:
        self._options = dict(options)
        self._roots = roots
        self._made: dict[str, FileSystem] = {}

    def __repr__(self) -> str:
        return f"DeltaFiles(roots={self._roots!r})"

    def place(self, path: str) -> tuple[FileSystem, str]:
        """Return where Arrow finds a path; made at the first use, in each process."""
        known = (root for root in self._roots if f"{path}/".startswith(f"{root}/"))
        root = next(known, path.rpartition("/")[0])
        if root not in self._made:
            self._made[root] = self._connect(root)
        return self._made[root], path if is_local(root) else path.removeprefix(root).lstrip("/")

    def write(self, path: str, data: bytes) -> None:
        """Write a file, in the place of an earlier one."""
        self.make_folder(path)
        files, place = self.place(path)
        with files.open_output_stream(place) as out:
            out.write(data)

    def make_folder(self, path: str) -> None:
        """Make the folder of a file, where the storage has folders."""
        files, place = self.place(path)
        if is_local(path):
            files.create_dir(place.rpartition("/")[0], recursive=True)

    def read(self, path: str) -> bytes:
        """Return what is in a file."""
        files, place = self.place(path)
        with files.open_input_file(place) as source:
            data: bytes = source.read()
        return data

    def size(self, path: str) -> int | None:
        """Return how large a file is."""
        from pyarrow.fs import FileType

        files, place = self.place(path)
        (info,) = files.get_file_info([place])
        return info.size if info.type is FileType.File else None

    def delete(self, path: str) -> None:
        """Remove a file."""
        files, place = self.place(path)
        files.delete_file(place)

    def delete_folder(self, path: str) -> None:
        """Remove a folder with all that is in it; one that is gone is fine."""
        files, place = self.place(path)
        with suppress(FileNotFoundError):
            files.delete_dir(place)

    def below(self, folder: str) -> list[str]:
        """Return the paths of all files below a folder."""
        from pyarrow.fs import FileSelector, FileType

        files, place = self.place(folder)
        found = files.get_file_info(FileSelector(place, allow_not_found=True, recursive=True))
        prefix = folder.rstrip("/").removesuffix(place.rstrip("/"))
        return [f"{prefix}{info.path}" for info in found if info.type is FileType.File]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_made": {}}

    def _connect(self, root: str) -> FileSystem:
        from pyarrow.fs import LocalFileSystem, PyFileSystem

        if is_local(root):
            return LocalFileSystem()
        from airflow_provider_sinks.connectors.delta.object_store import handler

        return PyFileSystem(handler(root, self._options))
