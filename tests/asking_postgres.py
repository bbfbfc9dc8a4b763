"""A Postgres that asks whoever comes for his password, and hears what he says."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

_NO_TLS = (80877103, 80877104)
_CLEARTEXT = b"R" + struct.pack(">ii", 8, 3)


@dataclass
class Listener:
    """A server that asks whoever comes for his password.

    :param heard: what it was told after it had asked.
    """

    server: socket.socket
    heard: list[bytes] = field(default_factory=list)
    asked: int = 0

    @property
    def port(self) -> int:
        return int(self.server.getsockname()[1])

    def serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self.server.accept()
                with client, suppress(OSError, struct.error):
                    self._ask(client)

    def _ask(self, client: socket.socket) -> None:
        while struct.unpack(">i", _packet(client)[:4])[0] in _NO_TLS:
            client.sendall(b"N")
        self.asked += 1
        client.sendall(_CLEARTEXT)
        if client.recv(1) == b"p":
            self.heard.append(_packet(client))


def _packet(client: socket.socket) -> bytes:
    (length,) = struct.unpack(">i", client.recv(4))
    return client.recv(length - 4)


@contextmanager
def asking_postgres() -> Iterator[Listener]:
    """Start one on this machine."""
    listening = Listener(socket.create_server(("127.0.0.1", 0)))
    thread = threading.Thread(target=listening.serve, daemon=True)
    thread.start()
    yield listening
    listening.server.shutdown(socket.SHUT_RDWR)
    listening.server.close()
    thread.join(5)
