"""What a start would do about the schema of a key or a value: facts of its subject in, a plan out. Pure.

The registry's own answer counts. Two things are demanded beyond it: of a key that it is written as before
(:mod:`.languages`), and by ``auto_register: check`` that the newest values can be read by the new schema
even where the subject's level is NONE.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from airflow_provider_sinks.core.errors import Problem
from airflow_provider_sinks.core.schemas.languages import (
    RegisteredSchema,
    key_changes,
    same_bytes,
    unreadable,
    why_not_next,
)
from airflow_provider_sinks.core.schemas.levels import Level
from airflow_provider_sinks.core.schemas.subjects import Part
from airflow_provider_sinks.core.spec.schema_options import AutoRegister


class SchemaState(enum.StrEnum):
    """How a schema stands to its subject."""

    REGISTERED = "registered"
    NEW = "new"
    COMPATIBLE = "compatible"
    INCOMPATIBLE = "incompatible"
    MISSING = "not registered"


@dataclass(frozen=True)
class NewestVersion:
    """The newest schema of a subject."""

    id: int
    version: int
    schema: RegisteredSchema


@dataclass(frozen=True)
class SubjectFacts:
    """What a registry says about a subject and a schema that may follow there.

    :param newest: ``None`` where there is no such subject.
    :param same_id: the id under which the subject has exactly this schema.
    :param takes: whether the registry would take it at the subject's level.
    """

    level: Level
    newest: NewestVersion | None = None
    same_id: int | None = None
    takes: bool = True


@dataclass(frozen=True)
class SchemaPlan:
    """What is to be done about one schema.

    :param text: what would be registered.
    :param schema: the same, standing by itself.
    :param id: by which values are written; ``None`` until it is registered.
    :param reasons: why it is incompatible, by field.
    """

    part: Part
    subject: str
    state: SchemaState
    text: str
    schema: RegisteredSchema
    level: Level
    id: int | None = None
    version: int = 0
    reasons: tuple[str, ...] = ()

    @property
    def may_start(self) -> bool:
        """Whether a sink can write by it."""
        return self.state not in (SchemaState.INCOMPATIBLE, SchemaState.MISSING)

    @property
    def told(self) -> str:
        """What a person should know, in one sentence."""
        where = f'subject "{self.subject}"'
        match self.state:
            case SchemaState.REGISTERED:
                return f"registered under {where} with id {self.id}"
            case SchemaState.NEW:
                return f"new: the start registers the first version of {where}"
            case SchemaState.COMPATIBLE:
                known = f"version {self.version} of {where} ({self.level})"
                return f"compatible with {known}: the start registers it"
            case SchemaState.MISSING:
                return f"not registered under {where}, and auto_register is false"
            case SchemaState.INCOMPATIBLE:
                against = f"with version {self.version} of {where} ({self.level})"
                return f"incompatible {against} because {'; '.join(self.reasons)}"

    def problem(self, target: str = "target") -> Problem:
        """Return what is wrong with a plan that may not start.

        :param target: the option whose rows would be written by it.
        """
        return Problem(f"{target}: schema of the {self.part}", self.told, self._hint)

    @property
    def _hint(self) -> str:
        if self.state is SchemaState.MISSING:
            return "register it, or write auto_register: true"
        if self.part is Part.KEY:
            return "write the columns as before, or give the sink a topic of its own"
        return "keep the fields that are there, make new ones nullable, or name another subject"


def plan(
    part: Part,
    subject: str,
    text: str,
    schema: RegisteredSchema,
    *,
    facts: SubjectFacts,
    register: AutoRegister,
) -> SchemaPlan:
    """Return what is to be done about a schema that was not named by its subject and version."""
    newest = facts.newest
    version = newest.version if newest else 0

    def made(state: SchemaState, known: int | None = None, reasons: tuple[str, ...] = ()) -> SchemaPlan:
        return SchemaPlan(part, subject, state, text, schema, facts.level, known, version, reasons)

    if facts.same_id is not None:
        return made(SchemaState.REGISTERED, facts.same_id)
    if newest is not None:
        if part is Part.KEY and same_bytes(schema, newest.schema):
            return made(SchemaState.REGISTERED, newest.id)
        if reasons := _why_not(part, schema, newest.schema, facts, register):
            return made(SchemaState.INCOMPATIBLE, None, reasons)
    if register is AutoRegister.FALSE:
        return made(SchemaState.MISSING)
    return made(SchemaState.NEW if newest is None else SchemaState.COMPATIBLE)


def _why_not(
    part: Part, new: RegisteredSchema, old: RegisteredSchema, facts: SubjectFacts, register: AutoRegister
) -> tuple[str, ...]:
    if part is Part.KEY:
        return tuple(f"{why}, and with it every key becomes another one" for why in key_changes(new, old))
    if not facts.takes:
        found = why_not_next(new, old, facts.level)
        return found or ("the registry says so; the newest version alone does not show why",)
    return unreadable(new, old) if register is AutoRegister.CHECK else ()
