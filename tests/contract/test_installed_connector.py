"""A connector in a package of its own, found by its entry point, keeps the contract of all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_provider_sinks.testing.connector_contract import DriverCommits
from tests.contract.files_harness import FilesHarness
from tests.installed_connector import Installed


class TestFiles(DriverCommits):
    @pytest.fixture
    def harness(self, installed_files: Installed, tmp_path: Path) -> Iterator[FilesHarness]:
        with installed_files.found():
            yield FilesHarness(tmp_path)
