"""Columns and partitioning of a table as text, which travels, is kept by a reset, and can be compared."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from airflow_provider_sinks.connectors.delta.log import DeltaVersion
from airflow_provider_sinks.connectors.delta.row_rules import RowRules
from airflow_provider_sinks.connectors.delta.types import columns_of
from airflow_provider_sinks.connectors.table_format.types import Column
from airflow_provider_sinks.core.errors import JobFailedError

PARTITIONED_BY: Final = "partitioned_by"
"""Under which name staged dead letters say of which columns their partitions are values."""


@dataclass(frozen=True)
class Layout:
    """Columns and partitioning of a table.

    :param schema: Spark's JSON of a struct.
    :param partitioned_by: names of columns.
    :param rules: what it demands of each row; they are no part of the text, as a table that is made anew has
        none.
    """

    schema: str
    partitioned_by: tuple[str, ...] = ()
    rules: RowRules = field(default_factory=RowRules)

    @classmethod
    def of(cls, table: DeltaVersion) -> Layout:
        """Return those of a table."""
        schema = json.dumps({"type": "struct", "fields": table.fields})
        return cls(schema, table.partitioned_by, RowRules.of(table))

    def to_json(self) -> str:
        """Write both."""
        return json.dumps({"schema": self.schema, "partitioned_by": self.partitioned_by})

    @classmethod
    def from_json(cls, text: str) -> Layout:
        """Read what :meth:`to_json` wrote."""
        found = json.loads(text)
        return cls(found["schema"], tuple(found["partitioned_by"]))

    @property
    def fields(self) -> list[dict[str, Any]]:
        """The columns, as the schema has them."""
        found: list[dict[str, Any]] = json.loads(self.schema)["fields"]
        return found

    @property
    def columns(self) -> dict[str, Column]:
        """The columns, as they are compared."""
        return columns_of(self.fields)


@dataclass(frozen=True)
class TablePlan:
    """How data files of one table are written.

    :param root: its path.
    :param layout: its columns and partitioning.
    :param properties: of the table.
    """

    root: str
    layout: Layout
    properties: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, table: DeltaVersion) -> TablePlan:
        """Return that of a table."""
        return cls(table.name, Layout.of(table), dict(table.properties))


def demand_unaltered(table: DeltaVersion, begun: Layout, columns: Collection[str], sink: str) -> None:
    """See that files still mean what they meant when they were begun.

    :param begun: what they were begun with.
    :param columns: that are written.
    :raises JobFailedError: columns or partitioning were changed; a start compares them anew.
    """
    now = Layout.of(table)
    if now == begun:
        return
    found, wanted = now.columns, begun.columns
    changed = [name for name in columns if found.get(name) != wanted.get(name)]
    required = [name for name, one in found.items() if one.is_required and name not in columns]
    has_other_rules = now.rules != begun.rules
    if changed or required or has_other_rules or now.partitioned_by != begun.partitioned_by:
        column = next(iter([*changed, *required]), "")
        what = "Its constraints are others." if has_other_rules else "Its partitioning is another one."
        raise JobFailedError(
            f'table "{table.name}" was altered while sink "{sink}" ran',
            f"Column {column!r} is another one." if column else what,
            "The next start compares the query with the table as it is.",
        )
