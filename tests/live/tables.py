"""The same table in Postgres, Iceberg or Delta, for tests of what must be the same in each."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from psycopg import sql
from psycopg.rows import dict_row

from airflow_provider_sinks.connectors.iceberg.catalog import TableCatalog
from tests.live.stage import Stage

KINDS = ["postgres", "iceberg", "delta"]


@dataclass
class Table:
    """A table of one kind, and one for dead letters beside it."""

    stage: Stage
    kind: str
    schema: str
    folder: Path

    @property
    def spec(self) -> dict[str, Any]:
        """What a sink says of both."""
        folder, name = self.folder, f"{self.schema}.orders"
        targets: dict[str, Any] = {
            "postgres": {"connection": "pg", "table": name},
            "iceberg": {"catalog": "lake", "table": name},
            "delta": {"path": str(folder / "orders")},
        }
        place = "path" if self.kind == "delta" else "table"
        dead = str(folder / "dead") if self.kind == "delta" else f"{self.schema}.dead"
        target = {self.kind: {**targets[self.kind], "create": True}}
        return {"target": target, "dead_letter": {place: dead}}

    def ids(self) -> Counter[str]:
        """Return how often each id is there."""
        return Counter(str(row["id"]) for row in self.rows())

    def rows(self) -> list[dict[str, Any]]:
        """Return what is in the table, as another program reads it."""
        if self.kind == "delta":
            found: list[dict[str, Any]] = DeltaTable(self.folder / "orders").to_pyarrow_table().to_pylist()
            return found
        if self.kind == "iceberg":
            with closing(TableCatalog(self.stage.lake)) as catalog:
                return list(catalog.load(f"{self.schema}.orders").scan().to_arrow().to_pylist())
        with self.stage.postgres.connect() as connection:
            cursor = connection.cursor(row_factory=dict_row)
            query = sql.SQL("SELECT * FROM {}").format(sql.Identifier(self.schema, "orders"))
            return cursor.execute(query).fetchall()
