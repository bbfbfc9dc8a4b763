"""The way to a server, step by step: name, address, TCP, TLS, protocol, user. What stopped it is named.

A connection may name several servers; a client needs one that answers. So a step passes when one server
passes it, and the check names the others.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from airflow_provider_sinks.core.checks.check import Check, Checks, Family

SOON = timedelta(days=14)
"""A certificate that ends earlier is worth a word."""


class Layer(enum.StrEnum):
    """A step on the way."""

    NAME = "name resolution"
    TCP = "TCP"
    TLS = "TLS"
    PROTOCOL = "protocol"
    USER = "authentication"


class Stop(enum.Enum):
    """What stopped the way to a server. The value: the step, whether it may pass later, and what helps.

    A :class:`Way` may know better what helps, by the options of its connections.
    """

    NO_ADDRESS = Layer.NAME, True, "Correct the name, or the name service of this worker."
    FORBIDDEN = Layer.NAME, False, "A connection leads to a broker or a database, never to such an address."
    REFUSED = Layer.TCP, True, "Check the port, and that the server is up."
    SILENT = Layer.TCP, True, "Check the address, and whether a firewall drops packets."
    UNREACHABLE = Layer.TCP, True, "Check the network between this worker and the server."
    NO_TLS = Layer.TLS, False, "This port does not speak TLS: correct the port, or turn TLS off."
    EXPIRED = Layer.TLS, False, "Renew the certificate of the server."
    NOT_YET_VALID = Layer.TLS, False, "Compare the clocks of this worker and of whoever made the certificate."
    OTHER_HOST = Layer.TLS, False, "Use a name that the certificate is made for, or make it for this one."
    NOT_TRUSTED = Layer.TLS, False, "Name the CA that signed it in the connection."
    OUR_CERTIFICATE = Layer.TLS, False, "Give a certificate and key that this server accepts."
    TLS_FAILED = Layer.TLS, False, "Compare the TLS versions and ciphers of both sides."
    WANTS_TLS = Layer.PROTOCOL, False, "If this port speaks TLS, turn it on."
    OTHER_PROTOCOL = Layer.PROTOCOL, False, "Check the port: something else answers there."
    NO_ANSWER = Layer.PROTOCOL, True, "Check the port; a server that is starting or overloaded answers later."
    TOO_OLD = Layer.PROTOCOL, False, "A newer server is needed."
    MECHANISM = Layer.USER, False, "Set a mechanism of authentication that the server offers."
    CREDENTIALS = Layer.USER, False, "Correct the user and the password of the connection."
    NOT_THE_SERVER = (
        Layer.USER,
        False,
        "The server could not prove that it knows the password: see who answers.",
    )
    WANTS_USER = (
        Layer.USER,
        False,
        "The server wants a user, or lets nobody in without one: see the options.",
    )

    @property
    def step(self) -> Layer:
        """Where it happens."""
        return Layer(self.value[0])

    @property
    def retryable(self) -> bool:
        """Whether the same way may be open later."""
        return bool(self.value[1])

    @property
    def hint(self) -> str:
        """What helps."""
        return str(self.value[2])


@dataclass(frozen=True)
class Way:
    """How one goes to the servers of a kind of connection.

    :param steps: in their order.
    :param hints: what helps by the options of such a connection, where that can be told.
    """

    steps: Sequence[Layer]
    hints: Mapping[Stop, str] = field(default_factory=dict)

    def hint(self, stop: Stop) -> str:
        """Return what helps."""
        return self.hints.get(stop, stop.hint)


@dataclass(frozen=True)
class CertificateFacts:
    """What the certificate of a server says, if it passed.

    :param ends: when it expires.
    """

    ends: datetime


@dataclass(frozen=True)
class ServerFacts:
    """How far the way to one server went.

    :param server: ``host:port``, as the connection names it.
    :param addresses: what the name stands for; the one that was connected to first.
    :param stopped: what ended the way; ``None`` if it went to its end.
    :param why: about the stop, in our own words: what a server answered is not repeated.
    :param encrypted: whether the way is inside TLS.
    :param version: what the server says of its version, or which of its APIs count.
    :param seconds: how long each step took.
    """

    server: str
    addresses: tuple[str, ...] = ()
    stopped: Stop | None = None
    why: str = ""
    encrypted: bool = False
    certificate: CertificateFacts | None = None
    version: str = ""
    seconds: Mapping[Layer, float] = field(default_factory=dict)

    def stopped_at(self, step: Layer) -> bool:
        """Whether the way ended there."""
        return self.stopped is not None and self.stopped.step is step


def network_checks(
    conn_id: str,
    servers: Sequence[ServerFacts],
    way: Way,
    *,
    tls: bool,
    user: str = "",
    now: datetime | None = None,
) -> Iterator[Check]:
    """Judge the way to the servers of a connection.

    :param tls: whether the connection uses TLS.
    :param user: who authenticates; empty if nobody does.
    :param now: the time that certificates are judged at.
    """
    checks, reached = Checks(conn_id, Family.NETWORK), list(servers)
    for place, step in enumerate(way.steps):
        if not reached:
            yield checks.skips(step.value, f"no server passed the check before it: {way.steps[place - 1]}")
        elif step is Layer.TLS and not tls:
            yield checks.skips(step.value, "not used: everything is sent in clear")
        else:
            yield _judge(checks, step, reached, way, user)
            reached = [server for server in reached if not server.stopped_at(step)]
    yield from _certificates(checks, servers, now or datetime.now(UTC))


def _judge(checks: Checks, step: Layer, reached: Sequence[ServerFacts], way: Way, user: str) -> Check:
    seconds = max(server.seconds.get(step, 0.0) for server in reached)
    well = [server for server in reached if not server.stopped_at(step)]
    stops = [server.stopped for server in reached if server.stopped and server.stopped_at(step)]
    troubles = "; ".join(f"{server.server}: {server.why}" for server in reached if server.stopped_at(step))
    if not well or Stop.FORBIDDEN in stops:
        hint = way.hint(Stop.FORBIDDEN if Stop.FORBIDDEN in stops else stops[0])
        retryable = all(stop.retryable for stop in stops)
        return checks.fails(step.value, troubles, hint, seconds, retryable=retryable)
    detail = "; but ".join(filter(None, [_seen(step, well, user), troubles]))
    return checks.passes(step.value, detail, seconds)


def _seen(step: Layer, well: Sequence[ServerFacts], user: str) -> str:
    servers = ", ".join(server.server for server in well)
    if step is Layer.NAME:
        return "; ".join(f"{server.server} is {', '.join(server.addresses)}" for server in well)
    if step is Layer.PROTOCOL:
        return well[0].version or f"{servers} speaks it"
    if step is Layer.USER:
        return f'accepted as "{user}"' if user else "no user is asked for"
    return f"{servers} {'takes connections' if step is Layer.TCP else 'shook hands'}"


def _certificates(checks: Checks, servers: Sequence[ServerFacts], now: datetime) -> Iterator[Check]:
    """Say when the certificates end; those that have are stopped at TLS."""
    held = [(facts.certificate.ends, facts) for facts in servers if facts.certificate]
    if not held:
        return
    ends, facts = min(held, key=lambda pair: pair[0])
    detail = f"{facts.server}: valid until {ends:%Y-%m-%d}, for {(ends - now).days} more days"
    if ends - now < SOON:
        yield checks.unknown("certificate", detail, "Renew it before then: no sink connects after it ended.")
    else:
        yield checks.passes("certificate", detail)
