"""Sinks in a real Airflow that write tables into an object store, and what must be in them."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog

from airflow_provider_sinks.local.object_store import ObjectStore, delta_extra, iceberg_extra
from airflow_provider_sinks.local.postgres import Postgres
from tests.faults import topics
from tests.live.sinks_in_airflow import AirflowSink

NAMES = {
    "iceberg": ("s3.endpoint", "s3.access-key-id", "s3.secret-access-key"),
    "delta": ("aws_endpoint", "aws_access_key_id", "aws_secret_access_key"),
}
"""How each kind of connection calls address, id and secret."""


_OPTIONS = {"iceberg": iceberg_extra, "delta": delta_extra}


@dataclass
class LakeSink(AirflowSink):
    """A sink into a table that it makes.

    :param kind: ``iceberg`` or ``delta``.
    :param server: has the catalog.
    """

    kind: str = field(kw_only=True)
    server: Postgres = field(kw_only=True)

    @property
    def table_connection(self) -> str:
        """The Airflow connection of its target."""
        return f"lake_{self.name}"

    def sink(self) -> dict[str, Any]:
        targets: dict[str, Any] = {
            "iceberg": {"catalog": self.table_connection, "table": f"altered.{self.name}", "create": True},
            "delta": {"path": self._address, "connection": self.table_connection, "create": True},
        }
        return {**super().sink(), "select": ["value"], "target": {self.kind: targets[self.kind]}}

    def connect(self, store: ObjectStore) -> None:
        """Make the connection of its target."""
        extra = _OPTIONS[self.kind](store)
        if self.kind == "delta":
            self.airflow.add_connection(self.table_connection, "delta", extra=extra)
        else:
            fields = self.server.connection_fields
            self.airflow.add_connection(
                self.table_connection, "iceberg", **fields, extra={**extra, "name": "altered"}
            )

    def demand_all(self, store: ObjectStore) -> None:
        """Every row that was fed is in the table once, and no other; to be asked when all are committed."""
        source = topics.read(self.client, f"{self.name}_in")
        wanted = Counter((record.value or b"").decode() for record in source)
        found = Counter(self._values(store))
        assert (wanted - found, found - wanted) == (Counter(), Counter())

    @property
    def _address(self) -> str:
        return f"s3://lake/altered/{self.name}"

    def _values(self, store: ObjectStore) -> list[str]:
        options = _OPTIONS[self.kind](store)
        if self.kind == "delta":
            table = DeltaTable(self._address, storage_options=options).to_pyarrow_table()
        else:
            server = self.server
            login = f"{server.user}:{server.password}@{server.host}:{server.port}/{server.dbname}"
            uri = f"postgresql+psycopg://{login}"
            with closing(SqlCatalog("altered", uri=uri, **options)) as catalog:
                table = catalog.load_table(f"altered.{self.name}").scan().to_arrow()
        found: list[str] = table.column("value").to_pylist()
        return found
