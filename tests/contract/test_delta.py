"""The Delta connector keeps the contract of all, on tables in a folder; read back by delta-rs."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from airflow_provider_sinks.connectors import newest_rows
from airflow_provider_sinks.testing.connector_contract import DriverCommits
from airflow_provider_sinks.testing.played_start import PlayedStart, PlayedTask
from tests.contract.delta_harness import DeltaHarness


class TestDelta(DriverCommits):
    """Into partitions; a table without any is what :mod:`tests.contract.test_delta_facts` is about."""

    @pytest.fixture
    def harness(self, tmp_path: Path) -> DeltaHarness:
        return DeltaHarness(tmp_path, partition_by=["part", "what"])


class TestUpsertDelta(DriverCommits):
    @pytest.fixture
    def harness(self, tmp_path: Path) -> DeltaHarness:
        return DeltaHarness(tmp_path, mode="upsert", key=["part", "at"])

    def test_the_newest_row_of_a_key_wins_within_an_epoch_and_over_epochs(
        self, harness: DeltaHarness, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Also where the rows of an epoch do not fit into memory."""
        monkeypatch.setattr(newest_rows, "_IN_MEMORY_BYTES", 1)
        start = PlayedStart(harness).start()
        for epoch, told in enumerate([range(5), range(3, 9)], start=1):
            task = PlayedTask(start, epoch, 0, {0: told}).go_on(until="write_batch")
            again = harness.batch(0, told)
            newer = pa.array([f"epoch {epoch}"] * len(told), pa.string())
            task.writer.write_batch(again.set_column(again.schema.get_field_index("what"), "what", newer))
            task.go_on()
            start.commit(epoch, {0: told}, [task.token] if task.token else [])
        assert {row["at"]: row["what"] for row in harness.rows()} == {
            **dict.fromkeys(range(3), "epoch 1"),
            **dict.fromkeys(range(3, 9), "epoch 2"),
        }
        assert harness.visible() == [(0, at) for at in range(9)]
        assert list(harness.path().rglob("_sinks_staged/**/*.parquet")) == []
