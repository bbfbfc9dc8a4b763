from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.testing.connector_contract import FIRST, SECOND
from airflow_provider_sinks.testing.played_start import PlayedStart
from tests.contract.evolving_table import WIDENS
from tests.contract.iceberg_harness import IcebergHarness
from tests.contract.postgres_harness import PostgresHarness
from tests.contract.postgres_table import Table


@pytest.fixture
def tables(postgres: Postgres) -> Iterator[Any]:
    made: list[Table] = []

    def make(definition: str, **target: Any) -> Table:
        made.append(Table(postgres, definition, **target))
        return made[-1]

    yield make
    for table in made:
        table.close()


@pytest.fixture
def lake(postgres: Postgres, tmp_path: Path) -> Iterator[IcebergHarness]:
    """An Iceberg catalog of its own, with nothing in it yet. Tests of Delta have a lake of their own."""
    made = IcebergHarness(postgres, tmp_path)
    yield made
    for left in made.made:
        left.close()
    made.close()


@pytest.fixture
def start(lake: IcebergHarness) -> PlayedStart:
    """A sink that has committed two epochs, and set nothing aside."""
    started = PlayedStart(lake).start()
    started.epoch(1, FIRST)
    started.epoch(2, SECOND)
    return started


@pytest.fixture
def made(postgres: Postgres) -> Iterator[PostgresHarness]:
    """A schema in which a sink has started and written nothing."""
    harness = PostgresHarness(postgres)
    start = PlayedStart(harness).start()
    start.connector.close()
    yield harness
    harness.close()


@pytest.fixture
def evolving_table(tables: Any) -> Table:
    """A table with one row, that a start may widen."""
    made: Table = tables('id integer PRIMARY KEY, what varchar(5) COLLATE "C"', **WIDENS)
    made.epoch(1, {"id": pa.array([1], pa.int32()), "what": ["a"]})
    return made
