"""The liveness lock: a lock on a file by which a driver knows that the task that started it still lives.

The task holds it for as long as it runs, and the kernel lets go of it when the process dies, however it dies.
No pid is compared and nobody has to say goodbye. Children do not inherit it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})


@contextlib.contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold a file while the body runs; it is made if need be.

    On a file system without locks nothing is held, and everybody takes the file for held for ever.

    :raises BlockingIOError: somebody else holds it.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _lock(descriptor)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise


def is_held(path: Path) -> bool:
    """Return whether somebody holds a file now."""
    return _can_be_taken(path) is False


def is_abandoned(path: Path) -> bool:
    """Return whether a file was held once and is not any more; a file that is not there never was."""
    return _can_be_taken(path) is True


def _can_be_taken(path: Path) -> bool | None:
    """Try, and let go at once; ``None`` when there is no such file."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True
