"""Schema and partitioning of a table as text, which travels, is kept by a reset, and can be compared."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_provider_sinks.connectors.table_format.errors import ElsewhereError
from airflow_provider_sinks.core.errors import JobFailedError, RefusedError

if TYPE_CHECKING:
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata


OTHER_FILES = "has files of another partitioning than its own"
WHY_OTHER_FILES = "An upsert deletes older rows in files of one partitioning alone: those others would stay."
REWRITE_OTHER_FILES = (
    "Write all of it anew: CALL <catalog>.system.rewrite_data_files(table => ..., options => "
    "map('rewrite-all', 'true'))"
)
_LOCATION = "location"


def has_other_files(table: Table) -> bool:
    """Return whether files of another partitioning would keep rows that an upsert deletes.

    An equality delete of a partitioned table applies to files of its own partitioning, and no other; one of
    a table that is not partitioned applies to all.
    """
    from pyiceberg.manifest import ManifestContent

    snapshot, spec = table.metadata.current_snapshot(), table.spec()
    if snapshot is None or spec.is_unpartitioned():
        return False
    return any(
        manifest.partition_spec_id != spec.spec_id
        and (manifest.has_added_files() or manifest.has_existing_files())
        for manifest in snapshot.manifests(table.io)
        if manifest.content == ManifestContent.DATA
    )


@dataclass(frozen=True)
class Layout:
    """Schema and partitioning of a table, as text."""

    schema: str
    spec: str

    @classmethod
    def of(cls, table: Table) -> Layout:
        """Return those of a table."""
        return cls(table.schema().model_dump_json(), table.spec().model_dump_json())

    def to_json(self) -> str:
        """Write both."""
        return json.dumps({"schema": self.schema, "spec": self.spec})

    @classmethod
    def from_json(cls, text: str) -> Layout:
        """Read what :meth:`to_json` wrote."""
        return cls(**json.loads(text))

    def read(self) -> tuple[Schema, PartitionSpec]:
        """Return both as PyIceberg knows them."""
        from pyiceberg.partitioning import PartitionSpec
        from pyiceberg.schema import Schema

        return Schema.model_validate_json(self.schema), PartitionSpec.model_validate_json(self.spec)


@dataclass(frozen=True)
class TablePlan:
    """How data files of one table are written.

    :param location: of the table.
    :param layout: its schema and partitioning.
    :param spec_id: the number of that partitioning.
    :param properties: of the table, those for writers.
    """

    location: str
    layout: Layout
    spec_id: int = 0
    properties: Mapping[str, str] = field(default_factory=dict)


def letters_layout(
    schema: Schema, spec: PartitionSpec, names: Collection[str], location: str
) -> dict[str, Any]:
    """Return what files of dead letters go by, as a stage has it.

    :param names: the columns that are written.
    :param location: of the table in whose folder they lie.
    """
    return {
        "columns": _columns(schema, names),
        "partitioned_by": _partitioned_by(spec),
        _LOCATION: location,
    }


def is_at(begun: Mapping[str, Any], location: str) -> bool:
    """Whether files of dead letters lie in the folder of a table at this place. Older stages do not tell."""
    return bool(begun.get(_LOCATION, location) == location)


def moved_to(begun: Mapping[str, Any], location: str) -> dict[str, Any]:
    """Return what copies go by that lie in the folder of a table at this place."""
    return {**begun, _LOCATION: location}


def demand_same(table: TableMetadata, spec_id: int, begun: Mapping[str, Any]) -> None:
    """See that files of dead letters mean in a table what they meant in the one that they were begun for.

    :param spec_id: the number of the partitioning that they are of.
    :param begun: see :func:`letters_layout`; nothing in stages of earlier releases.
    :raises ElsewhereError: it has other columns, or lies elsewhere: files in the folder of another table go
        with that one.
    :raises KeyError: it does not have that partitioning.
    :raises ValueError: it has another one of that number.
    """
    if not is_at(begun, table.location):
        raise ElsewhereError(f"They were staged at {begun[_LOCATION]}, and it lies at {table.location}.")
    columns = begun.get("columns", {})
    now = _columns(table.schema(), columns)
    for name, was in columns.items():
        if now.get(name) != was:
            found = now.get(name, "not there")
            raise ElsewhereError(f"Column {name!r} was {was} when they were staged, and is {found}.")
    if "partitioned_by" in begun and _partitioned_by(table.specs()[spec_id]) != begun["partitioned_by"]:
        raise ValueError(f"partitioning {spec_id} is another one")


def demand_unaltered(table: Table, begun: Layout, columns: Collection[str], sink: str) -> None:
    """See that files still mean what they meant when they were begun: they go by the ids of columns.

    :param begun: what they were begun with.
    :param columns: that are written.
    :raises JobFailedError: columns or partitioning were changed; a start compares them anew.
    """
    if Layout.of(table) == begun:
        return
    schema, spec = begun.read()
    now = {field.field_id: field for field in table.schema().fields}
    changed = [f.name for f in schema.fields if f.name in columns and now.get(f.field_id) != f]
    if changed or spec != table.spec():
        raise JobFailedError(
            f'table "{".".join(table.name())}" was altered while sink "{sink}" ran',
            f"Column {changed[0]!r} is another one." if changed else "Its partitioning is another one.",
            "The next start compares the query with the table as it is.",
        )


def _columns(schema: Schema, names: Collection[str]) -> dict[str, str]:
    """Return what tells columns from others of their names: files go by the number, and not by the name."""
    return {f.name: f"number {f.field_id}, {f.field_type}" for f in schema.fields if f.name in names}


def _partitioned_by(spec: PartitionSpec) -> list[str]:
    return [f"{field.transform}({field.source_id})" for field in spec.fields]


def demand_own_files(table: Table) -> None:
    """See that an upsert deletes in all files.

    :raises RefusedError: some are of another partitioning: somebody who had loaded the table before it was
        changed has written them since.
    """
    if has_other_files(table):
        primary = f'table "{".".join(table.name())}" has files of another partitioning than its own'
        raise RefusedError(primary, WHY_OTHER_FILES, REWRITE_OTHER_FILES)
