"""The way to the brokers of a connection: how far it goes, and what stands at its end."""

from __future__ import annotations

import socket
import ssl
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from airflow_provider_sinks.clients.reach import StoppedError, Trail, connect, follow, shake_hands, split
from airflow_provider_sinks.clients.time_limit import Deadline
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.kafka.preflight.login import authenticate
from airflow_provider_sinks.connectors.kafka.wire import (
    ADD_PARTITIONS,
    METADATA,
    TOPIC_IDS_SINCE,
    ClusterFacts,
    WireConnection,
    api_versions,
    cluster,
)
from airflow_provider_sinks.core.checks.network import Layer, ServerFacts, Stop, Way

T = TypeVar("T")

WAY = Way(
    (Layer.NAME, Layer.TCP, Layer.TLS, Layer.PROTOCOL, Layer.USER),
    {
        Stop.NOT_TRUSTED: "Name the CA that signed it: ssl.ca.location.",
        Stop.WANTS_TLS: "If this port speaks TLS, turn it on: security.protocol.",
        Stop.TOO_OLD: "Kafka 2.8 or newer is needed: a sink tells topics apart by their ids.",
        Stop.MECHANISM: "Set sasl.mechanism to one that this listener offers.",
        Stop.WANTS_USER: "This listener wants a user, or lets nobody in without one: see sasl options.",
    },
)
"""Kafka speaks inside TLS only."""

_FAMILIES = {"v4": socket.AF_INET, "v6": socket.AF_INET6}
_PARALLEL = 8
_NO_KEY_STORE = "ssl.keystore.location cannot be used: a PKCS #12 file with a key that each worker may read"


@dataclass(frozen=True)
class KafkaReach:
    """How far the ways to the brokers go.

    :param servers: that the connection names.
    :param cluster: what one of them says; ``None`` if none could be asked.
    :param advertised: where the brokers say they are; followed up to TCP.
    :param open_server: a server that took us.
    """

    servers: tuple[ServerFacts, ...]
    cluster: ClusterFacts | None = None
    advertised: tuple[ServerFacts, ...] = ()
    open_server: str = ""


def reach(options: KafkaOptions, deadline: Deadline) -> KafkaReach:
    """Follow the way to each server, and to each broker that they name.

    :param options: with the text of PEM files in them.
    """
    clusters: dict[str, ClusterFacts] = {}

    def look(trail: Trail) -> None:
        with open_wire(options, trail) as wire:
            clusters[trail.server] = cluster(wire)

    servers = _follow_all(options.bootstrap_servers.split(","), deadline, look)
    if not clusters or any(facts.stopped is Stop.FORBIDDEN for facts in servers):
        return KafkaReach(servers)
    found = next(iter(clusters.values()))
    named = [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in found.brokers.values()]
    advertised = _follow_all(named, deadline, lambda trail: _touch(options, trail))
    return KafkaReach(servers, found, advertised, next(iter(clusters)))


def uses_tls(options: KafkaOptions) -> bool:
    """Return whether a connection is inside TLS."""
    return options.options.get("security.protocol", "plaintext").endswith("ssl")


@contextmanager
def open_wire(options: KafkaOptions, trail: Trail) -> Iterator[WireConnection]:
    """Go the whole way to one server: name, TCP, TLS, protocol, user.

    :raises StoppedError: it ended before.
    """
    host, port = split(trail.server)
    connected = connect(host, port, trail, _family(options))
    try:
        if uses_tls(options):
            context = tls_context(options)
            connected = shake_hands(connected, context, host, trail)
        wire = WireConnection(connected, trail)
        with trail.step(Layer.PROTOCOL):
            trail.version = _demand_versions(api_versions(wire))
        if "sasl.mechanism" in options.options:
            with trail.step(Layer.USER):
                given = options.options
                authenticate(wire, given["sasl.mechanism"], given["sasl.username"], given["sasl.password"])
        yield wire
    finally:
        connected.close()


def tls_context(options: KafkaOptions) -> ssl.SSLContext:
    """Return TLS as librdkafka would do it with these options.

    :raises StoppedError: a certificate or key of ours cannot be used.
    """
    given = options.options
    try:
        context = ssl.create_default_context(cadata=given.get("ssl.ca.pem"))
        context.check_hostname = given.get("ssl.endpoint.identification.algorithm", "https") != "none"
        if "ssl.key.pem" in given:
            _load(context, given["ssl.certificate.pem"], given["ssl.key.pem"], given.get("ssl.key.password"))
        elif "ssl.keystore.location" in given:
            _load(context, *_key_store(given["ssl.keystore.location"], given.get("ssl.keystore.password")))
    except (ssl.SSLError, OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or getattr(error, "reason", None) or type(error).__name__
        raise StoppedError(Stop.OUR_CERTIFICATE, f"our certificate or key cannot be used ({why})") from None
    return context


def _demand_versions(versions: dict[int, tuple[int, int]]) -> str:
    """Return in words what the broker speaks, if a sink can work with it."""
    newest = versions.get(METADATA, (0, 0))[1]
    if newest < TOPIC_IDS_SINCE:
        raise StoppedError(
            Stop.TOO_OLD, f"it speaks Metadata up to version {newest}, {TOPIC_IDS_SINCE} is needed"
        )
    if ADD_PARTITIONS not in versions:
        raise StoppedError(Stop.TOO_OLD, "it offers no transactions")
    return f"Kafka with {len(versions)} APIs; Metadata up to version {newest}, transactions up to " + str(
        versions[ADD_PARTITIONS][1]
    )


def _follow_all(
    servers: Sequence[str], deadline: Deadline, go: Callable[[Trail], None]
) -> tuple[ServerFacts, ...]:
    with ThreadPoolExecutor(_PARALLEL, thread_name_prefix="sinks-reach") as pool:
        return tuple(pool.map(lambda server: follow(server, deadline, go), servers))


def _touch(options: KafkaOptions, trail: Trail) -> None:
    host, port = split(trail.server)
    connect(host, port, trail, _family(options)).close()


def _family(options: KafkaOptions) -> int:
    return _FAMILIES.get(options.options.get("broker.address.family", "any"), socket.AF_UNSPEC)


def _load(context: ssl.SSLContext, certificate: str, key: str, password: str | None) -> None:
    """Give a certificate and its key to a context, which takes them from a file only."""
    with tempfile.NamedTemporaryFile("w", prefix="sinks-tls-", suffix=".pem") as file:  # 0600
        file.write(f"{certificate}\n{key}\n")
        file.flush()
        context.load_cert_chain(file.name, password=password or "")


def _key_store(path: str, password: str | None) -> tuple[str, str, None]:
    """Return certificate and key of a PKCS #12 file as PEM."""
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12

    unusable = StoppedError(Stop.OUR_CERTIFICATE, _NO_KEY_STORE)
    if not Path(path).is_file():
        raise unusable
    try:
        store = pkcs12.load_pkcs12(Path(path).read_bytes(), password.encode() if password else None)
    except (OSError, ValueError):  # the same words again: no message tells what files there are
        raise unusable from None
    if store.key is None or store.cert is None:
        raise unusable
    certificates = [store.cert, *store.additional_certs]
    pem = b"".join(held.certificate.public_bytes(Encoding.PEM) for held in certificates)
    key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return pem.decode(), key.decode(), None
