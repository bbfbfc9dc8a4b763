"""Tables of files and snapshots take rows away of which their source says that they are gone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_sinks.connectors import newest_rows, rows
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.testing.played_start import SINK, PlayedStart
from tests.contract.delta_harness import DeltaHarness
from tests.contract.iceberg_harness import IcebergHarness

_CHANGES = {
    "envelope": "upsert",
    "format": "json",
    "schema": "part int, at bigint, what string",
    "key_as": {"columns": ["part", "at"]},
}
_UPSERT: dict[str, Any] = {"mode": "upsert", "key": ["part", "at"]}


def _of_changes(spec: SinkSpec) -> SinkSpec:
    """Return a sink whose source says what became of rows."""
    data = spec.to_mapping()
    data["source"]["kafka"] |= _CHANGES
    return SinkSpec.parse({**data, "query": "SELECT part, at, what FROM source"})


def _told(batch: pa.RecordBatch, gone: Collection[int]) -> pa.RecordBatch:
    """Return rows that say whether they are gone; of those that are, with nothing but the key."""
    places = batch.column(rows.OFFSET).to_pylist()
    texts = zip(batch.column("what").to_pylist(), places, strict=True)
    what = pa.array([None if at in gone else text for text, at in texts], pa.string())
    there = batch.set_column(batch.schema.get_field_index("what"), "what", what)
    return there.append_column(rows.DELETED, pa.array([at in gone for at in places], pa.bool_()))


class ChangedDelta(DeltaHarness):
    gone: frozenset[int] = frozenset()

    def spec(self, sink: str = SINK) -> SinkSpec:
        return _of_changes(super().spec(sink))

    def batch(self, partition: int, offsets: range, bad: Sequence[int] = ()) -> pa.RecordBatch:
        return _told(super().batch(partition, offsets, bad), self.gone)


class ChangedIceberg(IcebergHarness):
    gone: frozenset[int] = frozenset()

    def spec(self, sink: str = SINK) -> SinkSpec:
        return _of_changes(super().spec(sink))

    def batch(self, partition: int, offsets: range, bad: Sequence[int] = ()) -> pa.RecordBatch:
        return _told(super().batch(partition, offsets, bad), self.gone)


@pytest.fixture(params=["delta", "iceberg"])
def harness(
    request: pytest.FixtureRequest, postgres: Postgres, tmp_path: Path
) -> Iterator[ChangedDelta | ChangedIceberg]:
    if request.param == "delta":
        yield ChangedDelta(tmp_path, **_UPSERT)
        return
    made = ChangedIceberg(postgres, tmp_path, **_UPSERT)
    yield made
    made.close()


def test_what_is_gone_is_taken_away_and_what_never_was_there_makes_no_row(
    harness: ChangedDelta | ChangedIceberg, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the rows of an epoch do not fit into memory, and where an epoch has nothing but deletes."""
    monkeypatch.setattr(newest_rows, "_IN_MEMORY_BYTES", 1)
    start = PlayedStart(harness).start()
    seen = []
    for epoch, (told, gone) in enumerate(
        [(range(5), ()), (range(3, 9), (3, 7)), (range(20, 22), (20, 21)), (range(4), (0,))], start=1
    ):
        harness.gone = frozenset(gone)
        start.epoch(epoch, {0: told}, bad=[8] if 8 in told else [])
        seen.append([at for _, at in harness.visible()])
    assert seen == [[0, 1, 2, 3, 4], [0, 1, 2, 4, 5, 6], [0, 1, 2, 4, 5, 6], [1, 2, 3, 4, 5, 6]]
    assert harness.set_aside() == [(0, 8)]
    assert start.connector.progress().epoch == 4
    start.connector.close()
