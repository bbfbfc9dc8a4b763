"""Tables in a real object store keep the contract of all: one that speaks S3, and checks who asks."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from airflow_provider_sinks.connectors.delta.options import DeltaOptions
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.local.object_store import BUCKET, ObjectStore, delta_extra, iceberg_extra
from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.testing.connector_contract import DriverCommits
from airflow_provider_sinks.testing.played_start import SINK
from tests.contract.delta_harness import DeltaHarness
from tests.contract.iceberg_harness import IcebergHarness


class StoredDelta(DeltaHarness):
    """Tables of a connection whose keys the store knows."""

    def __init__(self, store: ObjectStore, **target: Any) -> None:
        super().__init__(Path(uuid.uuid4().hex), connection="store", **target)
        self._root = f"s3://{BUCKET}/{self.folder}"
        self._options = delta_extra(store)

    def address(self, sink: str = SINK, suffix: str = "") -> str:
        return f"{self._root}/{sink}{suffix}"

    def connections(self) -> ResolvedConnections:
        return ResolvedConnections({"store": DeltaOptions.from_connection("store", self._options)})

    def table(self, sink: str = SINK, suffix: str = "") -> DeltaTable:
        return DeltaTable(self.address(sink, suffix), storage_options=self._options)


class StoredIceberg(IcebergHarness):
    """Tables of a catalog whose warehouse is a bucket."""

    def __init__(self, store: ObjectStore, server: Postgres, **target: Any) -> None:
        self._store = store
        self._warehouse = f"s3://{BUCKET}/{uuid.uuid4().hex}"
        super().__init__(server, Path("nowhere"), **target)

    def storage(self) -> dict[str, str]:
        return {**iceberg_extra(self._store), "warehouse": self._warehouse}


class TestDeltaInAStore(DriverCommits):
    @pytest.fixture
    def harness(self, object_store: ObjectStore) -> DeltaHarness:
        return StoredDelta(object_store, partition_by=["part"])


class TestUpsertDeltaInAStore(DriverCommits):
    @pytest.fixture
    def harness(self, object_store: ObjectStore) -> DeltaHarness:
        return StoredDelta(object_store, mode="upsert", key=["part", "at"])


class TestIcebergInAStore(DriverCommits):
    @pytest.fixture
    def harness(self, object_store: ObjectStore, postgres: Postgres) -> Iterator[IcebergHarness]:
        made = StoredIceberg(object_store, postgres)
        yield made
        made.close()


class TestUpsertIcebergInAStore(DriverCommits):
    @pytest.fixture
    def harness(self, object_store: ObjectStore, postgres: Postgres) -> Iterator[IcebergHarness]:
        made = StoredIceberg(object_store, postgres, mode="upsert", key=["part", "at"])
        yield made
        made.close()
