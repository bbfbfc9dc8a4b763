"""A sink in a real Airflow that writes a table of Postgres, and what must be in it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from psycopg import sql

from airflow_provider_sinks.local.postgres import Postgres
from tests.faults import topics
from tests.live.sinks_in_airflow import AirflowSink


@dataclass
class TableSink(AirflowSink):
    """A sink into a table that is there, of its own name.

    :param server: has the table.
    :param table_connection: the Airflow connection that leads to it.
    :param schema: of the table.
    """

    server: Postgres = field(kw_only=True)
    table_connection: str = field(kw_only=True)
    schema: str = field(kw_only=True)

    def sink(self) -> dict[str, Any]:
        table = {"connection": self.table_connection, "table": f"{self.schema}.{self.name}"}
        return {**super().sink(), "select": ["value"], "target": {"postgres": table}}

    def make_table(self) -> None:
        """Make the table."""
        create = sql.SQL("CREATE TABLE {} (value text)")
        with self.server.connect() as connection:
            connection.execute(create.format(sql.Identifier(self.schema, self.name)))

    def demand_exact(self, rows_min: int = 1) -> None:
        rows = sql.SQL("SELECT value FROM {}").format(sql.Identifier(self.schema, self.name))
        progress = sql.SQL("SELECT writer, record FROM {} WHERE sink = %s AND record IS NOT NULL")
        of_all = progress.format(sql.Identifier(self.schema, "_sinks_progress"))
        with self.server.connect() as connection:
            found = Counter(value for (value,) in connection.execute(rows))
            records: dict[str, Any] = dict(connection.execute(of_all, [self.name]).fetchall())
        committed = {int(w[1:]): record["to"][w[1:]] for w, record in records.items() if w.startswith("p")}
        source = topics.read(self.client, f"{self.name}_in")
        wanted = Counter(
            (record.value or b"").decode() for record in source if record.offset < committed[record.partition]
        )
        assert (wanted - found, found - wanted) == (Counter(), Counter())
        assert found.total() >= rows_min
