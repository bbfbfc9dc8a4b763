"""The contract of all connectors, run against this one; and what stands in a spec."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import sinks_connector_mytarget
from sinks_connector_mytarget import database
from sinks_connector_mytarget.kind import KIND

from airflow_provider_sinks.connectors import rows
from airflow_provider_sinks.connectors.base import SinkConnector
from airflow_provider_sinks.connectors.epoch_writer import EpochWriter, InDoubtError
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.decision.facts import Creation
from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.testing.connector_contract import ExecutorCommits
from airflow_provider_sinks.testing.interface import foreign_imports, unsaid_options
from airflow_provider_sinks.testing.played_start import SINK, Coordinates, Harness

SCHEMA = pa.schema(
    {
        rows.PARTITION: pa.int32(),
        rows.OFFSET: pa.int64(),
        rows.ERROR: pa.string(),
        "row": pa.string(),
        rows.RAW_KEY: pa.binary(),
        rows.RAW_VALUE: pa.binary(),
        rows.RAW_TIMESTAMP: pa.int64(),
        rows.RAW_HEADERS: pa.string(),
    }
)


def spec(file: Path, sink: str = SINK, **options: str) -> SinkSpec:
    """Return a sink; its target is found by the entry point, so the package must be installed."""
    return SinkSpec.parse(
        {
            "name": sink,
            "source": {"kafka": {"connection": "k", "topic": "source", "format": "bytes"}},
            "target": {"mytarget": {"file": str(file), "table": sink, **options}},
            "dead_letter": {"table": f"{sink}_dead"},
        }
    )


class MyTargetHarness(Harness):
    """A file of its own, read by plain SQL."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file

    def connector(self, sink: str = SINK) -> SinkConnector:
        return KIND.connect(spec(self._file, sink), ResolvedConnections({}), None, print, print)

    def creations(self, sink: str = SINK) -> Sequence[Creation]:
        return list(spec(self._file, sink).creations().values())

    def batch(self, partition: int, offsets: range, bad: Sequence[int] = ()) -> pa.RecordBatch:
        found = [
            {
                rows.PARTITION: partition,
                rows.OFFSET: at,
                rows.ERROR: "no JSON" if at in bad else None,
                "row": json.dumps([partition, at]),
                rows.RAW_VALUE: b"as it came",
            }
            for at in offsets
        ]
        return pa.RecordBatch.from_pylist(found, SCHEMA)

    def visible(self, sink: str = SINK) -> list[Coordinates]:
        return sorted((part, at) for (row,) in self._read(sink, "row") for part, at in [json.loads(row)])

    def set_aside(self, sink: str = SINK) -> list[Coordinates]:
        return sorted(self._read(f"{sink}_dead", "source_partition, source_offset"))

    def _read(self, table: str, columns: str) -> list[Any]:
        with sqlite3.connect(self._file) as connection:
            try:
                return connection.execute(f"SELECT {columns} FROM {table}").fetchall()  # noqa: S608  our own names
            except sqlite3.OperationalError:  # there is no such table yet
                return []

    @contextmanager
    def losing_answers(self) -> Iterator[None]:
        with self._losing(happens=True):
            yield

    @contextmanager
    def losing_commits(self) -> Iterator[None]:
        with self._losing(happens=False):
            yield

    @contextmanager
    def _losing(self, *, happens: bool) -> Iterator[None]:
        """Let nobody hear of a commit. A target with a server does better with a wire that is cut."""
        commit = database.commit

        def fail(connection: sqlite3.Connection) -> None:
            if happens:
                commit(connection)
            raise InDoubtError("nobody answers")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(database, "commit", fail)
            yield

    def kill(self, writer: EpochWriter) -> None:
        pass  # its rows were in its process alone


class TestMyTarget(ExecutorCommits):
    @pytest.fixture
    def harness(self, tmp_path: Path) -> MyTargetHarness:
        return MyTargetHarness(tmp_path / "sinks.db")


def test_what_is_wrong_with_options_is_told_at_once() -> None:
    with pytest.raises(ConfigurationError) as refused:
        spec(Path("sinks.db"), tabel="orders")

    assert "target.mytarget.file: 'sinks.db' is no file" in refused.value.detail
    assert "target.mytarget.tabel: is not known" in refused.value.detail


def test_each_option_says_what_its_change_bears_on() -> None:
    assert unsaid_options(KIND) == ()


def test_it_imports_nothing_but_the_interface() -> None:
    assert foreign_imports(Path(sinks_connector_mytarget.__file__).parent) == []
