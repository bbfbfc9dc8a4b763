"""The Iceberg connector keeps the contract of all, on a JDBC catalog in a real Postgres."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.testing.connector_contract import DriverCommits
from tests.contract.iceberg_harness import IcebergHarness


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
