"""What the sink makes of a target of Spark's, and what it leaves to others."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_sinks.connectors.plain import PlainCreation
from airflow_provider_sinks.core.decision.facts import Role, Unfit
from airflow_provider_sinks.core.progress.identity import ResourceKind


class UseFolder(PlainCreation):
    """An action: this folder must be there, and be the sink's own."""

    def __str__(self) -> str:
        return f'use {self.role.called(ResourceKind.FOLDER)} "{self.name}"'


@dataclass(frozen=True)
class NotOurs(PlainCreation):
    """An output that only its owner makes, and makes anew."""

    role: Role
    name: str

    @property
    def hindrance(self) -> Unfit:  # type: ignore[override]  # a plain creation has none
        """Why it cannot be made: Spark would guess its types, and nobody could tell it from another."""
        return Unfit(
            "is not the sink's to make",
            "Spark's writer would make it with types of its own choice.",
            "Make it as the query's columns need it.",
        )

    def __str__(self) -> str:
        return f'make {self.role.called(ResourceKind.TABLE)} "{self.name}"'
