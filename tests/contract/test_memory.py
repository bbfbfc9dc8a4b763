from __future__ import annotations

import pytest

from airflow_provider_sinks.connectors.base import CommitsOn
from airflow_provider_sinks.testing.connector_contract import DriverCommits, ExecutorCommits
from tests.contract.memory_harness import MemoryHarness


class TestMemoryWhereExecutorsCommit(ExecutorCommits):
    in_one_process = True

    @pytest.fixture
    def harness(self) -> MemoryHarness:
        return MemoryHarness(CommitsOn.EXECUTOR)


class TestMemoryWhereTheDriverCommits(DriverCommits):
    in_one_process = True

    @pytest.fixture
    def harness(self) -> MemoryHarness:
        return MemoryHarness(CommitsOn.DRIVER)
