"""A wire between a sink and its target, on which a commit or its answer gets lost at the worst moment."""

from __future__ import annotations

import contextlib
import enum
import socket
import struct
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_CHUNK_BYTES = 1 << 16


class Loss(enum.Enum):
    NOTHING = enum.auto()
    COMMIT = enum.auto()
    ANSWER = enum.auto()


@dataclass(eq=False)
class Line:
    """One connection through the wire.

    :param is_silent: nothing comes back any more, though both ends believe that they are connected.
    """

    client: socket.socket
    server: socket.socket
    is_silent: bool = False

    def cut(self) -> None:
        for end in (self.client, self.server):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


class Wire(ABC):
    """Listens on a port of its own.

    :param server: where it leads to; may be set later, nobody gets through until then.
    """

    def __init__(self, server: tuple[str, int] = ("", 0)) -> None:
        self.server = server
        self._loss = Loss.NOTHING
        self._lines: list[Line] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @contextmanager
    def losing(self, loss: Loss) -> Iterator[None]:
        self._loss = loss
        try:
            yield
        finally:
            self._loss = Loss.NOTHING

    def cut(self, server_sees_port: int) -> None:
        """Break the connection that the server sees coming from this port."""
        for line in self._lines:
            with contextlib.suppress(OSError):
                if line.server.getsockname()[1] == server_sees_port:
                    line.cut()

    def cut_client(self, port: int) -> None:
        """Break the connection that comes from this port of a client."""
        for line in self._lines:
            with contextlib.suppress(OSError):
                if line.client.getpeername()[1] == port:
                    line.cut()

    def close(self) -> None:
        self._listener.close()
        for line in self._lines:
            line.cut()

    @abstractmethod
    def _ask(self, line: Line) -> None:
        """Carry what the client sends."""

    @abstractmethod
    def _answer(self, line: Line) -> None:
        """Carry what the server sends."""

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    line = Line(client, socket.create_connection(self.server))
                except OSError:
                    client.close()
                    continue
                self._lines.append(line)
                for carry in (self._ask, self._answer):
                    threading.Thread(target=_until_cut, args=(carry, line), daemon=True).start()


class PostgresWire(Wire):
    """It is cut: in front of the statement, or in front of the answer, which has the same word in it."""

    _COMMIT = b"COMMIT\0"

    def _ask(self, line: Line) -> None:
        while data := line.client.recv(_CHUNK_BYTES):
            if self._loss is Loss.COMMIT and self._COMMIT in data:
                return
            line.server.sendall(data)

    def _answer(self, line: Line) -> None:
        while data := line.server.recv(_CHUNK_BYTES):
            if self._loss is Loss.ANSWER and self._COMMIT in data:
                return
            line.client.sendall(data)


class KafkaWire(Wire):
    """It goes silent: librdkafka repeats a commit whose connection breaks, and hears that it happened."""

    _END_TRANSACTION = 26
    _HEAD = struct.Struct(">ih")

    def _ask(self, line: Line) -> None:
        sent = line.client.makefile("rb")
        while head := sent.read(self._HEAD.size):
            length, question = self._HEAD.unpack(head)
            body = sent.read(length - 2)
            line.is_silent |= question == self._END_TRANSACTION and self._loss is not Loss.NOTHING
            if not line.is_silent or self._loss is Loss.ANSWER:
                line.server.sendall(head + body)

    def _answer(self, line: Line) -> None:
        while data := line.server.recv(_CHUNK_BYTES):
            if not line.is_silent:
                line.client.sendall(data)


def _until_cut(carry: Callable[[Line], None], line: Line) -> None:
    with contextlib.suppress(OSError, struct.error):
        carry(line)
    line.cut()
