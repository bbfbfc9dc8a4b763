from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.testing.connector_contract import ExecutorCommits
from tests.contract.postgres_harness import PostgresHarness


class TestPostgresThatAppends(ExecutorCommits):
    @pytest.fixture
    def harness(self, postgres: Postgres) -> Iterator[PostgresHarness]:
        harness = PostgresHarness(postgres)
        yield harness
        harness.close()


class TestPostgresThatUpserts(ExecutorCommits):
    @pytest.fixture
    def harness(self, postgres: Postgres) -> Iterator[PostgresHarness]:
        harness = PostgresHarness(postgres, mode="upsert", key=("part", "at"))
        yield harness
        harness.close()
