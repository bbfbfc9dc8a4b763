"""The options of a ``kafka`` connection: allow-listed, checked at once, and never shown with their secrets.

>>> options = KafkaOptions.from_connection_extra({"bootstrap.servers": "localhost:9092"}, "kafka_prod")
>>> options.spark_source()
{'kafka.bootstrap.servers': 'localhost:9092'}
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from airflow_provider_sinks.clients.pem_files import PEM_FILES, pem_text_problems, with_pem_files_read
from airflow_provider_sinks.connectors.kafka.java_options import java_options
from airflow_provider_sinks.connectors.kafka.option_names import ALIASES, ALLOWED, DROPPED, SECRETS, refusal
from airflow_provider_sinks.core.connection.options import ConnectionOptions
from airflow_provider_sinks.core.errors import ConfigurationError, Problem, nearest

PROTOCOLS = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


@dataclass(frozen=True, repr=False)
class KafkaOptions(ConnectionOptions):
    """What it takes to connect to one cluster.

    :param conn_id: the Airflow connection that it came from.
    :param options: librdkafka's names and values.
    :param dropped: what the connection holds for others, and a sink does not use.
    """

    conn_type: ClassVar[str] = "kafka"
    undigested: ClassVar[frozenset[str]] = SECRETS | set(PEM_FILES.values())

    conn_id: str
    options: Mapping[str, str]
    dropped: tuple[str, ...] = ()

    @classmethod
    def from_connection_extra(
        cls, extra: Mapping[str, Any], conn_id: str, known: Sequence[Problem] = ()
    ) -> KafkaOptions:
        """Read the extra of an Airflow connection.

        :param known: what is wrong with it already.
        :raises ConfigurationError: with all problems at once.
        """
        problems = [*known]
        options: dict[str, str] = {}
        for written, value in extra.items():
            name = ALIASES.get(written, written)
            problem = _problem(written, name, value, options)
            if problem is not None:
                problems.append(problem)
            elif name not in DROPPED:
                options[name] = _text(value)
        problems += _combinations(options) if not problems else ()
        if problems:
            raise ConfigurationError(f'connection "{conn_id}" is not valid for a sink', problems)
        return cls(conn_id, _normal(options), tuple(sorted(DROPPED & set(extra))))

    @property
    def given(self) -> Mapping[str, str]:
        """The names and values of librdkafka."""
        return self.options

    @property
    def summary(self) -> str:
        """Servers, protocol and user."""
        protocol = self.options.get("security.protocol", "plaintext")
        user = f' as "{self.options["sasl.username"]}"' if "sasl.username" in self.options else ""
        unused = f"; not used by a sink: {', '.join(self.dropped)}" if self.dropped else ""
        return f"{self.bootstrap_servers}, {protocol}{user}{unused}"

    def usable(self) -> KafkaOptions:
        """Read the PEM files, and see that Spark's Java client can use what is in them too."""
        options = self.with_files_read()
        options.spark_source()
        return options

    @property
    def bootstrap_servers(self) -> str:
        """The brokers to ask first."""
        return self.options["bootstrap.servers"]

    def librdkafka(self) -> dict[str, str]:
        """Return the configuration for confluent-kafka."""
        return dict(self.options)

    def spark_source(self) -> dict[str, str]:
        """Return the same for Spark's Kafka source, which is a Java client.

        :raises ConfigurationError: a file cannot be read, or Java cannot use what is in it.
        """
        java = java_options(self.with_files_read().options, self.conn_id)
        return {f"kafka.{name}": value for name, value in java.items()}

    def with_files_read(self) -> KafkaOptions:
        """Take the text of the PEM files into the options, so that no other machine needs the files.

        :raises ConfigurationError: with every file that cannot be read.
        """
        options = with_pem_files_read(self.conn_id, self.options)
        return KafkaOptions(self.conn_id, options, self.dropped)

    def __repr__(self) -> str:
        shown = {k: "***" if k in SECRETS else v if len(v) < 200 else "…" for k, v in self.options.items()}
        return f"KafkaOptions(conn_id={self.conn_id!r}, options={shown!r})"


def _problem(written: str, name: str, value: Any, given: Mapping[str, str]) -> Problem | None:
    if name in given:
        return Problem(written, f"stands beside its other name {name!r}", "keep one of them")
    if name in DROPPED:
        return None
    if name not in ALLOWED:
        why = refusal(name)
        return Problem(written, f"is refused: {why}") if why else _unknown(written)
    if isinstance(value, bool | int) or (isinstance(value, str) and value.strip()):
        return None
    return Problem(written, "is empty" if value in (None, "") else "must be text or a number")


def _unknown(name: str) -> Problem:
    return Problem(name, "is not known", nearest(name, [*ALLOWED, *ALIASES]))


def _text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _combinations(options: Mapping[str, str]) -> Iterator[Problem]:
    protocol = options.get("security.protocol", "plaintext").lower()
    if protocol not in PROTOCOLS:
        near = nearest(protocol, PROTOCOLS) or f"one of {', '.join(PROTOCOLS)}"
        yield Problem("security.protocol", f"{protocol!r} is not known", near)
        return
    yield from _servers(options.get("bootstrap.servers"))
    yield from _sasl(options, protocol)
    yield from _ssl(options, protocol)


def _servers(servers: str | None) -> Iterator[Problem]:
    hint = "host:port, host:port"
    if servers is None:
        yield Problem("bootstrap.servers", "is missing", hint)
        return
    for place, server in enumerate(servers.split(","), start=1):
        if not re.fullmatch(r"\s*([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.%]+\])(:\d{1,5})?\s*", server):
            yield Problem(
                "bootstrap.servers", f"entry {place} is not host:port", hint
            )  # not shown: it may hold a password


def _sasl(options: Mapping[str, str], protocol: str) -> Iterator[Problem]:
    given = [name for name in options if name.startswith("sasl.")]
    if not protocol.startswith("sasl_"):
        for name in given:
            what = f"has no effect while security.protocol is {protocol}"
            yield Problem(name, what, "set security.protocol to sasl_ssl or sasl_plaintext")
        return
    mechanism = options.get("sasl.mechanism")
    if mechanism is None:
        yield Problem("sasl.mechanism", "is missing", f"one of {', '.join(MECHANISMS)}")
    elif mechanism not in MECHANISMS:
        near = nearest(mechanism.upper(), MECHANISMS) or f"one of {', '.join(MECHANISMS)}"
        yield Problem("sasl.mechanism", f"{mechanism!r} is not supported", near)
    for name in ("sasl.username", "sasl.password"):
        if name not in options:
            yield Problem(name, f"is missing: security.protocol is {protocol}")


def _ssl(options: Mapping[str, str], protocol: str) -> Iterator[Problem]:
    for name in options:
        if name.startswith("ssl.") and not protocol.endswith("ssl"):
            what = f"has no effect while security.protocol is {protocol}"
            yield Problem(name, what, "set security.protocol to ssl or sasl_ssl")
    for located, inline in PEM_FILES.items():
        if located in options and inline in options:
            yield Problem(inline, f"stands beside {located}", "keep one of them")
    yield from pem_text_problems(options)
    certificate = any(f"ssl.certificate.{end}" in options for end in ("location", "pem"))
    key = any(f"ssl.key.{end}" in options for end in ("location", "pem"))
    if certificate != key:
        missing, there = ("ssl.key", "certificate") if certificate else ("ssl.certificate", "key")
        yield Problem(f"{missing}.location", f"is missing: a {there} is given", "give both")
    if key and "ssl.keystore.location" in options:
        yield Problem("ssl.keystore.location", "stands beside ssl.key", "keep one of them")
    algorithm = options.get("ssl.endpoint.identification.algorithm", "https")
    if algorithm not in ("none", "https"):
        yield Problem("ssl.endpoint.identification.algorithm", f"{algorithm!r} is not known", "https or none")


def _normal(options: dict[str, str]) -> dict[str, str]:
    servers = (server.strip() for server in options["bootstrap.servers"].split(","))
    normal = {**options, "bootstrap.servers": ",".join(_with_port(server) for server in servers)}
    if "security.protocol" in normal:
        normal["security.protocol"] = normal["security.protocol"].lower()
    return normal


def _with_port(server: str) -> str:
    """Write librdkafka's default port out: Java has none."""
    return server if re.search(r"[^:\[]:\d+$|\]:\d+$", server) else f"{server}:9092"
