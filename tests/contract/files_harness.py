from __future__ import annotations

import errno
import importlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_sinks.connectors import rows
from airflow_provider_sinks.connectors.base import SinkConnector
from airflow_provider_sinks.connectors.epoch_writer import EpochWriter
from airflow_provider_sinks.connectors.registry import connect
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.decision.facts import Creation, Role
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.testing.played_start import SINK, SOURCE, Coordinates, Harness
from tests.installed_connector import visible_rows

SCHEMA = pa.schema(
    {
        rows.PARTITION: pa.int32(),
        rows.OFFSET: pa.int64(),
        rows.ERROR: pa.string(),
        "part": pa.int32(),
        "at": pa.int64(),
        rows.RAW_KEY: pa.binary(),
        rows.RAW_VALUE: pa.binary(),
        rows.RAW_TIMESTAMP: pa.int64(),
        rows.RAW_HEADERS: pa.string(),
    }
)


class FilesHarness(Harness):
    """Folders of its own. The connector is reached by its entry point, which must be found meanwhile."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def spec(self, sink: str = SINK) -> SinkSpec:
        return SinkSpec.parse(
            {
                "name": sink,
                "source": {"kafka": {"connection": "k", "topic": SOURCE.name, "format": "bytes"}},
                "target": {"files": {"path": str(self._folder / sink)}},
                "dead_letter": {"path": str(self._folder / f"{sink}-dead")},
            }
        )

    def connector(self, sink: str = SINK) -> SinkConnector:
        return connect(self.spec(sink), ResolvedConnections({}))

    def creations(self, sink: str = SINK) -> Sequence[Creation]:
        return list(self.spec(sink).creations().values())

    def batch(self, partition: int, offsets: range, bad: Sequence[int] = ()) -> pa.RecordBatch:
        found = [
            {
                rows.PARTITION: partition,
                rows.OFFSET: at,
                rows.ERROR: "no JSON" if at in bad else None,
                "part": partition,
                "at": at,
                rows.RAW_VALUE: b"as it came",
            }
            for at in offsets
        ]
        return pa.RecordBatch.from_pylist(found, SCHEMA)

    def visible(self, sink: str = SINK) -> list[Coordinates]:
        return sorted((row["part"], row["at"]) for row in self.read(sink, Role.DATA))

    def set_aside(self, sink: str = SINK) -> list[Coordinates]:
        found = self.read(sink, Role.DEAD_LETTER)
        return sorted((row["source_partition"], row["source_offset"]) for row in found)

    @contextmanager
    def losing_answers(self) -> Iterator[None]:
        with self._losing(happens=True):
            yield

    @contextmanager
    def losing_commits(self) -> Iterator[None]:
        with self._losing(happens=False):
            yield

    def kill(self, writer: EpochWriter) -> None:
        pass  # what is left of it is a file that nobody closed

    def read(self, sink: str, role: Role) -> list[dict[str, Any]]:
        """Return the rows of a table as any reader gets them: of the files that manifests name."""
        return visible_rows(self.spec(sink), role)

    @contextmanager
    def _losing(self, *, happens: bool) -> Iterator[None]:
        """Let the disk fail where a manifest gets its name."""
        disk = importlib.import_module("sinks_connector_files.disk")
        create = disk.create

        def fail(path: Path, data: bytes) -> bool:
            if happens:
                create(path, data)
            raise OSError(errno.EIO, "the disk does not answer")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(disk, "create", fail)
            yield
