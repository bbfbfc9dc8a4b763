from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.testing.played_start import PlayedStart
from tests.contract.evolving_table import WIDENS
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
