"""The client properties of librdkafka that a connection may carry, what Java calls them, and what is refused.

An Airflow connection of type ``kafka`` holds librdkafka's names. Our writers use them as they are; Spark's
source is a Java client and needs other names, and sometimes other values.
"""

from __future__ import annotations

import re

SAME = "="
NONE = ""

ALLOWED: dict[str, str] = {
    "bootstrap.servers": SAME,
    "broker.address.family": NONE,
    "broker.address.ttl": NONE,
    "client.dns.lookup": SAME,
    "client.id": SAME,
    "connections.max.idle.ms": SAME,
    "message.max.bytes": NONE,
    "metadata.max.age.ms": SAME,
    "reconnect.backoff.max.ms": SAME,
    "reconnect.backoff.ms": SAME,
    "retry.backoff.max.ms": SAME,
    "retry.backoff.ms": SAME,
    "sasl.mechanism": SAME,
    "sasl.password": NONE,  # goes into JAAS
    "sasl.username": NONE,  # goes into JAAS
    "security.protocol": SAME,
    "socket.connection.setup.timeout.ms": SAME,
    "socket.keepalive.enable": NONE,
    "socket.receive.buffer.bytes": "receive.buffer.bytes",
    "socket.send.buffer.bytes": "send.buffer.bytes",
    "socket.timeout.ms": "request.timeout.ms",
    "ssl.ca.location": NONE,  # the PEM options need more than another name, see kafka_java.py
    "ssl.ca.pem": NONE,
    "ssl.certificate.location": NONE,
    "ssl.certificate.pem": NONE,
    "ssl.endpoint.identification.algorithm": NONE,
    "ssl.key.location": NONE,
    "ssl.key.password": NONE,
    "ssl.key.pem": NONE,
    "ssl.keystore.location": NONE,
    "ssl.keystore.password": NONE,
    "topic.metadata.refresh.interval.ms": NONE,
}
"""librdkafka's name, and Java's: the same, another, or none."""

ALIASES = {"metadata.broker.list": "bootstrap.servers", "sasl.mechanisms": "sasl.mechanism"}
"""Second names in librdkafka."""

SECRETS = frozenset({"sasl.password", "ssl.key.password", "ssl.key.pem", "ssl.keystore.password"})
"""Never shown."""

FILES = frozenset({name for name in ALLOWED if name.endswith(".location")})
"""They name files of the worker."""

ADDRESSES = frozenset({"bootstrap.servers"})
"""They lead to servers."""

_HARMLESS = """
    broker.address.ttl client.id connections.max.idle.ms message.max.bytes metadata.max.age.ms
    reconnect.backoff.max.ms reconnect.backoff.ms retry.backoff.max.ms retry.backoff.ms
    socket.connection.setup.timeout.ms socket.keepalive.enable socket.receive.buffer.bytes
    socket.send.buffer.bytes socket.timeout.ms topic.metadata.refresh.interval.ms
    """
HARMLESS = frozenset(_HARMLESS.split())
"""They decide nothing about who hears a secret. All others count as if they did, new ones too."""

_DROPPED = """
    acks allow.auto.create.topics auto.commit.interval.ms auto.offset.reset batch.num.messages batch.size
    check.crcs compression.codec compression.level compression.type delivery.timeout.ms enable.auto.commit
    enable.auto.offset.store enable.idempotence enable.partition.eof fetch.max.bytes fetch.message.max.bytes
    fetch.min.bytes fetch.wait.max.ms group.id group.instance.id group.protocol heartbeat.interval.ms
    isolation.level linger.ms log_level max.in.flight max.in.flight.requests.per.connection
    max.partition.fetch.bytes max.poll.interval.ms message.send.max.retries message.timeout.ms
    partition.assignment.strategy partitioner queue.buffering.max.kbytes queue.buffering.max.messages
    queue.buffering.max.ms queued.max.messages.kbytes queued.min.messages request.required.acks
    request.timeout.ms retries session.timeout.ms statistics.interval.ms transaction.timeout.ms
    transactional.id
    """
DROPPED = frozenset(_DROPPED.split())
"""How other users of the connection consume and produce: no mistake, and no business of a sink."""

_JAVA_ONLY = "it is a name of the Java client; a connection holds librdkafka's names"
_NOT_HERE = "this mechanism is not supported; use PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512"
_NOT_IN_JAVA = "Spark's source is a Java client, which has no such setting, and both must act alike"

REFUSED: tuple[tuple[str, str], ...] = (
    (r".*jaas\.config", "it can load any class; the sink builds it from sasl.username and sasl.password"),
    (r".*(_cb|\.cb|callback).*", "callbacks are code, and code does not come from a connection"),
    (r"plugin\.library\.paths", "it loads native code"),
    (r"ssl\.(engine|providers).*", "it loads native code"),
    (r".*(class|serializer|deserializer|interceptors?|metric\.reporters).*", "it loads code by its name"),
    (r".*\.url", "the client would send credentials to any address"),
    (r"sasl\.kerberos\..*", _NOT_HERE),
    (r"sasl\.(oauthbearer|login)\..*|enable\.sasl\.oauthbearer.*", _NOT_HERE),
    (r"ssl\.truststore\..*|ssl\.keystore\.(type|key|certificate\.chain)|ssl\.protocol", _JAVA_ONLY),
    (
        r"ssl\.(cipher\.suites|curves\.list|sigalgs\.list)|enable\.ssl\.certificate\.verification",
        _NOT_IN_JAVA,
    ),
    (r".*location", "no file is read at a user's word but CA, certificate, key and key store"),
    (r"debug", "it writes what is sent into logs"),
)
"""A pattern for the whole name, and the reason."""


def refusal(name: str) -> str:
    """Return why an option is refused, or an empty text."""
    return next((why for pattern, why in REFUSED if re.fullmatch(pattern, name)), "")
