"""Small files in a folder or under a URI: on this machine, through Spark's Hadoop, or through fsspec.

A driver has Hadoop's file systems, with the credentials that Spark has; Airflow has fsspec, as for launches.
"""

from __future__ import annotations

import os
import shutil
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from airflow_provider_sinks.core.errors import UnavailableError

_HADOOP_NAMES = {"s3a": "s3", "s3n": "s3"}


class Storage(Protocol):
    """What the target asks of a file system. Errors of it are for :func:`answering` to tell."""

    def sizes(self, folder: str) -> Mapping[str, int] | None:
        """Return what lies in a folder, with the sizes of files in bytes; ``None`` where there is none."""

    def read(self, path: str) -> bytes | None:
        """Return what is in a file, or ``None`` where there is none."""

    def create(self, path: str, data: bytes) -> bool:
        """Write a file under a name that is free, with the folders above it; False when it is taken."""

    def remove(self, path: str) -> None:
        """Remove a file, or a folder with all that is in it; one that is not there is well."""


def plain(place: str) -> str:
    """Return a place of this machine as its path, and any other as it is."""
    if not place.startswith("file:"):
        return place
    return "/" + place.removeprefix("file:").lstrip("/")


def storage_of(place: str) -> Storage:
    """Return the storage of a place, as it is reached from here."""
    if plain(place).startswith("/"):
        return LocalStorage()
    session = _active_session()
    return HadoopStorage(session) if session is not None else FarStorage(place)


@contextmanager
def answering(place: str) -> Iterator[None]:
    """Tell errors of a file system as what they are to a sink: something that may work a little later."""
    try:
        yield
    except UnavailableError:
        raise
    except Exception as error:  # each file system raises its own, and fsspec loads any
        raise UnavailableError(
            f"{place} could not be used",
            f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:300]}",
            "Give this machine the rights for it, and Airflow the fsspec package for its scheme.",
        ) from error


class LocalStorage:
    """Folders of this machine, or mounted there."""

    def sizes(self, folder: str) -> Mapping[str, int] | None:
        """List a folder."""
        try:
            return {entry.name: entry.stat().st_size for entry in os.scandir(plain(folder))}
        except FileNotFoundError:
            return None

    def read(self, path: str) -> bytes | None:
        """Read a file."""
        try:
            return Path(plain(path)).read_bytes()
        except FileNotFoundError:
            return None

    def create(self, path: str, data: bytes) -> bool:
        """Link a draft that is on the disk."""
        whole = Path(plain(path))
        whole.parent.mkdir(parents=True, exist_ok=True)
        draft = whole.parent / f".{uuid.uuid4().hex}"
        with draft.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, whole)
        except FileExistsError:
            return False
        finally:
            draft.unlink()
        return True

    def remove(self, path: str) -> None:
        """Remove it."""
        found = Path(plain(path))
        if found.is_dir():
            shutil.rmtree(found)
        else:
            found.unlink(missing_ok=True)


class FarStorage:
    """A URI, as Airflow reaches it."""

    def __init__(self, place: str) -> None:
        self._place = place

    def sizes(self, folder: str) -> Mapping[str, int] | None:
        """List a folder."""
        files = self._files()
        try:
            found = files.ls(folder, detail=True)
        except FileNotFoundError:
            return None
        return {str(one["name"]).rstrip("/").rpartition("/")[2]: int(one["size"] or 0) for one in found}

    def read(self, path: str) -> bytes | None:
        """Read a file."""
        try:
            return bytes(self._files().cat_file(path))
        except FileNotFoundError:
            return None

    def create(self, path: str, data: bytes) -> bool:
        """Write a file, unless it is there."""
        files = self._files()
        if files.exists(path):
            return False
        files.makedirs(path.rpartition("/")[0], exist_ok=True)
        files.pipe_file(path, data)
        return True

    def remove(self, path: str) -> None:
        """Remove it."""
        files = self._files()
        if files.exists(path):
            files.rm(path, recursive=True)

    def _files(self) -> Any:
        import fsspec

        scheme, colon, rest = self._place.partition(":")
        return fsspec.core.url_to_fs(
            f"{_HADOOP_NAMES.get(scheme, scheme)}{colon}{rest}", use_listings_cache=False
        )[0]


class HadoopStorage:
    """Any URI, as a driver reaches it.

    :param session: of the driver.
    """

    def __init__(self, session: Any) -> None:
        self._jvm = session._jvm  # noqa: SLF001  the way to Hadoop's file systems
        self._conf = session.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001  likewise

    def sizes(self, folder: str) -> Mapping[str, int] | None:
        """List a folder."""
        path, files = self._open(folder)
        if not files.exists(path):
            return None
        return {str(one.getPath().getName()): int(one.getLen()) for one in files.listStatus(path)}

    def read(self, path: str) -> bytes | None:
        """Read a file."""
        found, files = self._open(path)
        if not files.exists(found):
            return None
        stream = files.open(found)
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()

    def create(self, path: str, data: bytes) -> bool:
        """Write a draft and rename it, which takes no name that is taken."""
        whole, files = self._open(path)
        if files.exists(whole):
            return False
        draft, _ = self._open(f"{path.rpartition('/')[0]}/.{uuid.uuid4().hex}")
        stream = files.create(draft)
        stream.write(bytearray(data))
        stream.close()
        taken = bool(files.rename(draft, whole))
        if not taken:
            files.delete(draft, False)
        return taken

    def remove(self, path: str) -> None:
        """Remove it."""
        found, files = self._open(path)
        files.delete(found, True)

    def _open(self, path: str) -> tuple[Any, Any]:
        found = self._jvm.org.apache.hadoop.fs.Path(path)
        return found, found.getFileSystem(self._conf)


def _active_session() -> Any:
    """Return the Spark session of this process, where there is one; a worker has no Spark."""
    sql = sys.modules.get("pyspark.sql")
    return sql.SparkSession.getActiveSession() if sql is not None else None
