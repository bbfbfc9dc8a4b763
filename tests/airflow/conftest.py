"""The Airflow side without services: an Airflow in this process, and a driver that only plays."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.airflow.api_server import airflow_url
from tests.airflow.desk import desk, hasty
from tests.airflow_side import (
    airflow_db,
    connections,
    dag,
    run_dag,
    run_task,
    spark,
    submit,
    tolerate_warnings,
    use_home,
)

__all__ = [
    "airflow_db",
    "airflow_url",
    "connections",
    "dag",
    "desk",
    "hasty",
    "run_dag",
    "run_task",
    "spark",
    "submit",
]


@pytest.hookimpl(trylast=True)
def pytest_configure() -> None:
    """Come after the conftest above, which clears a user's own settings."""
    use_home()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    tolerate_warnings(items, Path(__file__).parent)
