"""The checks of one schema registry: the way to it, the login, and the schemas of a sink's source."""

from __future__ import annotations

import ssl
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

from airflow_provider_sinks.clients.reach import StoppedError, Trail, connect, follow, shake_hands
from airflow_provider_sinks.clients.schema_registry.client import SchemaRegistry
from airflow_provider_sinks.clients.schema_registry.options import RegistryOptions
from airflow_provider_sinks.clients.time_limit import within
from airflow_provider_sinks.connectors.connection_checks import ConnectionChecks, Validation
from airflow_provider_sinks.connectors.schema_registry.source_schemas import (
    ReaderSchema,
    doubts_about,
    newest,
    reader_schemas,
)
from airflow_provider_sinks.core.checks.check import Check, Checks, Family
from airflow_provider_sinks.core.checks.network import Layer, Stop, Way, network_checks
from airflow_provider_sinks.core.errors import SinkError

_WAY = Way((Layer.NAME, Layer.TCP, Layer.TLS), {Stop.NOT_TRUSTED: "Name the CA that signed it: ssl.ca."})
_SECONDS = 20.0


def registry_checks(validation: Validation, options: RegistryOptions) -> ConnectionChecks:
    """Judge one registry. Registers nothing.

    :return: the options, once the registry has answered.
    """
    facts = [follow(_server(url), validation.deadline, _way_to(options, url)) for url in options.urls]
    tls = any(url.startswith("https") for url in options.urls)
    yield from network_checks(options.conn_id, facts, _WAY, tls=tls)
    checks = Checks(options.conn_id, Family.SCHEMAS)
    if all(one.stopped is not None for one in facts) or any(one.stopped is Stop.FORBIDDEN for one in facts):
        yield checks.skips("registry", "it was not reached")
        return None
    with closing(SchemaRegistry(options)) as registry:
        return (yield from _answers(validation, options, registry, checks))


def _answers(
    validation: Validation, options: RegistryOptions, registry: SchemaRegistry, checks: Checks
) -> ConnectionChecks:
    begun = time.monotonic()
    try:
        kinds = within(validation.deadline.left(_SECONDS), registry.kinds)
    except SinkError as error:
        yield checks.judged_by("registry", error, time.monotonic() - begun)
        return None
    yield checks.passes("registry", f"it keeps {', '.join(sorted(kinds))}", time.monotonic() - begun)
    yield from _source_schemas(validation, checks, registry)
    return options


def _source_schemas(validation: Validation, checks: Checks, registry: SchemaRegistry) -> Iterator[Check]:
    sink = validation.sink
    kafka = sink.source.kafka if sink is not None else None
    if kafka is None or kafka.registry != checks.subject or not kafka.uses_registry:
        return
    begun = time.monotonic()
    try:
        readers = within(validation.deadline.left(_SECONDS), lambda: reader_schemas(kafka, registry))
    except SinkError as error:
        yield checks.judged_by("schema of the source", error, time.monotonic() - begun)
        return
    for reader in readers:
        validation.source_schemas[reader.part.value] = reader.schema.text
        yield checks.passes(
            f"schema of the source's {reader.part}", f"{reader.schema.name}, of {reader.origin}"
        )
        yield from _writers(validation, checks, registry, reader)


def _writers(
    validation: Validation, checks: Checks, registry: SchemaRegistry, reader: ReaderSchema
) -> Iterator[Check]:
    """Say which versions under the source's subject cannot be read: records of theirs would be set aside."""
    name, begun = f"schemas of who wrote the source's {reader.part}", time.monotonic()
    try:
        found = within(validation.deadline.left(_SECONDS), lambda: [*newest(registry, reader.subject)])
    except SinkError as error:
        yield checks.judged_by(name, error, time.monotonic() - begun)
        return
    judged = {stored.version: doubts_about(reader, stored) for stored in found}
    wrong = [f"version {version} {why}" for version, why in judged.items() if why]
    told = f'{len(judged)} of subject "{reader.subject}" can be read'
    if wrong:
        hint = "Records that were written by them are set aside; name another `schema` to read by."
        yield checks.unknown(name, "; ".join(wrong), hint, time.monotonic() - begun)
    else:
        yield checks.passes(name, told, time.monotonic() - begun)


def _server(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"


def _way_to(options: RegistryOptions, url: str) -> Callable[[Trail], None]:
    host, _, port = _server(url).rpartition(":")

    def go(trail: Trail) -> None:
        connected = connect(host, int(port), trail)
        try:
            if url.startswith("https"):
                connected = shake_hands(connected, _context(options), host, trail)
        finally:
            connected.close()

    return go


def _context(options: RegistryOptions) -> ssl.SSLContext:
    given = options.options
    try:
        context = ssl.create_default_context(cadata=given.get("ssl.ca.pem"))
        if "ssl.certificate.pem" in given:
            with tempfile.TemporaryDirectory(prefix="sinks-registry-") as folder:
                pair = Path(folder, "pair.pem")
                pair.touch(mode=0o600)
                pair.write_text(f"{given.get('ssl.key.pem', '')}\n{given['ssl.certificate.pem']}")
                context.load_cert_chain(pair)
    except (ssl.SSLError, OSError):
        raise StoppedError(
            Stop.OUR_CERTIFICATE, "ssl.ca, ssl.certificate or ssl.key cannot be used"
        ) from None
    return context
