"""The tables that a sink makes: its data, and its dead letters. The progress is made with the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

from airflow_provider_sinks.connectors.plain import PlainCreation
from airflow_provider_sinks.connectors.table_format.letters import DEAD_LETTER_COLUMNS
from airflow_provider_sinks.connectors.table_format.types import SparkType
from airflow_provider_sinks.core.decision.facts import ResourceFacts, Role, Unfit
from airflow_provider_sinks.core.progress.identity import ResourceKind

LAYOUT: Final = "layout"
"""The name under which a reset keeps schema and partitioning of a table that it makes anew."""


@dataclass(frozen=True)
class KeepProgress(PlainCreation):
    """An action: the table keeps the progress; the first announcement makes it.

    :param where: in what of it, for people.
    """

    where: str

    def __str__(self) -> str:
        return f'keep the progress in {self.where} of table "{self.name}"'


@dataclass(frozen=True)
class CreateTable:
    """An action: this table must exist.

    :param name: as its format names tables.
    :param columns: their types; none where only the query tells them.
    :param key: the columns that tell its rows apart.
    :param partition_by: its partitioning, as its format has it; as text, as people write it.
    :param properties: of the table.
    :param layout: JSON of schema and partitioning of the table in whose place it is made.
    :param not_set: why the sink must not make it: the sentence about the option that would let it.
    """

    role: Role
    name: str
    columns: Mapping[str, SparkType] = field(default_factory=dict)
    key: Sequence[str] = ()
    partition_by: tuple[Any, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    layout: str = ""
    not_set: str = ""

    def for_source(self, source: ResourceFacts) -> Self:
        """Return it as it is: nothing of it hangs on the source."""
        del source
        return self

    def anew(self, before: ResourceFacts, settings: Mapping[str, str]) -> CreateTable:
        """Return it with the layout that it had, where the spec tells no columns."""
        del before
        return self if self.columns else replace(self, layout=settings.get(LAYOUT, ""))

    @property
    def forbidden(self) -> Unfit | None:
        """Why the sink must not make it."""
        if not self.not_set:
            return None
        return Unfit(
            "is not the sink's to make",
            self.not_set,
            "Write create: true, or make the table as the query's columns need it.",
        )

    @property
    def hindrance(self) -> Unfit | None:
        """Why it cannot be made as it is."""
        if self.forbidden is not None:
            return self.forbidden
        if not self.columns and not self.layout:
            return Unfit(
                "is made by the job alone",
                "Only the job of the sink knows the columns of its query.",
                "Start the sink with the accept code that its refusal offers, or make the table.",
            )
        return None

    def with_columns(self, columns: Mapping[str, SparkType]) -> CreateTable:
        """Return it with the columns of a query."""
        return replace(self, columns=columns)

    def __str__(self) -> str:
        columns = "as it was" if self.layout else ", ".join(self.columns) or "the columns of the query"
        key = f", key {', '.join(self.key)}" if self.key else ""
        by = ", ".join(map(str, self.partition_by))
        return (
            f'create {self.role.called(ResourceKind.TABLE)} "{self.name}": {columns}{key}'
            f"{f', partitioned by {by}' if by else ''}"
        )


def dead_letter_table(name: str) -> CreateTable:
    """Return how a table of dead letters is made."""
    return CreateTable(Role.DEAD_LETTER, name, DEAD_LETTER_COLUMNS)
