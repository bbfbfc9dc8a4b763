"""A sink into a table: what must hold between its options and the rest of the sink."""

from __future__ import annotations

import pytest

from airflow_provider_sinks.connectors.postgres.spec import postgres_sink
from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.core.spec.sink import SinkSpec

SOURCE = {"kafka": {"connection": "kafka_prod", "topic": "orders", "schema": "id long, what string"}}
COUNTS = "SELECT what, count(*) AS number FROM source GROUP BY what"


def sink(**changes: object) -> SinkSpec:
    whole = {"name": "orders", "source": SOURCE, "target": {"postgres": "pg/public.orders"}}
    return SinkSpec.parse({**whole, **changes})


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        (
            {"query": COUNTS},
            (
                "target.postgres.mode: append would keep each state that a row of a stateful query ever had "
                "(mode: upsert with a key, or output_mode: append)"
            ),
        ),
        (
            {"target": {"postgres": {"connection": "pg", "table": "public.orders", "columns": ["idd"]}}},
            "target.postgres.columns[0]: 'idd' is no column of the output (did you mean \"id\"?)",
        ),
        (
            {"dead_letter": "public.orders"},
            (
                "dead_letter.table: 'public.orders' is target.postgres.table already "
                "(each of them needs a table of its own)"
            ),
        ),
    ],
)
def test_parts_that_contradict_each_other_are_refused(changes: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        sink(**{"select": ["id", "what"], **changes} if "query" not in changes else changes)
    assert [str(found) for found in caught.value.problems] == [problem]


def test_a_stateful_query_may_replace_rows() -> None:
    target = {"connection": "pg", "table": "public.orders", "mode": "upsert", "key": "what"}
    assert postgres_sink(sink(query=COUNTS, target={"postgres": target})).target.postgres.key == ("what",)
