"""The tables that a sink makes: its data, and its dead letters. The progress is made with the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

from airflow_provider_sinks.connectors.iceberg.partitions import PartitionTerm
from airflow_provider_sinks.connectors.iceberg.spec import IcebergTarget
from airflow_provider_sinks.connectors.plain import PlainCreation
from airflow_provider_sinks.core.decision.facts import Creation, ResourceFacts, Role, Unfit
from airflow_provider_sinks.core.progress.identity import ResourceKind

SparkType = str | Mapping[str, Any]
"""A type as Spark's own JSON has it: ``"long"``, or ``{"type": "struct", "fields": [...]}``."""

DEAD_LETTER_COLUMNS: Final[Mapping[str, SparkType]] = {
    "at": "timestamp",
    "sink": "string",
    "error": "string",
    "source_topic": "string",
    "source_partition": "integer",
    "source_offset": "long",
    "key": "binary",
    "value": "binary",
    "error_class": "string",
    "source_timestamp": "timestamp",
    "headers": "string",
    "generation": "long",
    "epoch": "long",
    "spec_digest": "string",
    "replays": "integer",
}
LAYOUT = "layout"
"""The name under which a reset keeps schema and partitioning of a table that it makes anew."""


class KeepProgress(PlainCreation):
    """An action: the table keeps the progress; the first announcement makes it."""

    def __init__(self, name: str) -> None:
        super().__init__(Role.PROGRESS, name)

    def __str__(self) -> str:
        return f'keep the progress in the properties of table "{self.name}"'


@dataclass(frozen=True)
class CreateTable:
    """An action: this table must exist.

    :param name: with its namespace, which is made too.
    :param columns: their types; none where only the query tells them.
    :param key: the columns that tell its rows apart.
    :param partition_by: its partitioning.
    :param properties: of the table.
    :param layout: JSON of schema and partitioning of the table in whose place it is made.
    :param may_be_made: whether the spec lets the sink make it.
    """

    role: Role
    name: str
    columns: Mapping[str, SparkType] = field(default_factory=dict)
    key: Sequence[str] = ()
    partition_by: tuple[PartitionTerm, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    layout: str = ""
    may_be_made: bool = True

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
        if self.may_be_made:
            return None
        return Unfit(
            "is not the sink's to make",
            "target.iceberg.create is not set.",
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
        by = ", ".join(f"{term.iceberg}({term.column})" for term in self.partition_by)
        return (
            f'create {self.role.called(ResourceKind.TABLE)} "{self.name}": {columns}{key}'
            f"{f', partitioned by {by}' if by else ''}"
        )


def data_table(target: IcebergTarget) -> CreateTable:
    """Return how the target is made, but for its columns, which the query tells."""
    return CreateTable(
        Role.DATA,
        target.table,
        key=target.key,
        partition_by=tuple(map(PartitionTerm.parse, target.partition_by)),
        properties=target.properties,
        may_be_made=target.create,
    )


def dead_letter_table(name: str) -> CreateTable:
    """Return how a table of dead letters is made."""
    return CreateTable(Role.DEAD_LETTER, name, DEAD_LETTER_COLUMNS)


__all__ = ["CreateTable", "Creation", "KeepProgress", "data_table", "dead_letter_table"]
