"""A Postgres table that is there, and one start that writes it: for tests of what becomes of its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pyarrow as pa

from airflow_provider_sinks.connectors import rows
from airflow_provider_sinks.connectors.epoch_writer import WriteResult
from airflow_provider_sinks.connectors.postgres.tables import SinkTables
from airflow_provider_sinks.connectors.postgres.writer import PostgresEpochWriter
from airflow_provider_sinks.core.progress.record import ProgressRecord
from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.testing.played_start import SINK, PlayedStart
from tests.contract.postgres_harness import PostgresHarness

UPSERT = {"mode": "upsert", "key": ("id",)}
KEYED = "id bigint PRIMARY KEY, what text"


class Table(PostgresHarness):
    """A table that is there, and one start that writes it."""

    def __init__(self, server: Postgres, definition: str, **target: Any) -> None:
        self._has_dead_letters = target.pop("dead_letters", True)
        self._has_deletes = target.pop("has_deletes", False)
        before = target.pop("before", "")
        self._timeout = target.pop("timeout", timedelta(seconds=60))
        super().__init__(server, **target)
        if before:
            self.execute(before)
        self.execute("CREATE TABLE {table} ({definition})", definition=definition)
        self.start = PlayedStart(self).start()

    def sink(self, name: str = SINK) -> SinkTables:
        sink = replace(super().sink(name), timeout=self._timeout, has_deletes=self._has_deletes)
        return sink if self._has_dead_letters else SinkTables(name, sink.target)

    def execute(self, statement: str, **names: str) -> list[tuple[Any, ...]]:
        """Run SQL in which ``{table}``, ``{schema}`` and ``{dead}`` stand for this test's own."""
        own = {"table": f"{self.schema}.{SINK}", "dead": f"{self.schema}.{SINK}_dead", "schema": self.schema}
        for name, value in {**names, **own}.items():
            statement = statement.replace(f"{{{name}}}", value)
        done = self.direct.execute(statement.encode())
        return done.fetchall() if done.description else []

    def epoch(self, number: int, *batches: Mapping[str, Any]) -> tuple[WriteResult, ProgressRecord]:
        """Write one epoch of writer p0, and return what it took and what the record says of it."""
        start, taken, offset = self.start, WriteResult(0, 0, 0), number * 1000
        writer = self.open_writer()
        before = writer.last
        for batch in batches:
            arrow = with_coordinates(batch, offset)
            taken += writer.write_batch(arrow)
            offset += arrow.num_rows
        writer.flush()
        record = start.record(
            number,
            {0: number * 1000, 1: 0},
            {0: offset, 1: 0},
            rows=taken.rows,
            rows_total=(before.rows_total if before else 0) + taken.rows,
            dead_total=(before.dead_total if before else 0) + taken.dead,
        )
        writer.pre_commit(record)
        writer.commit_epoch()
        assert writer.last is not None
        assert start.connector.progress().records["p0"] == writer.last
        return taken, writer.last

    def open_writer(self) -> PostgresEpochWriter:
        """Return a new writer p0, within an epoch."""
        writer = self.start.factory.prepare("p0")
        assert isinstance(writer, PostgresEpochWriter)
        self.made.append(writer)
        writer.open()
        writer.begin_epoch(1)
        return writer

    def rows(self, columns: str = "*") -> list[tuple[Any, ...]]:
        return self.execute("SELECT {columns} FROM {table} ORDER BY 1", columns=columns)

    def dead(self) -> list[tuple[Any, ...]]:
        return self.execute("SELECT source_offset, error, value FROM {dead} ORDER BY source_offset")

    def close(self) -> None:
        for left in self.made:
            left.close()
        super().close()


def with_coordinates(columns: Mapping[str, Any], first: int) -> pa.RecordBatch:
    """Return a batch as ``project`` gives it. Columns are Arrow arrays, or texts."""
    given = {
        name: values if isinstance(values, pa.Array) else pa.array(values, pa.string())
        for name, values in columns.items()
    }
    count = len(next(iter(given.values())))
    own = {
        rows.PARTITION: pa.array([0] * count, pa.int32()),
        rows.OFFSET: pa.array(range(first, first + count), pa.int64()),
        rows.ERROR: pa.nulls(count, pa.string()),
    }
    raw = {
        rows.RAW_KEY: pa.nulls(count, pa.binary()),
        rows.RAW_VALUE: pa.array([b"raw"] * count, pa.binary()),
        rows.RAW_TIMESTAMP: pa.array([1_700_000_000_000] * count, pa.int64()),
        rows.RAW_HEADERS: pa.array(['[["trace","AP8="]]'] * count, pa.string()),
    }
    return pa.RecordBatch.from_pydict({**own, **given, **raw})


def flags(*values: bool) -> pa.Array:
    return pa.array(values, pa.bool_())


def longs(*values: int | None) -> pa.Array:
    return pa.array(values, pa.int64())
