"""Schema and partitioning of a table as text, which travels, is kept by a reset, and can be compared."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table


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
