"""The Iceberg connector keeps the contract of all, on a JDBC catalog in a real Postgres."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from airflow_provider_sinks.connectors import newest_rows
from airflow_provider_sinks.core.errors import RefusedError
from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.testing.connector_contract import DriverCommits
from airflow_provider_sinks.testing.played_start import SOURCE, PlayedStart, PlayedTask
from tests.contract.iceberg_harness import IcebergHarness, read_by_spec


class TestIceberg(DriverCommits):
    @pytest.fixture
    def harness(self, postgres: Postgres, tmp_path: Path) -> Iterator[IcebergHarness]:
        made = IcebergHarness(postgres, tmp_path)
        yield made
        made.close()


class TestPartitionedIceberg(DriverCommits):
    @pytest.fixture
    def harness(self, postgres: Postgres, tmp_path: Path) -> Iterator[IcebergHarness]:
        made = IcebergHarness(postgres, tmp_path, partition_by=["part", "bucket(4, at)"])
        yield made
        made.close()


class TestUpsertIceberg(DriverCommits):
    @pytest.fixture
    def harness(self, postgres: Postgres, tmp_path: Path) -> Iterator[IcebergHarness]:
        made = IcebergHarness(postgres, tmp_path, mode="upsert", key=["part", "at"])
        yield made
        made.close()

    def test_the_newest_row_of_a_key_wins_within_an_epoch_and_over_epochs(
        self, harness: IcebergHarness, monkeypatch: pytest.MonkeyPatch
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
        assert {row["at"]: row["what"] for row in read_by_spec(harness.table())} == {
            **dict.fromkeys(range(3), "epoch 1"),
            **dict.fromkeys(range(3, 9), "epoch 2"),
        }
        assert harness.visible() == [(0, at) for at in range(9)]

    def test_files_of_another_partitioning_are_a_refusal_until_they_are_rewritten(
        self, harness: IcebergHarness
    ) -> None:
        """An equality delete of a partitioning applies to files of just that one."""
        start = PlayedStart(harness).start()
        start.epoch(1, {0: range(3)})
        with harness.table().update_spec() as change:
            change.add_identity("part")
        unfit = start.connector.observe(SOURCE).data.unfit
        assert unfit is not None
        assert unfit.what == "has files of another partitioning than its own"
        assert "rewrite_data_files" in unfit.repair
        with pytest.raises(RefusedError, match="files of another partitioning"):
            PlayedStart(harness).start().epoch(2, {0: range(3)})
        table = harness.table()
        table.delete()  # what is left of the old partitioning once it was written anew
        again = PlayedStart(harness).start()
        again.epoch(2, {0: range(3)})
        again.epoch(3, {0: range(2, 5)})
        assert harness.visible() == [(0, at) for at in range(5)]

    def test_a_table_that_is_not_partitioned_any_more_deletes_in_all_files(
        self, postgres: Postgres, tmp_path: Path
    ) -> None:
        harness = IcebergHarness(postgres, tmp_path, mode="upsert", key=["part", "at"], partition_by=["part"])
        PlayedStart(harness).start().epoch(1, {0: range(3)})
        with harness.table().update_spec() as change:
            change.remove_field("part")
        again = PlayedStart(harness).start()
        assert again.connector.observe(SOURCE).data.unfit is None
        again.epoch(2, {0: range(3)})
        assert harness.visible() == [(0, at) for at in range(3)]
        for left in harness.made:
            left.close()
        harness.close()
