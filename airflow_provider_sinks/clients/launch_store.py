"""The far end of a launch on a cluster: the folder or URI where its driver writes the status.

The driver writes through Hadoop's file systems, this side reads through fsspec; so ``s3a`` is ``s3`` here. A
status that cannot be read says nothing about the driver: the manager tells whether it lives.
"""

from __future__ import annotations

import re
from typing import Any

import fsspec

from airflow_provider_sinks.core.errors import UnavailableError
from airflow_provider_sinks.core.launch.files import STATUS_NAME, STOP_NAME

_LAUNCH = re.compile(r"\d{6}-[0-9a-f]{8}")
_HADOOP_NAMES = {"s3a": "s3", "s3n": "s3"}


class LaunchStore:
    """The folder of one launch.

    :param uri: as the driver was told; a plain path is a folder of this machine.
    """

    def __init__(self, uri: str) -> None:
        self.uri = uri.rstrip("/")

    def read_status(self) -> str | None:
        """Return the text of the newest status, or ``None`` before the first.

        :raises UnavailableError: when it cannot be read.
        """
        try:
            files, folder = self._open()
            return bytes(files.cat_file(f"{folder}/{STATUS_NAME}")).decode()
        except FileNotFoundError:
            return None
        except Exception as error:
            raise self._unavailable("read", error) from error

    def ask_to_stop(self) -> None:
        """Ask the driver to end between two epochs; asking twice is the same.

        :raises UnavailableError: when the driver cannot be told.
        """
        try:
            files, folder = self._open()
            files.makedirs(folder, exist_ok=True)
            files.pipe_file(f"{folder}/{STOP_NAME}", b"stop\n")
        except Exception as error:
            raise self._unavailable("write", error) from error

    def stop_asked(self) -> bool:
        """Return whether somebody asked the driver to stop.

        :raises UnavailableError: when it cannot be seen.
        """
        try:
            files, folder = self._open()
            return bool(files.exists(f"{folder}/{STOP_NAME}"))
        except Exception as error:
            raise self._unavailable("read", error) from error

    def _open(self) -> tuple[Any, str]:
        files, folder = fsspec.core.url_to_fs(fsspec_uri(self.uri), use_listings_cache=False)
        return files, str(folder)

    def _unavailable(self, verb: str, error: Exception) -> UnavailableError:
        return UnavailableError(
            f"the status at {self.uri} cannot be {'read' if verb == 'read' else 'written to'}",
            f"{type(error).__name__}: {error}",
            "Give this worker the fsspec package and the rights for this URI, or set another status_uri.",
        )


def forget_old_launches(uri: str, kept: int) -> None:
    """Remove the folders of all but the newest launches of a sink. None of their drivers may live.

    :param uri: the folder of the sink's launches; what is no launch there is left alone.
    :param kept: how many stay.
    :raises UnavailableError: when they cannot be seen or removed.
    """
    try:
        files, folder = fsspec.core.url_to_fs(fsspec_uri(uri.rstrip("/")), use_listings_cache=False)
        names = [str(path).rstrip("/") for path in files.ls(folder, detail=False)]
        launches = sorted(name for name in names if _LAUNCH.fullmatch(name.rpartition("/")[2]))
        for name in launches[:-kept]:
            files.rm(name, recursive=True)
    except FileNotFoundError:
        return
    except Exception as error:
        raise UnavailableError(
            f"old launches in {uri} cannot be removed",
            f"{type(error).__name__}: {error}",
            "They do no harm; give this worker the right to delete there, or remove them yourself.",
        ) from error


def fsspec_uri(uri: str) -> str:
    """Return the URI by which fsspec knows what Hadoop calls ``uri``."""
    found = re.match(r"(\w+)(://.*)", uri, re.DOTALL)
    return f"{_HADOOP_NAMES.get(found[1], found[1])}{found[2]}" if found else uri
