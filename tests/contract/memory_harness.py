from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pyarrow as pa

from airflow_provider_sinks.connectors import rows
from airflow_provider_sinks.connectors.base import CommitsOn, SinkConnector
from airflow_provider_sinks.connectors.epoch_writer import EpochWriter, InDoubtError
from airflow_provider_sinks.connectors.memory.connector import MemoryConnector
from airflow_provider_sinks.connectors.memory.store import MemoryStore, Outputs, Slot
from airflow_provider_sinks.connectors.plain import PlainCreation
from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.testing.played_start import SINK, Coordinates, Harness

SCHEMA = pa.schema(
    {
        rows.PARTITION: pa.int32(),
        rows.OFFSET: pa.int64(),
        rows.ERROR: pa.string(),
        "part": pa.int32(),
        "at": pa.int64(),
    }
)


class MemoryHarness(Harness):
    """:param store: one with a fault, to see whether the suite finds it."""

    def __init__(self, commits_on: CommitsOn, store: MemoryStore | None = None) -> None:
        super().__init__()
        self.store = FlakyStore() if store is None else store
        self._commits_on = commits_on

    def connector(self, sink: str = SINK) -> SinkConnector:
        return MemoryConnector(self.store, sink, _outputs(sink), self._commits_on)

    def creations(self, sink: str = SINK) -> Sequence[PlainCreation]:
        names = _outputs(sink)
        return [
            PlainCreation(Role.PROGRESS, names.progress),
            PlainCreation(Role.DATA, names.data),
            PlainCreation(Role.DEAD_LETTER, f"{sink}-dead"),
        ]

    def batch(self, partition: int, offsets: range, bad: Sequence[int] = ()) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist(
            [
                {
                    rows.PARTITION: partition,
                    rows.OFFSET: at,
                    rows.ERROR: "no JSON" if at in bad else None,
                    "part": partition,
                    "at": at,
                }
                for at in offsets
            ],
            SCHEMA,
        )

    def visible(self, sink: str = SINK) -> list[Coordinates]:
        found = self.store.outputs.get(sink)
        return sorted((row["part"], row["at"]) for row in found.rows) if found else []

    def set_aside(self, sink: str = SINK) -> list[Coordinates]:
        found = self.store.outputs.get(f"{sink}-dead")
        return sorted((row[rows.PARTITION], row[rows.OFFSET]) for row in found.rows) if found else []

    def losing_answers(self) -> AbstractContextManager[None]:
        return self._flaky().losing(before=False)

    def losing_commits(self) -> AbstractContextManager[None]:
        return self._flaky().losing(before=True)

    def kill(self, writer: EpochWriter) -> None:
        pass  # what it holds in this process is its own, and there is no connection

    def _flaky(self) -> FlakyStore:
        assert isinstance(self.store, FlakyStore)
        return self.store


class FlakyStore(MemoryStore):
    """Loses commits, or their answers, when told to."""

    def __init__(self) -> None:
        super().__init__()
        self._loses: bool | None = None

    @contextmanager
    def losing(self, *, before: bool) -> Iterator[None]:
        self._loses = before
        try:
            yield
        finally:
            self._loses = None

    def commit(self, *arguments: Any) -> Slot:
        if self._loses is True:
            raise InDoubtError("the commit got lost")
        held = super().commit(*arguments)
        if self._loses is False:
            raise InDoubtError("the answer got lost")
        return held


def _outputs(sink: str) -> Outputs:
    return Outputs(sink, "progress", f"{sink}-dead")
