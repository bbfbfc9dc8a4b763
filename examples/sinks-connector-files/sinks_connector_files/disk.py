"""What a file system must give: a name that only one can take, and that what was synced stays.

A local disk gives both; object stores do not; NFS was not tried. Nothing else here is about the disk.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from airflow_provider_sinks.core.errors import UnavailableError


def create(path: Path, data: bytes) -> bool:
    """Write a file under a name that is free; False when somebody else has it. It is whole, or not there.

    A server of NFS may have made the link although its answer said that the name is taken: only the number
    of links of the draft tells.
    """
    draft = _draft(path, data)
    try:
        os.link(draft, path)
    except FileExistsError:
        if draft.stat().st_nlink != 2:
            return False
    finally:
        draft.unlink(missing_ok=True)
    sync(path.parent)
    return True


def replace(path: Path, data: bytes) -> None:
    """Write a file in the place of another; readers see the one or the other."""
    _draft(path, data).replace(path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Return when what is in a file, or which names a folder has, outlives a loss of power."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def answering(what: Path) -> Iterator[None]:
    """Tell errors of the disk as what they are to a sink: something that may work a little later."""
    try:
        yield
    except OSError as error:
        raise UnavailableError(
            f"{what} could not be used", str(error), "See that it can be written."
        ) from error


def _draft(path: Path, data: bytes) -> Path:
    draft = path.parent / f".{uuid.uuid4().hex}"
    draft.write_bytes(data)
    sync(draft)
    return draft
