"""A wire between a sink and its Postgres, that can be cut at the worst moment."""

from __future__ import annotations

import contextlib
import enum
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

COMMIT = b"COMMIT\0"
"""In a client's statement as in the server's answer to it."""


class Cuts(enum.Enum):
    NEVER = enum.auto()
    BEFORE_COMMIT = enum.auto()
    BEHIND_COMMIT = enum.auto()


class Proxy:
    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._cuts = Cuts.NEVER
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @contextmanager
    def cutting(self, cuts: Cuts) -> Iterator[None]:
        self._cuts = cuts
        try:
            yield
        finally:
            self._cuts = Cuts.NEVER

    def cut(self, server_sees_port: int) -> None:
        """Break the connection that the server sees coming from this port."""
        for pair in self._pairs:
            with contextlib.suppress(OSError):
                if pair[1].getsockname()[1] == server_sees_port:
                    _break(pair)

    def close(self) -> None:
        self._listener.close()
        for pair in self._pairs:
            _break(pair)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                pair = (client, socket.create_connection(self._server))
                self._pairs.append(pair)
                threading.Thread(target=self._relay, args=(pair, 0, Cuts.BEFORE_COMMIT), daemon=True).start()
                threading.Thread(target=self._relay, args=(pair, 1, Cuts.BEHIND_COMMIT), daemon=True).start()

    def _relay(self, pair: tuple[socket.socket, socket.socket], source: int, cuts: Cuts) -> None:
        with contextlib.suppress(OSError):
            while data := pair[source].recv(1 << 16):
                if self._cuts is cuts and COMMIT in data:
                    break
                pair[1 - source].sendall(data)
        _break(pair)


def _break(pair: tuple[socket.socket, socket.socket]) -> None:
    for end in pair:
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()
