"""Ports for what is started here: each is given once, to one process of this machine.

A port is chosen seconds before a service listens on it, and a service that was killed leaves it for a while.
So it is claimed until the process that asked for it ends, by a lock on one byte of a file that all share.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import socket
import tempfile
from functools import cache
from pathlib import Path

LOCALHOST = "127.0.0.1"
_PORTS = range(20_000, 32_000)
_given: set[int] = set()


def free_port() -> int:
    """Return a port on which nothing listened a moment ago, and which nobody else is given.

    Below the range from which the system takes ports for outgoing connections: there, while a killed broker
    is down, a client that tries to come back could be given the broker's own port, and keep it.
    """
    while True:
        port = random.choice(_PORTS)  # noqa: S311 - nothing secret about a port
        if _claim(port) and _is_free(port):
            return port


def accepts(port: int) -> bool:
    """Tell whether something listens on a port of this machine."""
    try:
        with socket.create_connection((LOCALHOST, port), timeout=1):
            return True
    except OSError:
        return False


def _claim(port: int) -> bool:
    """Claim a port for as long as this process lives; false where it was given before, here or elsewhere."""
    if port in _given:
        return False
    try:
        fcntl.lockf(_claims(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    _given.add(port)
    return True


@cache
def _claims() -> int:
    """Open the file of claims, for good: closing it once would give up every lock of this process."""
    path = Path(tempfile.gettempdir(), f"sinks-ports-{os.geteuid()}")
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)


def _is_free(port: int) -> bool:
    with socket.socket() as probe, contextlib.suppress(OSError):
        probe.bind((LOCALHOST, port))
        return True
    return False
