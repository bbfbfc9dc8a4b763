"""``airflow sinks ...`` for a sink whose target is a Postgres table; the table is read back."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from psycopg import sql

from tests.airflow.desk import Desk
from tests.live.sink_desk import airflow_db, airflow_url, connections, dag, desk
from tests.live.stage import KeyValue, Sink, Stage

__all__ = ["airflow_db", "airflow_url", "connections", "dag", "desk"]
pytestmark = [
    pytest.mark.filterwarnings("error:::airflow_provider_sinks"),
    pytest.mark.filterwarnings("default"),
]
_ROWS: list[KeyValue] = [("k", f'{{"id": {number}}}') for number in range(3)]


@pytest.fixture
def sink(stage: Stage, schema: str) -> Sink:
    """A sink that has written three rows, and set one record aside."""
    source = stage.source("table", {0: [*_ROWS, ("k", "{")]})
    target = {"connection": "pg", "table": f"{schema}.orders", "create": True}
    dead = {"table": f"{schema}.orders_dead"}
    made = stage.sink(
        "table", source, from_={"schema": "id int"}, target={"postgres": target}, dead_letter=dead
    )
    made.run()
    return made


@pytest.fixture
def ids(stage: Stage, schema: str) -> Callable[[str], list[int]]:
    """Read a column of a table."""

    def read(table: str = "orders", column: str = "id") -> list[int]:
        query = sql.SQL("SELECT {} FROM {} ORDER BY 1")
        named = query.format(sql.Identifier(column), sql.Identifier(schema, table))
        with stage.postgres.connect() as connection:
            return [row[0] for row in connection.execute(named).fetchall()]

    return read


def test_plan_and_progress_tell_what_the_table_holds(desk: Desk) -> None:
    plan = desk.run("plan", desk.sink)
    progress = desk.run("progress", desk.sink, "-o", "json")

    assert (plan.code, progress.code) == (0, 0), plan.err + progress.err
    assert "resumes after epoch 1 of generation 1" in plan.out
    assert [(w["writer"], w["epoch"], w["rows_total"]) for w in progress.data["writers"]] == [
        ("driver", 0, 0),
        ("p0", 1, 3),
    ]
    assert progress.data["partitions"][0] == {"partition": 0, "position": 4, "first": 0, "end": 4, "lag": 0}


@pytest.mark.parametrize(
    ("output", "left"), [("keep", [0, 0, 1, 1, 2, 2]), ("empty", [0, 1, 2]), ("recreate", [0, 1, 2])]
)
def test_a_reset_begins_anew_and_does_to_the_table_what_was_asked(
    desk: Desk, sink: Sink, ids: Callable[..., list[int]], output: str, left: list[int]
) -> None:
    done = desk.run("reset", desk.sink, "--data", output, "--dead-letter", "empty", "--yes")
    set_aside = ids("orders_dead", "source_offset")
    sink.run()

    assert (done.code, set_aside) == (0, []), done.err
    assert ids() == left
    assert ids("orders_dead", "source_offset") == [3]


def test_a_rewind_is_what_the_next_start_goes_on_from(
    desk: Desk, sink: Sink, ids: Callable[..., list[int]]
) -> None:
    dry = desk.run("rewind", desk.sink, "--offsets", "0:1", "--dry-run", "-o", "json")
    done = desk.run("rewind", desk.sink, "--offsets", "0:1", "--yes", "-o", "json")
    sink.run()

    assert (dry.code, done.code) == (0, 0), done.err
    assert dry.data["steps"] == done.data["steps"]
    assert ids() == [0, 1, 1, 2, 2]


def test_a_rewind_to_an_epoch_goes_to_those_that_are_known(
    desk: Desk, sink: Sink, ids: Callable[..., list[int]]
) -> None:
    unknown = desk.run("rewind", desk.sink, "--epoch", "9", "--yes")
    done = desk.run("rewind", desk.sink, "--epoch", "1", "--yes")
    sink.run()

    assert (unknown.code, done.code) == (64, 0), done.err
    assert "known: 1/1 (generation/epoch)" in unknown.err
    assert ids() == [0, 0, 1, 1, 2, 2]


def test_what_would_end_half_done_is_refused_before_anything_is_deleted(
    desk: Desk, stage: Stage, schema: str, ids: Callable[..., list[int]]
) -> None:
    with stage.postgres.connect() as connection:
        connection.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(schema, "orders")))

    refused = desk.run("reset", desk.sink, "--dead-letter", "recreate", "--yes")

    assert refused.code == 64, refused.err
    assert f"{schema}.orders: is made by the job alone" in refused.err
    assert ids("orders_dead", "source_offset") == [3]
    plan = desk.run("plan", desk.sink, "-o", "json")
    assert plan.data["verdict"]["primary"].startswith(f'data table "{schema}.orders" is missing, but sink')


def test_a_drop_leaves_the_tables_but_for_those_that_are_named(
    desk: Desk, stage: Stage, schema: str, ids: Callable[..., list[int]]
) -> None:
    unknown = desk.run("drop", desk.sink, "--delete-table", "orders", "--yes")
    done = desk.run("drop", desk.sink, "--delete-table", f"{schema}.orders_dead", "--yes")
    with stage.postgres.connect() as connection:
        found = connection.execute("SELECT to_regclass(%s)", [f"{schema}.orders_dead"]).fetchone()

    assert (unknown.code, done.code) == (64, 0), unknown.err + done.err
    assert found == (None,)
    assert ids() == [0, 1, 2]
