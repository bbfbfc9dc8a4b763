"""By which schemas a sink writes keys and values: made of the query's columns, or as the spec says.

Knows the registry only through its client, and registers nothing but in :meth:`TargetSchemas.register`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from airflow_provider_sinks.clients.schema_registry.client import SchemaRegistry
from airflow_provider_sinks.clients.schema_registry.schemas import NewSchema, StoredSchema
from airflow_provider_sinks.connectors.kafka.envelope_types import enveloped
from airflow_provider_sinks.connectors.kafka.spec import KafkaSink
from airflow_provider_sinks.connectors.schema_registry.source_schemas import references, registered
from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.core.query.analysis import INTERNAL
from airflow_provider_sinks.core.schemas.derived import Column, columns_of
from airflow_provider_sinks.core.schemas.languages import Referred, RegisteredSchema, derive, misfits, parse
from airflow_provider_sinks.core.schemas.plan import (
    NewestVersion,
    SchemaPlan,
    SchemaState,
    SubjectFacts,
    plan,
)
from airflow_provider_sinks.core.schemas.subjects import Part, subject
from airflow_provider_sinks.core.spec.parts import Format
from airflow_provider_sinks.core.spec.problems import UnfitPartsError
from airflow_provider_sinks.core.spec.schema_options import DeclaredSchema


@dataclass(frozen=True)
class WrittenBy:
    """By what one part of each record is written.

    :param id: of the schema in the registry.
    """

    id: int
    schema: RegisteredSchema


def part_columns(sink: KafkaSink, part: Part, output: Mapping[str, Any]) -> tuple[Column, ...]:
    """Return the columns that become the key or the value.

    :param output: the query's columns, as Spark writes a struct as JSON.
    :raises ConfigurationError: one is not there, or the value is no record.
    """
    target = sink.target.kafka
    columns = {one.name: one for one in columns_of(output) if not one.name.startswith(INTERNAL)}
    several = target.value_columns(list(columns))
    named = target.key if part is Part.KEY else (target.value,) if target.value else tuple(several)
    if missing := [name for name in named if name not in columns]:
        option = "key" if part is Part.KEY else "value"
        problem = Problem(
            f"target.kafka.{option}", f"column {missing[0]!r} is not in the output: {', '.join(columns)}"
        )
        raise ConfigurationError(f"the {part} does not fit the query", [problem])
    if part is Part.VALUE and target.is_debezium:
        return enveloped(tuple(columns.values()), marks_deletes=target.marks_deletes)
    if part is Part.KEY or target.value is None:
        return tuple(columns[str(name)] for name in named)
    kind = columns[target.value].type
    if isinstance(kind, str) or kind["type"] != "struct":
        problem = Problem(
            "target.kafka.value", f"column {target.value!r} is no struct", "a value is a record"
        )
        raise ConfigurationError("the value does not fit the query", [problem])
    return columns_of(kind)


def demand_writable(sink: KafkaSink, output: Mapping[str, Any]) -> None:
    """Raise :class:`ConfigurationError` with every column that has no form in its schema. No I/O.

    A schema that only the registry knows is compared once it was asked.
    """
    for part in sink.target.kafka.registered_parts:
        columns, choice = part_columns(sink, part, output), sink.target.kafka.declared(part)
        if choice is None:
            derived(sink, part, columns)
        elif choice.inline is not None and not choice.references:
            demand_fit(part, columns, _parsed(sink, part, choice.inline, (), choice.message))


def derived(
    sink: KafkaSink, part: Part, columns: Sequence[Column], before: RegisteredSchema | None = None
) -> str:
    """Return the schema that is made of columns; no column of a key may be null.

    :param before: what its subject has now.
    :raises ConfigurationError: with every column that has no form in its format.
    """
    format_, doc = sink.target.kafka.format_of(part), f"The {part} of sink {sink.name}."
    try:
        nullable = part is Part.VALUE
        return derive(format_, columns, sink.record_name(part), doc, nullable=nullable, before=before)
    except UnfitPartsError as unfit:
        problems = unfit.under("column", " ")
        raise ConfigurationError(f"the {part} cannot be written in {format_.language}", problems) from None


def demand_fit(part: Part, columns: Sequence[Column], schema: RegisteredSchema) -> None:
    """Raise :class:`ConfigurationError` with every column that does not fit, and the cast to write."""
    if found := misfits(columns, schema):
        problems = [Problem(f"column {one.where}".strip(), one.what, one.hint) for one in found]
        raise ConfigurationError(f"the columns do not fit the schema of the {part}", problems)


class TargetSchemas:
    """The schemas of one sink's target; see :class:`.schema_parts.SchemaRegistryAware`.

    :param registry: asked now and at the start.
    """

    def __init__(self, sink: KafkaSink, registry: SchemaRegistry) -> None:
        self._sink = sink
        self._registry = registry
        self._plans: tuple[SchemaPlan, ...] = ()

    @property
    def service(self) -> str:
        """Who is asked, for messages."""
        return self._registry.service

    def plan(self, output: Mapping[str, Any]) -> tuple[SchemaPlan, ...]:
        """Ask what a start would do. Registers nothing."""
        parts = self._sink.target.kafka.registered_parts
        self._plans = tuple(self._plan(part, part_columns(self._sink, part, output)) for part in parts)
        return self._plans

    def register(self) -> Mapping[Part, WrittenBy]:
        """Register what was planned, and return by what is written. Idempotent."""
        self._plans = tuple(map(self._registered, self._plans))
        return {one.part: WrittenBy(one.id, one.schema) for one in self._plans if one.id is not None}

    def close(self) -> None:
        """End the client."""
        self._registry.close()

    def _registered(self, one: SchemaPlan) -> SchemaPlan:
        if one.id is not None:
            return one
        new = self._new(one.part, one.text)
        known = self._registry.register(one.subject, new)
        return replace(one, id=known, state=SchemaState.REGISTERED)

    def _plan(self, part: Part, columns: Sequence[Column]) -> SchemaPlan:
        target = self._sink.target.kafka
        choice = target.declared(part)
        if choice is not None and choice.subject is not None:
            return self._chosen(part, columns, choice)
        if choice is None or choice.inline is None:
            name = subject(target.naming, target.topic, part, self._sink.record_name(part))
            newest = self._newest(name, part)
            text = derived(self._sink, part, columns, newest.schema if newest else None)
            schema = _parsed(self._sink, part, text)
        else:
            text = choice.inline
            referred = self._registry.referred(references(choice.references))
            schema = _parsed(self._sink, part, text, referred, choice.message)
            demand_fit(part, columns, schema)
            name = subject(target.naming, target.topic, part, schema.name)
            newest = self._newest(name, part)
        facts = self._facts(name, newest, self._new(part, text))
        return plan(part, name, text, schema, facts=facts, register=target.registering)

    def _chosen(self, part: Part, columns: Sequence[Column], choice: DeclaredSchema) -> SchemaPlan:
        option = "schema" if part is Part.VALUE else "key_schema"
        name = str(choice.subject)
        format_ = self._sink.target.kafka.format_of(part)
        found = registered(f"target.kafka.{option}", self._registry, name, choice.version, format_)
        schema = _parsed(self._sink, part, found.text, found.referred, choice.message)
        demand_fit(part, columns, schema)
        level, state = self._registry.level(name), SchemaState.REGISTERED
        return SchemaPlan(part, name, state, found.text, schema, level, found.id, found.version)

    def _newest(self, name: str, part: Part) -> NewestVersion | None:
        found = self._registry.version(name)
        if found is None:
            return None
        return _newest(replace(found, subject=name), self._sink.target.kafka.format_of(part))

    def _facts(self, name: str, newest: NewestVersion | None, new: NewSchema) -> SubjectFacts:
        level = self._registry.level(name)
        if newest is None:
            return SubjectFacts(level)
        same = self._registry.find(name, new)
        takes = same is not None or self._registry.takes(name, new)
        return SubjectFacts(level, newest, same, takes)

    def _new(self, part: Part, text: str) -> NewSchema:
        target = self._sink.target.kafka
        choice = target.declared(part)
        named = references(choice.references) if choice is not None else ()
        return NewSchema(text, target.format_of(part).registry_kind, named)


def _parsed(
    sink: KafkaSink, part: Part, text: str, referred: Sequence[Referred] = (), message: str | None = None
) -> RegisteredSchema:
    try:
        return parse(sink.target.kafka.format_of(part), text, referred, message or "")
    except UnfitPartsError as unfit:
        raise ConfigurationError(f"the schema of the {part} cannot be used", unfit.under("schema")) from None


def _newest(found: StoredSchema, format_: Format) -> NewestVersion:
    """Return the newest version of a subject, which the next one is compared with.

    :raises ConfigurationError: it is of another kind, or nothing that we can read.
    """
    name = f'version {found.version} of subject "{found.subject}"'
    if found.kind != format_.registry_kind:
        raise _not_comparable(name, [Problem(name, f"is of kind {found.kind}, and format is {format_}")])
    if found.missing:
        raise _not_comparable(name, [Problem(name, f"refers to what is not there: {found.missing}")])
    try:
        return NewestVersion(found.id, found.version, parse(format_, found.text, found.referred))
    except UnfitPartsError as unfit:
        raise _not_comparable(name, unfit.under(name)) from None


def _not_comparable(name: str, problems: Sequence[Problem]) -> ConfigurationError:
    hint = (
        "Name another subject (`subjects`), or write by a registered version: `schema: {subject, version}`."
    )
    return ConfigurationError(f"no schema can be compared with {name}", problems, hint)
