"""A broker that is fenced, as one is for a moment after a freeze or a start: alone, it names no broker.

A real one is fenced for some milliseconds, when it wants; this one for as long as a test needs it. It speaks
as much of Kafka's protocol as a listing of topics takes, of which it has none, and the making of one, which
stays unseen.

::

    with fenced_broker() as broker:
        ...  # {"bootstrap.servers": broker.address}
        broker.is_fenced = False
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass

CLUSTER = "a cluster"

_METADATA, _API_VERSIONS, _CREATE_TOPICS = 3, 18, 19
_NEWEST = {_METADATA: 4, _API_VERSIONS: 0, _CREATE_TOPICS: 1}
_UNSUPPORTED_VERSION, _INVALID_REPLICATION_FACTOR = 35, 38
_ALL_FENCED = "Unable to replicate the partition 1 time(s): All brokers are currently fenced."
_NOBODY = -1


@dataclass
class FencedBroker:
    """A broker on this machine.

    :param asked: how often it was asked for metadata.
    :param refusals: how many topics it will refuse to place, because it is fenced again.
    """

    port: int
    is_fenced: bool = True
    asked: int = 0
    refusals: int = 0

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self.port}"

    def answer(self, api: int, version: int, question: bytes) -> bytes:
        """Return what it says, without the head."""
        if api == _CREATE_TOPICS:
            return self._made(question)
        if api == _API_VERSIONS:
            spoken = b"".join(struct.pack(">hhh", key, 0, newest) for key, newest in _NEWEST.items())
            return struct.pack(">hi", _UNSUPPORTED_VERSION if version else 0, len(_NEWEST)) + spoken
        self.asked += 1
        brokers = [] if self.is_fenced else [struct.pack(">i", 0) + _text("127.0.0.1") + self._place()]
        controller = _NOBODY if self.is_fenced else 0
        listed = struct.pack(">ii", 0, len(brokers)) + b"".join(brokers)
        return listed + _text(CLUSTER) + struct.pack(">ii", controller, 0)

    def _made(self, question: bytes) -> bytes:
        """Return the answer to a question for one topic: client, number of topics, its name."""
        begin = 2 + struct.unpack_from(">h", question)[0] + 4
        end = begin + 2 + struct.unpack_from(">h", question, begin)[0]
        refused, self.refusals = self.refusals > 0, max(self.refusals - 1, 0)
        code = _INVALID_REPLICATION_FACTOR if refused else 0
        said = _text(_ALL_FENCED) if refused else struct.pack(">h", -1)
        return struct.pack(">i", 1) + question[begin:end] + struct.pack(">h", code) + said

    def _place(self) -> bytes:
        return struct.pack(">ih", self.port, -1)


@contextlib.contextmanager
def fenced_broker() -> Iterator[FencedBroker]:
    """Start one."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        broker = FencedBroker(server.getsockname()[1])
        threading.Thread(target=_accept, args=(server, broker), daemon=True).start()
        yield broker


def _accept(server: socket.socket, broker: FencedBroker) -> None:
    with contextlib.suppress(OSError):
        while True:
            connected, _ = server.accept()
            threading.Thread(target=_serve, args=(connected, broker), daemon=True).start()


def _serve(connected: socket.socket, broker: FencedBroker) -> None:
    with contextlib.suppress(OSError, struct.error), connected, connected.makefile("rb") as heard:
        while True:
            (length,) = struct.unpack(">i", heard.read(4))
            question = heard.read(length)
            api, version, number = struct.unpack_from(">hhi", question)
            answer = broker.answer(api, version, question[8:])
            connected.sendall(struct.pack(">ii", 4 + len(answer), number) + answer)


def _text(value: str) -> bytes:
    return struct.pack(">h", len(value.encode())) + value.encode()
