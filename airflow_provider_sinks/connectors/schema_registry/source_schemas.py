"""The schemas by which a sink reads its source: declared in the spec, or as the registry has them now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from airflow_provider_sinks.clients.schema_registry.client import SchemaRegistry
from airflow_provider_sinks.clients.schema_registry.options import RegistryOptions
from airflow_provider_sinks.clients.schema_registry.schemas import Reference, StoredSchema
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.core.schemas.languages import (
    Referred,
    RegisteredSchema,
    demand_holdable,
    format_of,
    parse,
    spark_columns,
    unreadable,
)
from airflow_provider_sinks.core.schemas.protobuf_types import ProtobufSchema
from airflow_provider_sinks.core.schemas.subjects import Part, subject
from airflow_provider_sinks.core.spec.parts import Format
from airflow_provider_sinks.core.spec.problems import UnfitPartsError
from airflow_provider_sinks.core.spec.schema_options import DeclaredSchema, SchemaReference, declared
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.core.spec.source import KafkaSource, SourceEnvelope, row_fields

_NEWEST_MAX = 20
"""So many versions of a subject are looked at before a record of one is met."""


@dataclass(frozen=True)
class ReaderSchema:
    """What one part of each source record is read by.

    :param origin: where it comes from, for people.
    :param subject: under which its writers' schemas are, as far as that is known.
    :param is_newest: another start would take whatever is the newest version of that subject then.
    :param envelope: what a record means.
    """

    part: Part
    schema: RegisteredSchema
    origin: str
    subject: str
    is_newest: bool = False
    envelope: SourceEnvelope | None = None


def source_registry(spec: SinkSpec, connections: ResolvedConnections) -> SchemaRegistry | None:
    """Return a client for the registry of a sink's source; ``None`` where it needs none."""
    kafka = spec.source.kafka
    if kafka.registry is None or not kafka.uses_registry:
        return None
    return SchemaRegistry(connections.get(kafka.registry, RegistryOptions))


def reader_schemas(kafka: KafkaSource, registry: SchemaRegistry) -> tuple[ReaderSchema, ...]:
    """Return the schemas of values and keys, as far as a registry has them. Reads only.

    :raises ConfigurationError: one is not there, is none, or Spark cannot hold it.
    :raises UnavailableError: the registry did not answer.
    """
    return tuple(_reader(kafka, one, registry) for one in _parts(kafka))


def with_schemas(spec: SinkSpec, readers: Iterable[ReaderSchema]) -> SinkSpec:
    """Return a sink with the schemas of its source written down."""
    texts = {reader.part: reader.schema.text for reader in readers}
    return spec.with_source_schemas(texts.get(Part.VALUE), texts.get(Part.KEY))


def references(given: Iterable[SchemaReference]) -> tuple[Reference, ...]:
    """Return what a spec refers to, for the client."""
    return tuple(Reference(one.name, one.subject, one.version) for one in given)


@dataclass(frozen=True)
class _DeclaredPart:
    part: Part
    format: Format
    choice: DeclaredSchema | None


def _parts(kafka: KafkaSource) -> list[_DeclaredPart]:
    found = [_DeclaredPart(Part.VALUE, kafka.format, kafka.declared)] if kafka.format.is_registered else []
    if kafka.key_as is not None and kafka.key_as.format.is_registered:
        found.append(_DeclaredPart(Part.KEY, kafka.key_as.format, declared(kafka.key_as.schema_)))
    return found


def _reader(kafka: KafkaSource, one: _DeclaredPart, registry: SchemaRegistry) -> ReaderSchema:
    part, choice = one.part, one.choice
    where = "source.kafka.schema" if part is Part.VALUE else "source.kafka.key_as.schema"
    if choice is not None and choice.inline is not None:
        referred = registry.referred(references(choice.references))
        schema = _parsed(where, one.format, choice.inline, referred, choice.message or "")
        return ReaderSchema(part, _held(where, schema, part), "the spec", _subject(kafka, part, schema.name))
    name = choice.subject if choice is not None and choice.subject else _subject(kafka, part, "")
    version = choice.version if choice is not None else None
    found = registered(where, registry, name, version, one.format)
    message = choice.message if choice is not None and choice.message else ""
    schema = _parsed(where, one.format, found.text, found.referred, message)
    origin = f'version {found.version} of subject "{name}"'
    held, envelope = _held(where, schema, part), kafka.envelope if part is Part.VALUE else None
    return ReaderSchema(part, held, origin, name, is_newest=version is None, envelope=envelope)


def registered(
    where: str, registry: SchemaRegistry, name: str, version: int | None, format_: Format
) -> StoredSchema:
    """Return a registered schema.

    :param where: the option that asks for it.
    :param format_: whose schema it is to be.
    :raises ConfigurationError: it is not there, or of another kind.
    """
    found = registry.version(name, version)
    if found is None:
        what = f'subject "{name}" has no version {version}' if version else f'there is no subject "{name}"'
        problem = Problem(where, what, "name another subject, or write the schema into the spec")
        raise ConfigurationError(f"{registry.service} does not have the schema", [problem]).of(
            registry.options.conn_id
        )
    if found.kind != format_.registry_kind:
        problem = Problem(where, f'subject "{name}" is of kind {found.kind}, and format is {format_}')
        raise ConfigurationError("the schema is of another kind", [problem])
    if found.missing:
        raise ConfigurationError(
            "a schema that is referred to is not registered", [Problem(where, found.missing)]
        )
    return found


def newest(registry: SchemaRegistry, name: str) -> Iterator[StoredSchema]:
    """Give the newest versions of a subject, the last one first, as many as may count."""
    for version in sorted(registry.versions(name), reverse=True)[:_NEWEST_MAX]:
        found = registry.version(name, version)
        if found is not None:
            yield found


def written_by(reader: ReaderSchema, stored: StoredSchema) -> RegisteredSchema | str:
    """Return what a writer wrote by, or why nothing that was written by it can be read.

    JSON says itself what it is: whichever schema it was written by, each value is judged by the reader's.
    """
    format_ = format_of(reader.schema)
    if stored.kind != format_.registry_kind:
        return f"has schema id {stored.id}, which is of kind {stored.kind}"
    return reader.schema if format_ is Format.JSON_SCHEMA else _resolved(reader, stored)


def added_since(reader: ReaderSchema, registry: SchemaRegistry) -> tuple[int, tuple[str, ...]]:
    """Return the columns that a reader has not and the newest version of its subject has, behind its number.

    None where another start would not read by it, or could not.
    """
    newer = registry.version(reader.subject) if reader.is_newest else None
    if newer is None:
        return 0, ()
    found = _resolved(reader, newer)
    if isinstance(found, str):
        return newer.version, ()
    try:
        there, here = (
            row_fields(reader.envelope, dict(spark_columns(one))) or () for one in (found, reader.schema)
        )
    except UnfitPartsError:
        return newer.version, ()
    return newer.version, tuple(name for name in there if name not in here)


def doubts_about(reader: ReaderSchema, stored: StoredSchema) -> str:
    """Return why values of a writer would be set aside, all of them or some; empty where none would be."""
    found = written_by(reader, stored)
    judged = _resolved(reader, stored) if found is reader.schema else found
    return judged if isinstance(judged, str) else ""


def _resolved(reader: ReaderSchema, stored: StoredSchema) -> RegisteredSchema | str:
    try:
        message = reader.schema.name if isinstance(reader.schema, ProtobufSchema) else ""
        writer = parse(format_of(reader.schema), stored.text, stored.referred, message)
    except UnfitPartsError as unfit:
        return f"has schema id {stored.id}, which is no schema: {stored.missing or unfit}"
    why = unreadable(reader.schema, writer)
    return f"has schema id {stored.id}, which cannot be read: {'; '.join(why)}" if why else writer


def _subject(kafka: KafkaSource, part: Part, record: str) -> str:
    return subject(kafka.naming, kafka.topic, part, record)


def _parsed(
    where: str, format_: Format, text: str, referred: tuple[Referred, ...], message: str
) -> RegisteredSchema:
    try:
        return parse(format_, text, referred, message)
    except UnfitPartsError as unfit:
        raise _unfit(where, unfit) from None


def _held(where: str, schema: RegisteredSchema, part: Part) -> RegisteredSchema:
    try:
        if part is Part.VALUE:
            spark_columns(schema)
        else:
            demand_holdable(schema)
    except UnfitPartsError as unfit:
        raise _unfit(where, unfit) from None
    return schema


def _unfit(where: str, unfit: UnfitPartsError) -> ConfigurationError:
    return ConfigurationError("the schema of the source cannot be used", unfit.under(where))
