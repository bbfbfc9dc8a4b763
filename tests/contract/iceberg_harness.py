from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.manifest import DataFileContent
from pyiceberg.table import Table
from sqlalchemy import update

from airflow_provider_sinks.connectors import rows
from airflow_provider_sinks.connectors.base import SinkConnector
from airflow_provider_sinks.connectors.epoch_writer import EpochWriter
from airflow_provider_sinks.connectors.iceberg.options import IcebergOptions
from airflow_provider_sinks.connectors.registry import connect
from airflow_provider_sinks.connectors.table_format.creation import CreateTable
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.decision.facts import Creation, Role
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.testing.played_start import SINK, SOURCE, Coordinates, Harness
from tests.contract.wire import Loss, PostgresWire

SCHEMA = pa.schema(
    {
        rows.PARTITION: pa.int32(),
        rows.OFFSET: pa.int64(),
        rows.ERROR: pa.string(),
        "part": pa.int32(),
        "at": pa.int64(),
        "what": pa.string(),
        rows.RAW_KEY: pa.binary(),
        rows.RAW_VALUE: pa.binary(),
        rows.RAW_TIMESTAMP: pa.int64(),
        rows.RAW_HEADERS: pa.string(),
    }
)
COLUMNS = {"part": "integer", "at": "long", "what": "string"}


class IcebergHarness(Harness):
    """A catalog of its own on a shared Postgres, reached over a wire that can be cut.

    :param target: options of the targets beside catalog and table.
    """

    def __init__(self, server: Postgres, folder: Path, **target: Any) -> None:
        super().__init__()
        self.name = f"lake{uuid.uuid4().hex[:12]}"
        self.wire = PostgresWire((server.host, server.port))
        self.folder = folder
        self._target = target
        self._options = self.options(server, self.wire.port)
        login = f"{server.user}:{server.password}@{server.host}:{server.port}/{server.dbname}"
        self._reader = SqlCatalog(self.name, uri=f"postgresql+psycopg://{login}", **self.storage())

    def storage(self) -> dict[str, str]:
        return {"warehouse": self.folder.as_uri()}

    def options(self, server: Postgres, port: int) -> IcebergOptions:
        extra = {"name": self.name, **self.storage()}
        fields = {**server.connection_fields, "port": port}
        return IcebergOptions.from_connection("lake", **fields, extra=extra)

    def spec(self, sink: str = SINK) -> SinkSpec:
        table = {"catalog": "lake", "table": f"shop.{sink}", "create": True, **self._target}
        return SinkSpec.parse(
            {
                "name": sink,
                "source": {"kafka": {"connection": "k", "topic": SOURCE.name, "format": "bytes"}},
                "query": "SELECT 1 AS part, 2 AS at, 'x' AS what FROM source",
                "target": {"iceberg": table},
                "dead_letter": {"table": f"shop.{sink}_dead"},
            }
        )

    def connector(self, sink: str = SINK) -> SinkConnector:
        return connect(self.spec(sink), ResolvedConnections({"lake": self._options}))

    def creations(self, sink: str = SINK) -> Sequence[Creation]:
        made = self.spec(sink).creations()
        data = made[Role.DATA]
        assert isinstance(data, CreateTable)
        return [made[Role.PROGRESS], data.with_columns(COLUMNS), made[Role.DEAD_LETTER]]

    def batch(self, partition: int, offsets: range, bad: Sequence[int] = ()) -> pa.RecordBatch:
        found = [
            {
                rows.PARTITION: partition,
                rows.OFFSET: at,
                rows.ERROR: "no JSON" if at in bad else None,
                "part": partition,
                "at": at,
                "what": f"row {at}",
                rows.RAW_VALUE: b"as it came",
            }
            for at in offsets
        ]
        return pa.RecordBatch.from_pylist(found, SCHEMA)

    def table(self, sink: str = SINK, suffix: str = "") -> Table:
        """Load a table as any other program does, over a way that nobody cuts."""
        return self._reader.load_table(f"shop.{sink}{suffix}")

    def put_back(self, metadata: str) -> None:
        """Let the catalog lead to earlier metadata of the sink's table, as its restored backup does."""
        found = update(IcebergTables).where(IcebergTables.table_name == SINK)
        with self._reader.engine.begin() as connection:
            connection.execute(
                found.where(IcebergTables.catalog_name == self.name).values(metadata_location=metadata)
            )

    def visible(self, sink: str = SINK) -> list[Coordinates]:
        return self._read(sink, "", "part", "at")

    def set_aside(self, sink: str = SINK) -> list[Coordinates]:
        return self._read(sink, "_dead", "source_partition", "source_offset")

    def losing_answers(self) -> AbstractContextManager[None]:
        return self.wire.losing(Loss.ANSWER)

    def losing_commits(self) -> AbstractContextManager[None]:
        return self.wire.losing(Loss.COMMIT)

    def kill(self, writer: EpochWriter) -> None:
        pass  # what is left of it are files that nobody has finished

    def close(self) -> None:
        self.wire.close()
        self._reader.close()

    def _read(self, sink: str, suffix: str, *columns: str) -> list[Coordinates]:
        try:
            table = self.table(sink, suffix)
        except NoSuchTableError:
            return []
        rows = (
            read_by_spec(table)
            if self._target.get("mode") == "upsert"
            else table.scan().to_arrow().to_pylist()
        )
        first, second = columns
        return sorted((row[first], row[second]) for row in rows)


def read_by_spec(table: Table) -> list[dict[str, Any]]:
    """Read a table with equality deletes as the format's specification says; PyIceberg does not read them."""
    snapshot = table.current_snapshot()
    entries = [
        entry
        for manifest in (snapshot.manifests(table.io) if snapshot else [])
        for entry in manifest.fetch_manifest_entry(table.io)
    ]
    files: dict[DataFileContent, list[tuple[int, list[dict[str, Any]]]]] = {
        content: [] for content in DataFileContent
    }
    for entry in entries:
        with table.io.new_input(entry.data_file.file_path).open() as source:
            rows = pq.read_table(source).to_pylist()
        files[entry.data_file.content].append((entry.sequence_number or 0, rows))
    deleted = [
        (number, tuple(key.items()))
        for number, keys in files[DataFileContent.EQUALITY_DELETES]
        for key in keys
    ]
    newest: dict[Any, int] = {}
    for number, key in deleted:
        newest[key] = max(newest.get(key, 0), number)
    names = [name for name, _ in deleted[0][1]] if deleted else []
    return [
        row
        for number, rows in files[DataFileContent.DATA]
        for row in rows
        if number >= newest.get(tuple((name, row[name]) for name in names), 0)
    ]
