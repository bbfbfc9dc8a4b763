"""The Airflow side without services: an Airflow in this process, and a driver that only plays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.airflow.api_server import serve
from tests.airflow.desk import desk, hasty
from tests.airflow_side import (
    HOME,
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


@pytest.fixture(scope="session")
def airflow_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Airflow's REST API over the database of these tests."""
    request.getfixturevalue("airflow_db")
    with serve(HOME) as url:
        yield url


@pytest.hookimpl(trylast=True)
def pytest_configure() -> None:
    """Come after the conftest above, which clears a user's own settings."""
    use_home()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    tolerate_warnings(items, Path(__file__).parent)
