"""Servers that an attacker would have secrets sent to: they take whoever comes, and keep what they are told.

::

    with listening_broker() as broker:
        ...  # {"bootstrap.servers": broker.address}
    assert not broker.has_heard("the stored password")
"""

from __future__ import annotations

import base64
import contextlib
import enum
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

_UNSUPPORTED_VERSION = 35


class _Api(enum.IntEnum):
    PRODUCE = 0
    FETCH = 1
    METADATA = 3
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    ADD_PARTITIONS = 24
    SASL_AUTHENTICATE = 36


_SPOKEN = {
    _Api.PRODUCE: 9,
    _Api.FETCH: 12,
    _Api.METADATA: 12,
    _Api.SASL_HANDSHAKE: 1,
    _Api.API_VERSIONS: 0,
    _Api.ADD_PARTITIONS: 3,
    _Api.SASL_AUTHENTICATE: 0,
}
"""By API the newest version that is offered: as many as our preflight demands before it logs in."""

_TLS_REQUEST = 80877103


@dataclass
class Listener:
    """A server on this machine, and all that was ever said to it.

    :param visits: how often somebody connected.
    :param greeting: what a service says in the place of an answer, if it does not speak HTTP.
    :param logins: user and password of who logged in; of SCRAM the proof, which can be guessed at offline.
    """

    address: str
    visits: int = 0
    greeting: bytes = b""
    logins: list[tuple[str, str]] = field(default_factory=list)
    _heard: bytearray = field(default_factory=bytearray)

    @property
    def host(self) -> str:
        """Where it listens, without the port."""
        return self.address.rpartition(":")[0]

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self.address.rpartition(":")[2])

    def has_heard(self, secret: str) -> bool:
        """Return whether a text was said to it, in whatever place."""
        return secret.encode() in bytes(self._heard)

    def hear(self, connected: socket.socket, length: int) -> bytes:
        """Take exactly so many bytes."""
        content = b""
        while len(content) < length:
            part = connected.recv(length - len(content))
            if not part:
                raise ConnectionError
            content += part
            self._heard += part
        return content


@contextlib.contextmanager
def listening_broker() -> Iterator[Listener]:
    """Start a broker that offers PLAIN and SCRAM, and believes everybody."""
    with _listening(_as_broker) as listener:
        yield listener


@contextlib.contextmanager
def listening_database() -> Iterator[Listener]:
    """Start a Postgres that asks for the password in clear."""
    with _listening(_as_database) as listener:
        yield listener


@contextlib.contextmanager
def listening_service(answer: bytes = b'["AVRO"]', status: int = 200) -> Iterator[Listener]:
    """Start a service that speaks HTTP, and answers each question as a schema registry does.

    :param answer: what it says, as JSON.
    """

    def serve(listener: Listener, connected: socket.socket) -> None:
        _as_service(listener, connected, status, answer)

    with _listening(serve) as listener:
        yield listener


@contextlib.contextmanager
def _listening(serve: Callable[[Listener, socket.socket], None]) -> Iterator[Listener]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        listener = Listener(f"127.0.0.1:{server.getsockname()[1]}")
        threading.Thread(target=_accept, args=(server, listener, serve), daemon=True).start()
        yield listener


def _accept(
    server: socket.socket, listener: Listener, serve: Callable[[Listener, socket.socket], None]
) -> None:
    with contextlib.suppress(OSError):
        while True:
            connected, _ = server.accept()
            listener.visits += 1
            threading.Thread(target=_talk, args=(listener, connected, serve), daemon=True).start()


def _talk(
    listener: Listener, connected: socket.socket, serve: Callable[[Listener, socket.socket], None]
) -> None:
    with contextlib.suppress(OSError, struct.error), connected:
        connected.settimeout(30)
        serve(listener, connected)


def _as_broker(listener: Listener, connected: socket.socket) -> None:
    mechanism = ""
    while True:
        (length,) = struct.unpack(">i", listener.hear(connected, 4))
        request = listener.hear(connected, length)
        api, version, number, client_length = struct.unpack_from(">hhih", request)
        body = request[10 + max(client_length, 0) :]
        if api == _Api.SASL_HANDSHAKE:
            mechanism = body[2:].decode()
        answer = _answer(listener, mechanism, api, version, body)
        connected.sendall(struct.pack(">ii", 4 + len(answer), number) + answer)


def _answer(listener: Listener, mechanism: str, api: int, version: int, body: bytes) -> bytes:
    match api:
        case _Api.API_VERSIONS:
            versions = b"".join(struct.pack(">hhh", key, 0, newest) for key, newest in _SPOKEN.items())
            error = _UNSUPPORTED_VERSION if version > 0 else 0
            return struct.pack(">hi", error, len(_SPOKEN)) + versions
        case _Api.SASL_HANDSHAKE:
            return struct.pack(">hi", 0, 2) + _text("PLAIN") + _text("SCRAM-SHA-256")
        case _Api.SASL_AUTHENTICATE:
            return struct.pack(">hh", 0, -1) + _blob(_login(listener, mechanism, body[4:]))
        case _Api.METADATA if version == 4:
            broker = struct.pack(">i", 0) + _text(listener.host) + struct.pack(">ih", listener.port, -1)
            return struct.pack(">ii", 0, 1) + broker + _text("a cluster") + struct.pack(">ii", 0, 0)
    raise ConnectionError


def _login(listener: Listener, mechanism: str, said: bytes) -> bytes:
    """Take a word of who logs in, and return the next one."""
    if mechanism == "PLAIN":
        _, user, password = said.split(b"\0")
        listener.logins.append((user.decode(), password.decode()))
        return b""
    words = dict(part.split("=", 1) for part in said.decode().split(",") if "=" in part)
    if "p" in words:
        listener.logins.append(("", words["p"]))
        return b"v=" + base64.b64encode(b"believed")
    return f"r={words['r']}more,s={base64.b64encode(b'salt').decode()},i=4096".encode()


def _as_database(listener: Listener, connected: socket.socket) -> None:
    while True:
        length, code = struct.unpack(">ii", listener.hear(connected, 8))
        rest = listener.hear(connected, length - 8)
        if code != _TLS_REQUEST:
            break
        connected.sendall(b"N")
    words = rest.decode().split("\0")
    user = dict(zip(words[::2], words[1::2], strict=False)).get("user", "")
    connected.sendall(b"R" + struct.pack(">ii", 8, 3))
    (length,) = struct.unpack(">xi", listener.hear(connected, 5))
    listener.logins.append((user, listener.hear(connected, length - 4).rstrip(b"\0").decode()))


def _as_service(listener: Listener, connected: socket.socket, status: int, answer: bytes) -> None:
    while True:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += listener.hear(connected, 1)
        words = dict(line.split(": ", 1) for line in head.decode("latin-1").split("\r\n")[1:] if line)
        named = {name.lower(): value for name, value in words.items()}
        listener.hear(connected, int(named.get("content-length", 0)))
        kind, _, told = named.get("authorization", "").partition(" ")
        if kind == "Basic":
            user, _, password = base64.b64decode(told).decode().partition(":")
            listener.logins.append((user, password))
        elif kind:
            listener.logins.append(("", told))
        if listener.greeting:
            connected.sendall(listener.greeting)
            return
        length = f"Content-Type: application/json\r\nContent-Length: {len(answer)}\r\n\r\n"
        connected.sendall(f"HTTP/1.1 {status} Said\r\n{length}".encode() + answer)


def _text(value: str) -> bytes:
    return struct.pack(">h", len(value.encode())) + value.encode()


def _blob(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value
