"""The way to a server by our own hands: name, TCP, TLS. Says exactly where it ends.

Client libraries report a name that does not exist, a port that is closed and a certificate that has expired
with one and the same time-out. The names are resolved here, once, and the connection is made to the very
address that was judged.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TypeVar

from airflow_provider_sinks.clients.time_limit import Deadline, within
from airflow_provider_sinks.core.checks.addresses import forbidden
from airflow_provider_sinks.core.checks.network import CertificateFacts, Layer, ServerFacts, Stop
from airflow_provider_sinks.core.errors import UnavailableError

T = TypeVar("T")

STEP_SECONDS = 5.0
"""How long one step may take."""

_EXPIRED, _NOT_YET_VALID, _OTHER_NAME, _OTHER_ADDRESS = 10, 9, 62, 64
_OF_CERTIFICATE = ("CERTIFICATE", "UNKNOWN_CA", "ACCESS_DENIED", "HANDSHAKE_FAILURE")
_NOT_TLS = (
    "WRONG_VERSION_NUMBER",
    "RECORD_LAYER",
    "PACKET_LENGTH_TOO_LONG",
    "UNEXPECTED_EOF",
    "HTTP_REQUEST",
)


class StoppedError(Exception):
    """The way to a server ended.

    :param why: in our own words; what the server sent is not repeated.
    """

    def __init__(self, stop: Stop, why: str) -> None:
        super().__init__(stop, why)
        self.stop = stop
        self.why = why


@dataclass
class Trail:
    """What is known of the way so far.

    :param deadline: of all checks.
    """

    server: str
    deadline: Deadline
    addresses: tuple[str, ...] = ()
    encrypted: bool = False
    certificate: CertificateFacts | None = None
    version: str = ""
    seconds: dict[Layer, float] = field(default_factory=dict)

    def patience(self) -> float:
        """Return how long the next answer may take, in seconds."""
        return self.deadline.left(STEP_SECONDS)

    @contextlib.contextmanager
    def step(self, step: Layer) -> Iterator[None]:
        """Take the time of a step."""
        begun = time.monotonic()
        try:
            yield
        finally:
            self.seconds[step] = self.seconds.get(step, 0.0) + time.monotonic() - begun

    def facts(self) -> ServerFacts:
        """Return the facts of a way that went to its end."""
        return ServerFacts(
            self.server,
            self.addresses,
            encrypted=self.encrypted,
            certificate=self.certificate,
            version=self.version,
            seconds=dict(self.seconds),
        )


def follow(server: str, deadline: Deadline, go: Callable[[Trail], None]) -> ServerFacts:
    """Return how far the way to a server goes.

    :param go: goes it; raises :class:`StoppedError` where it ends.
    """
    trail = Trail(server, deadline)
    try:
        go(trail)
    except StoppedError as error:
        return replace(trail.facts(), stopped=error.stop, why=error.why)
    except UnavailableError as error:
        return replace(trail.facts(), stopped=_unfinished(trail), why=error.primary)
    return trail.facts()


def connect(host: str, port: int, trail: Trail, family: int = socket.AF_UNSPEC) -> socket.socket:
    """Return a connection to the first address of a server that takes one.

    :raises StoppedError: the name stands for nothing, or for what nothing may be sent to; or nobody answers.
    """
    places = resolve(host, port, trail, family)
    with trail.step(Layer.TCP):
        return _first(places, trail)


def resolve(
    host: str, port: int, trail: Trail, family: int = socket.AF_UNSPEC
) -> list[tuple[int, tuple[str, int]]]:
    """Return what a name stands for, each with its family; nothing is sent to anybody but the name service.

    :raises StoppedError: the name stands for nothing, or for what nothing may be sent to.
    """
    with trail.step(Layer.NAME):
        places = _resolve(host, port, trail, family)
        for address in trail.addresses:
            reason = forbidden(address)
            if reason:
                raise StoppedError(Stop.FORBIDDEN, f"{address} is refused: {reason}")
    return places


def shake_hands(plain: socket.socket, context: ssl.SSLContext, host: str, trail: Trail) -> ssl.SSLSocket:
    """Return a connection inside TLS.

    :raises StoppedError: the certificate does not pass, or the other side does not speak TLS.
    """
    with trail.step(Layer.TLS):
        plain.settimeout(trail.patience())
        try:
            secured = context.wrap_socket(plain, server_hostname=host)
        except (ssl.SSLError, OSError) as error:
            raise tls_stop(error) from None
        trail.encrypted, trail.certificate = True, _certificate(secured)
    return secured


def tls_stop(error: OSError) -> StoppedError:
    """Return what an error of TLS says, in our words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _verification(error)
    if isinstance(error, TimeoutError):
        return StoppedError(Stop.TLS_FAILED, "the TLS handshake was not answered")
    reason = (getattr(error, "reason", None) or "").upper()
    if "ALERT" in reason and any(word in reason for word in _OF_CERTIFICATE):
        return StoppedError(
            Stop.OUR_CERTIFICATE, f"the server did not accept our certificate, or none ({reason})"
        )
    if not isinstance(error, ssl.SSLError) or any(word in reason for word in _NOT_TLS):
        return StoppedError(Stop.NO_TLS, "the server did not answer in TLS")
    return StoppedError(Stop.TLS_FAILED, f"the TLS handshake failed ({reason or 'no reason given'})")


def split(server: str) -> tuple[str, int]:
    """Return host and port of ``host:port`` or ``[address]:port``."""
    host, _, port = server.rpartition(":")
    return host.strip("[]"), int(port)


def _resolve(host: str, port: int, trail: Trail, family: int) -> list[tuple[int, tuple[str, int]]]:
    def ask() -> list[tuple[int, tuple[str, int]]]:
        found = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)
        return [(int(kind), (str(where[0]), port)) for kind, _, _, _, where in found]

    try:
        places = within(trail.patience(), ask)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not a name"
        raise StoppedError(Stop.NO_ADDRESS, f"the name has no address ({reason})") from None
    except UnavailableError:
        raise StoppedError(Stop.NO_ADDRESS, "the name service did not answer") from None
    trail.addresses = tuple(dict.fromkeys(address for _, (address, _) in places))
    return places


def _first(places: list[tuple[int, tuple[str, int]]], trail: Trail) -> socket.socket:
    stopped = StoppedError(Stop.UNREACHABLE, "there is no way to it")
    for family, place in places:
        tried = socket.socket(family, socket.SOCK_STREAM)
        try:
            tried.settimeout(trail.patience())
            tried.connect(place)
        except OSError as error:
            tried.close()
            stopped = _tcp_stop(error)
        else:
            trail.addresses = tuple(dict.fromkeys([place[0], *trail.addresses]))
            return tried
    raise stopped


def _tcp_stop(error: OSError) -> StoppedError:
    if isinstance(error, TimeoutError):
        return StoppedError(Stop.SILENT, f"no answer within {STEP_SECONDS:g} s")
    if isinstance(error, ConnectionRefusedError):
        return StoppedError(Stop.REFUSED, "the connection was refused")
    return StoppedError(Stop.UNREACHABLE, error.strerror or "there is no way to it")


def _verification(error: ssl.SSLCertVerificationError) -> StoppedError:
    why = f"its certificate did not pass: {error.verify_message}"
    if error.verify_code == _EXPIRED:
        return StoppedError(Stop.EXPIRED, why)
    if error.verify_code == _NOT_YET_VALID:
        return StoppedError(Stop.NOT_YET_VALID, why)
    if error.verify_code in (_OTHER_NAME, _OTHER_ADDRESS):
        return StoppedError(Stop.OTHER_HOST, why)
    return StoppedError(Stop.NOT_TRUSTED, why)


def _certificate(secured: ssl.SSLSocket) -> CertificateFacts | None:
    """Return what Python shows of a certificate: nothing, where it was not verified."""
    shown = secured.getpeercert()
    if not shown:
        return None
    return CertificateFacts(datetime.fromtimestamp(ssl.cert_time_to_seconds(str(shown["notAfter"])), UTC))


def _unfinished(trail: Trail) -> Stop:
    """Return the stop that stands for a way that ran out of time."""
    done = max(trail.seconds, default=Layer.NAME)
    return {Layer.NAME: Stop.NO_ADDRESS, Layer.TCP: Stop.SILENT, Layer.TLS: Stop.TLS_FAILED}.get(
        done, Stop.NO_ANSWER
    )
