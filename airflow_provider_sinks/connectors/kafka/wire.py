"""A few questions of Kafka's protocol that librdkafka does not ask: one connection, one question at a time.

They are asked of the first server by itself, so that *which step failed* is known: who answers, which
versions it speaks, whether it takes the user, which cluster it belongs to. Fixed-length versions of the
protocol are used where there are any, which Kafka 2.8 to 4.x all speak; what is newer has compact ones only.

What a server sends is read by its fields and never shown: behind an address that a user wrote may stand
anything.
"""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from airflow_provider_sinks.clients.reach import StoppedError, Trail, tls_stop
from airflow_provider_sinks.core.checks.network import Stop

FETCH, METADATA, SASL_HANDSHAKE, API_VERSIONS, ADD_PARTITIONS, SASL_AUTHENTICATE = 1, 3, 17, 18, 24, 36
TOPIC_IDS_SINCE = 10
"""The version of Metadata that knows topic ids: Kafka 2.8."""

_CLIENT = "airflow-provider-sinks-validate"
_ANSWER_BYTES_MAX = 4 * 1024 * 1024
_TLS_ALERT = 0x15
_VARINT_BITS_MAX = 35
NO_TAGS = b"\0"


class Reader:
    """Reads the fields of an answer, in their order."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def number(self, form: str) -> int:
        """Return a number; ``b``, ``h``, ``i`` and ``q`` have 1, 2, 4 and 8 bytes."""
        (value,) = struct.unpack_from(f">{form}", self._content, self._at)
        self._at += struct.calcsize(f">{form}")
        return int(value)

    def text(self) -> str:
        """Return a text; an absent one is empty."""
        return self._bytes(self.number("h")).decode("utf-8", "replace")

    def blob(self) -> bytes:
        """Return bytes; absent ones are empty."""
        return self._bytes(self.number("i"))

    def compact_text(self) -> str:
        """Return a text of a compact version; an absent one is empty."""
        return self._bytes(self._varint() - 1).decode("utf-8", "replace")

    def compact_repeats(self) -> range:
        """Return how often what follows stands there, in a compact version."""
        return range(max(self._varint() - 1, 0))

    def skip_tags(self) -> None:
        """Leave out the fields that a newer broker may add to a part of a compact version."""
        for _ in range(self._varint()):
            self._varint()
            self._bytes(self._varint())

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.number("B")
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value
            if shift > _VARINT_BITS_MAX:
                raise struct.error("a number without an end")

    def repeats(self) -> range:
        """Return how often what follows stands there."""
        return range(max(self.number("i"), 0))

    def _bytes(self, length: int) -> bytes:
        if length < 0:
            return b""
        if self._at + length > len(self._content):
            raise struct.error("the answer is cut off")
        self._at += length
        return self._content[self._at - length : self._at]


def text(value: str) -> bytes:
    """Write a text."""
    encoded = value.encode()
    return struct.pack(">h", len(encoded)) + encoded


def array(parts: Sequence[bytes]) -> bytes:
    """Write a list."""
    return struct.pack(">i", len(parts)) + b"".join(parts)


def compact_text(value: str) -> bytes:
    """Write a text of a compact version."""
    encoded = value.encode()
    return _varint(len(encoded) + 1) + encoded


def compact_array(parts: Sequence[bytes]) -> bytes:
    """Write a list of a compact version."""
    return _varint(len(parts) + 1) + b"".join(parts)


def _varint(value: int) -> bytes:
    written = b""
    while value >= 0x80:
        written += bytes([value & 0x7F | 0x80])
        value >>= 7
    return written + bytes([value])


class WireConnection:
    """One connection to one broker. Use it as a context manager.

    :param connected: to the broker, inside TLS if it wants that.
    :param trail: of the way to it.
    """

    def __init__(self, connected: socket.socket, trail: Trail) -> None:
        self._socket = connected
        self._is_in_tls = isinstance(connected, ssl.SSLSocket)
        self._trail = trail
        self._asked = 0

    def ask(
        self, api: int, version: int, body: bytes, closed: Stop = Stop.NO_ANSWER, *, compact: bool = False
    ) -> Reader:
        """Ask a question and return the answer.

        :param closed: what it means if the broker hangs up instead.
        :param compact: whether this version is a compact one, whose headers end in tags.
        :raises StoppedError: no answer, or not one of Kafka's.
        """
        closed = Stop.NO_ANSWER if closed is Stop.WANTS_TLS and self._is_in_tls else closed
        self._asked += 1
        tags = NO_TAGS if compact else b""
        request = struct.pack(">hhi", api, version, self._asked) + text(_CLIENT) + tags + body
        try:
            self._socket.settimeout(self._trail.patience())
            self._send(struct.pack(">i", len(request)) + request)
            answer = Reader(self._read(self._length(closed), closed))
            if answer.number("i") != self._asked:
                raise StoppedError(Stop.OTHER_PROTOCOL, "what answers does not speak Kafka")
            if compact:
                answer.skip_tags()
        except TimeoutError:
            raise StoppedError(Stop.NO_ANSWER, "it accepted the connection and did not answer") from None
        except ssl.SSLEOFError:
            raise StoppedError(closed, _HUNG_UP) from None
        except ssl.SSLError as error:
            raise tls_stop(error) from None
        except struct.error:
            raise StoppedError(Stop.OTHER_PROTOCOL, "what answers does not speak Kafka") from None
        except OSError:
            raise StoppedError(closed, _HUNG_UP) from None
        return answer

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send(self, request: bytes) -> None:
        try:
            self._socket.sendall(request)
        except (ssl.SSLEOFError, ConnectionError):
            self._socket.recv(1)  # raises with the reason, if the other side gave one before it hung up
            raise

    def _length(self, closed: Stop) -> int:
        head = self._read(4, closed)
        if head[0] == _TLS_ALERT:
            raise StoppedError(Stop.WANTS_TLS, "it answered in TLS, which the connection does not use")
        length = int(struct.unpack(">i", head)[0])
        if not 4 <= length <= _ANSWER_BYTES_MAX:
            raise StoppedError(Stop.OTHER_PROTOCOL, "what answers does not speak Kafka")
        return length

    def _read(self, length: int, closed: Stop) -> bytes:
        content = b""
        while len(content) < length:
            part = self._socket.recv(length - len(content))
            if not part:
                raise StoppedError(closed, _HUNG_UP)
            content += part
        return content


_HUNG_UP = "it closed the connection instead of answering"


def api_versions(wire: WireConnection) -> dict[int, tuple[int, int]]:
    """Return the lowest and the highest version of each API that the broker speaks.

    :raises StoppedError: it does not speak Kafka, or only inside TLS.
    """
    answer = wire.ask(API_VERSIONS, 0, b"", closed=Stop.WANTS_TLS)
    try:
        answer.number("h")
        found = [(answer.number("h"), answer.number("h"), answer.number("h")) for _ in answer.repeats()]
    except struct.error:
        raise StoppedError(Stop.OTHER_PROTOCOL, "what answers does not speak Kafka") from None
    return {api: (lowest, highest) for api, lowest, highest in found}


@dataclass(frozen=True)
class ClusterFacts:
    """What a broker says of its cluster.

    :param brokers: where each says it can be reached, by its number.
    """

    cluster_id: str
    controller: int
    brokers: Mapping[int, tuple[str, int]]


def cluster(wire: WireConnection) -> ClusterFacts:
    """Return the brokers of the cluster. Names no topic, so that none is made.

    :raises StoppedError: it wants a user first.
    """
    answer = wire.ask(METADATA, 4, array([]) + struct.pack(">b", 0), closed=Stop.WANTS_USER)
    try:
        answer.number("i")
        brokers = {}
        for _ in answer.repeats():
            number, host, port, _rack = answer.number("i"), answer.text(), answer.number("i"), answer.text()
            brokers[number] = (host, port)
        return ClusterFacts(answer.text(), answer.number("i"), brokers)
    except struct.error:
        raise StoppedError(Stop.OTHER_PROTOCOL, "what answers does not speak Kafka") from None


__all__ = [
    "ClusterFacts",
    "Reader",
    "WireConnection",
    "api_versions",
    "array",
    "cluster",
    "compact_array",
    "compact_text",
    "text",
]
