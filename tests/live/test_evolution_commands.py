"""``airflow sinks plan`` and ``check`` say what a start would alter, and alter nothing."""

from __future__ import annotations

import pytest
from psycopg import sql

from airflow_provider_sinks.local import spark
from tests.airflow.desk import Desk
from tests.live.sink_desk import airflow_db, airflow_url, connections, dag, desk
from tests.live.stage import Sink, Stage

__all__ = ["airflow_db", "airflow_url", "connections", "dag", "desk"]
pytestmark = [
    pytest.mark.filterwarnings("error:::airflow_provider_sinks"),
    pytest.mark.filterwarnings("default"),
]
_STATEMENT = 'ADD COLUMN "twice" integer NULL'


@pytest.fixture
def sink(stage: Stage, schema: str, monkeypatch: pytest.MonkeyPatch) -> Sink:
    """A sink that has written a row, and whose query gives one more column since."""
    for name, value in spark.spark_environment().items():
        monkeypatch.setenv(name, value)
    source = stage.source("planned", {0: [("k", '{"id": 1}')]})
    table = {"connection": "pg", "table": f"{schema}.orders", "create": True}
    made = stage.sink("planned", source, from_={"schema": "id int"}, target={"postgres": table})
    made.run()
    target = {"postgres": {**table, "on_schema_change": "add_columns"}}
    made.spec = {**made.spec, "target": target, "select": ["id", "id * 2 AS twice"]}
    return made


def test_plan_and_check_print_the_statement_that_the_next_run_carries_out(
    desk: Desk, sink: Sink, stage: Stage, schema: str
) -> None:
    def columns() -> int:
        query = sql.SQL("SELECT * FROM {} LIMIT 0").format(sql.Identifier(schema, "orders"))
        with stage.postgres.connect() as connection:
            return len(connection.execute(query).description or ())

    planned, checked = desk.run("plan", desk.sink), desk.run("check", desk.sink, "-o", "json")

    assert planned.code == 0, planned.err
    assert f"action: alter data table \"{schema}.orders\": add column 'twice' as integer" in planned.out
    assert planned.out.rstrip().endswith(_STATEMENT)
    (judged,) = [check for check in checked.data if check["name"] == "columns of the target"]
    assert (judged["outcome"], judged["detail"].endswith(_STATEMENT)) == ("pass", True), judged
    assert judged["detail"].startswith("needs migration, which a start does: ALTER TABLE")
    (owned,) = [check for check in checked.data if check["name"].startswith("right to alter table")]
    assert owned["outcome"] == "pass"
    assert columns() == 1
    sink.run()
    assert columns() == 2
