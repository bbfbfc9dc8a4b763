from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from airflow_provider_sinks.local.postgres import Postgres
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
