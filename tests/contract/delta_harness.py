from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from deltalake.table import TableMerger

from airflow_provider_sinks.connectors import rows
from airflow_provider_sinks.connectors.base import SinkConnector
from airflow_provider_sinks.connectors.epoch_writer import EpochWriter
from airflow_provider_sinks.connectors.registry import connect
from airflow_provider_sinks.connectors.table_format.creation import CreateTable
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.decision.facts import Creation, Role
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.testing.played_start import SINK, SOURCE, Coordinates, Harness

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


class DeltaHarness(Harness):
    """Tables in a folder.

    :param target: options of the targets beside the path.
    """

    def __init__(self, folder: Path, **target: Any) -> None:
        super().__init__()
        self.folder = folder
        self._target = target

    def path(self, sink: str = SINK, suffix: str = "") -> Path:
        return self.folder / f"{sink}{suffix}"

    def address(self, sink: str = SINK, suffix: str = "") -> str:
        return str(self.path(sink, suffix))

    def connections(self) -> ResolvedConnections:
        return ResolvedConnections({})

    def spec(self, sink: str = SINK) -> SinkSpec:
        table = {"path": self.address(sink), "create": True, **self._target}
        return SinkSpec.parse(
            {
                "name": sink,
                "source": {"kafka": {"connection": "k", "topic": SOURCE.name, "format": "bytes"}},
                "query": "SELECT 1 AS part, 2 AS at, 'x' AS what FROM source",
                "target": {"delta": table},
                "dead_letter": {"path": self.address(sink, "_dead")},
            }
        )

    def connector(self, sink: str = SINK) -> SinkConnector:
        return connect(self.spec(sink), self.connections())

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

    def table(self, sink: str = SINK, suffix: str = "") -> DeltaTable:
        """Load a table as any other program does."""
        return DeltaTable(self.path(sink, suffix))

    def rows(self, sink: str = SINK, suffix: str = "") -> list[dict[str, Any]]:
        with suppress(TableNotFoundError):
            found: list[dict[str, Any]] = self.table(sink, suffix).to_pyarrow_table().to_pylist()
            return found
        return []

    def visible(self, sink: str = SINK) -> list[Coordinates]:
        return sorted((row["part"], row["at"]) for row in self.rows(sink))

    def set_aside(self, sink: str = SINK) -> list[Coordinates]:
        found = self.rows(sink, "_dead")
        return sorted((row["source_partition"], row["source_offset"]) for row in found)

    @contextmanager
    def losing_answers(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            losing(patch, happens=True)
            yield

    @contextmanager
    def losing_commits(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            losing(patch, happens=False)
            yield

    def kill(self, writer: EpochWriter) -> None:
        pass  # what is left of it are files that nobody has finished


def losing(patch: pytest.MonkeyPatch, *, happens: bool, name: str = "", times: int = 99) -> None:
    """Lose commits, or the answers to them, as a storage that does not answer does.

    :param name: of the only table that this befalls.
    """
    left = [None] * times

    def lost(real: Any, of: DeltaTable | Any, *arguments: Any, **more: Any) -> Any:
        uri = str(of.table_uri if isinstance(of, DeltaTable) else of._table.table_uri())
        if not uri.rstrip("/").endswith(name) or not left:
            return real(of, *arguments, **more)
        left.pop()
        if happens:
            real(of, *arguments, **more)
        raise ConnectionError("the answer got lost")

    for kind, method in ((DeltaTable, "create_write_transaction"), (TableMerger, "execute")):
        real = getattr(kind, method)
        patch.setattr(kind, method, lambda of, *a, _real=real, **k: lost(_real, of, *a, **k))


def append_of_others(table: DeltaTable, count: int = 3) -> None:
    """Rows that another program appends; the suite's own are told apart by their partition."""
    from deltalake import write_deltalake

    columns = {"part": pa.array([9] * count, pa.int32()), "at": pa.array(range(count), pa.int64())}
    write_deltalake(table, pa.table({**columns, "what": pa.array(["theirs"] * count)}), mode="append")
