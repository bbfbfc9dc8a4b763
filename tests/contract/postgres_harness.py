from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import pyarrow as pa
from psycopg import sql

from airflow_provider_sinks.connectors import rows
from airflow_provider_sinks.connectors.base import SinkConnector
from airflow_provider_sinks.connectors.epoch_writer import EpochWriter
from airflow_provider_sinks.connectors.postgres.connector import PostgresConnector
from airflow_provider_sinks.connectors.postgres.copying import CopyConnection
from airflow_provider_sinks.connectors.postgres.creation import (
    CreateTable,
    data_table,
    dead_letter_table,
    progress_table,
)
from airflow_provider_sinks.connectors.postgres.options import PostgresOptions
from airflow_provider_sinks.connectors.postgres.spec import PostgresTarget
from airflow_provider_sinks.connectors.postgres.tables import SinkTables
from airflow_provider_sinks.connectors.postgres.writer import PostgresEpochWriter
from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.testing.played_start import SINK, Coordinates, Harness
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
COLUMNS = {"part": "integer", "at": "bigint", "what": "text"}


def options_of(server: Postgres, port: int | None = None) -> PostgresOptions:
    fields = {**server.connection_fields, "port": port or server.port}
    return PostgresOptions.from_connection("warehouse", **fields, extra={})


class PostgresTables(Harness):
    """The sinks of one schema. It breaks nothing by itself.

    :param target: options of the targets beside connection and table.
    """

    def __init__(self, schema: str, options: PostgresOptions, target: Mapping[str, Any]) -> None:
        super().__init__()
        self.schema = schema
        self._options = options
        self._target = target

    def sink(self, name: str = SINK) -> SinkTables:
        table = {"connection": "warehouse", "table": f"{self.schema}.{name}", **self._target}
        return SinkTables(name, PostgresTarget.model_validate(table), f"{self.schema}.{name}_dead")

    def connector(self, sink: str = SINK) -> SinkConnector:
        return PostgresConnector(self.sink(sink), self._options)

    def creations(self, sink: str = SINK) -> Sequence[CreateTable]:
        target = self.sink(sink).target
        return [
            progress_table(target.progress_table),
            data_table(target.table, target.key).with_columns(COLUMNS),
            dead_letter_table(f"{self.schema}.{sink}_dead"),
        ]

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

    def visible(self, sink: str = SINK) -> list[Coordinates]:
        raise NotImplementedError

    def set_aside(self, sink: str = SINK) -> list[Coordinates]:
        raise NotImplementedError

    def losing_answers(self) -> AbstractContextManager[None]:
        raise NotImplementedError

    def losing_commits(self) -> AbstractContextManager[None]:
        raise NotImplementedError

    def kill(self, writer: EpochWriter) -> None:
        raise NotImplementedError


class PostgresHarness(PostgresTables):
    """A schema of its own, reached over a wire that can be cut."""

    def __init__(self, server: Postgres, **target: Any) -> None:
        self.direct = server.connect()
        self.wire = PostgresWire((server.host, server.port))
        super().__init__(f"s{uuid.uuid4().hex[:12]}", options_of(server, self.wire.port), target)
        self.direct.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(self.schema)))

    def visible(self, sink: str = SINK) -> list[Coordinates]:
        return self._coordinates(sink, "part, at")

    def set_aside(self, sink: str = SINK) -> list[Coordinates]:
        return self._coordinates(f"{sink}_dead", "source_partition, source_offset")

    def losing_answers(self) -> AbstractContextManager[None]:
        return self.wire.losing(Loss.ANSWER)

    def losing_commits(self) -> AbstractContextManager[None]:
        return self.wire.losing(Loss.COMMIT)

    def kill(self, writer: EpochWriter) -> None:
        assert isinstance(writer, PostgresEpochWriter)
        writer._connecting.join()
        assert isinstance(writer._made, CopyConnection)
        query = "SELECT client_port FROM pg_stat_activity WHERE pid = %s"
        for (port,) in self.direct.execute(query, [writer._made.backend_pid]).fetchall():
            self.wire.cut(port)

    def close(self) -> None:
        self.wire.close()
        self.direct.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(self.schema)))
        self.direct.close()

    def _coordinates(self, table: str, columns: str) -> list[Coordinates]:
        name = sql.Identifier(self.schema, table)
        there = self.direct.execute("SELECT to_regclass(%s)", [name.as_string(self.direct)]).fetchone()
        if there == (None,):
            return []
        query = sql.SQL("SELECT {} FROM {} ORDER BY 1, 2").format(sql.SQL(columns), name)
        return [(part, at) for part, at in self.direct.execute(query).fetchall()]
