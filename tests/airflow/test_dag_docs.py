"""The page of a sink's DAG tells the decision table as it is, and what the sink does."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_sinks.core.decision.table import DECISIONS
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.dag.docs import ROWS, Row, dag_page
from tests.airflow.fakes import SINK

COUNTED = {
    "name": "counted",
    "source": {"kafka": {"connection": "k", "topic": "a", "schema": "userid string"}},
    "lookups": {"users": "pg/public.users"},
    "query": "SELECT s.userid, count(*) AS n FROM source s JOIN users u USING (userid) GROUP BY s.userid",
    "target": {"kafka": {"connection": "k", "topic": "b", "key": "userid"}},
    "dead_letter": "dead",
    "trigger": {"every": "5s"},
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.progress}-{row.data}")
def test_the_cells_behind_a_row_agree(row: Row) -> None:
    assert len({DECISIONS[cell] for cell in row.cells}) == 1


def test_every_cell_stands_behind_one_row() -> None:
    told = [cell for row in ROWS for cell in row.cells]

    assert set(told) == set(DECISIONS)
    assert len(told) == len(set(told))


def test_lost_output_is_told_as_a_refusal() -> None:
    page = dag_page(SinkSpec.parse(SINK))

    assert "| rows written | missing | **refuses**: rows were written to a topic that is missing |" in page


@pytest.mark.parametrize(
    ("sink", "words"),
    [
        pytest.param(SINK, "takes what is there, then ends", id="available-now"),
        pytest.param(SINK, "(`writers: per_partition`)", id="row-wise"),
        pytest.param(COUNTED, "an epoch every 5s", id="endless"),
        pytest.param(COUNTED, "(`writers: single`)", id="stateful"),
        pytest.param(COUNTED, "lookup `users`: table `public.users` of connection `pg`", id="lookup"),
        pytest.param(COUNTED, "records that do not parse: topic `dead`", id="dead-letters"),
        pytest.param(COUNTED, "pause the DAG and then end the task", id="how-to-stop"),
    ],
)
def test_the_page_tells_what_the_sink_does(sink: dict[str, Any], words: str) -> None:
    assert words in dag_page(SinkSpec.parse(sink))
