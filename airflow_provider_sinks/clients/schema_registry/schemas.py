"""Schemas as a registry has them, or is to have them, and how its API writes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_provider_sinks.core.schemas.languages import Referred

AVRO = "AVRO"
"""The kind of a schema for which the API needs none."""


@dataclass(frozen=True)
class Reference:
    """A schema that another one names.

    :param name: the name by which the other one names it.
    """

    name: str
    subject: str
    version: int

    @classmethod
    def from_mapping(cls, found: Mapping[str, Any]) -> Reference:
        """Read one as the API writes it."""
        return cls(str(found["name"]), str(found["subject"]), int(found["version"]))

    def to_mapping(self) -> dict[str, Any]:
        """Write it as the API takes it."""
        return {"name": self.name, "subject": self.subject, "version": self.version}


@dataclass(frozen=True)
class StoredSchema:
    """A schema as a registry has it.

    :param id: of the schema, which is the same under all its subjects.
    :param subject: empty where it was asked for by its id.
    :param referred: the schemas that it names, what they need themselves first.
    :param missing: which of them is not there; empty where all are.
    """

    id: int
    text: str
    kind: str = AVRO
    subject: str = ""
    version: int = 0
    references: tuple[Reference, ...] = ()
    referred: tuple[Referred, ...] = ()
    missing: str = ""

    @classmethod
    def from_mapping(cls, found: Mapping[str, Any]) -> StoredSchema:
        """Read one as the API writes it, still without the texts of what it names."""
        return cls(
            id=int(found["id"]),
            text=str(found["schema"]),
            kind=str(found.get("schemaType") or AVRO),
            subject=str(found.get("subject") or ""),
            version=int(found.get("version") or 0),
            references=references_of(found),
        )


@dataclass(frozen=True)
class NewSchema:
    """A schema that a registry may not have yet."""

    text: str
    kind: str = AVRO
    references: tuple[Reference, ...] = ()

    def to_mapping(self) -> dict[str, Any]:
        """Write it as the API takes it."""
        kind = {} if self.kind == AVRO else {"schemaType": self.kind}
        named = {"references": [one.to_mapping() for one in self.references]} if self.references else {}
        return {"schema": self.text, **kind, **named}


def references_of(found: Mapping[str, Any]) -> tuple[Reference, ...]:
    """Return what a schema refers to, as the API writes it."""
    return tuple(map(Reference.from_mapping, found.get("references") or ()))
