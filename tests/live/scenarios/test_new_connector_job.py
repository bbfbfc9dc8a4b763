"""The project that ``airflow sinks new-connector`` writes, in a real Spark job, from its wheel alone."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

from airflow_provider_sinks.cli.new_connector import write_project
from airflow_provider_sinks.core.errors import ExitCode
from tests.installed_connector import install
from tests.live.stage import KeyValue, Stage


def rows(*ids: int) -> list[KeyValue]:
    return [("k", f'{{"id": {number}, "what": "w{number}"}}') for number in ids]


def test_its_rows_are_in_the_table_once_over_starts(stage: Stage, tmp_path: Path) -> None:
    write_project("tool_shed", tmp_path / "project")
    installed = install(tmp_path / "built", tmp_path / "project")
    wheel = shutil.copy(installed.wheel, tmp_path / "tool_shed.zip")
    source = stage.source("shed", {0: rows(0, 1), 1: [*rows(2), ("k", "{")]})
    file = tmp_path / "sinks.db"

    with installed.found():
        target = {"tool_shed": {"file": str(file), "table": "orders"}}
        schema = {"schema": "id int, what string"}
        sink = stage.sink("shed", source, from_=schema, target=target, dead_letter={"table": "dead"})
        for more in (rows(3), rows(4)):
            assert sink.submit("--py-files", str(wheel)).wait() == ExitCode.OK, sink.launches[-1].log
            stage.produce(source, [(0, *more[0])])

    with sqlite3.connect(file) as connection:
        found = [json.loads(row) for (row,) in connection.execute("SELECT row FROM orders")]
        dead = connection.execute("SELECT source_partition, source_offset, value FROM dead").fetchall()
    assert sorted((row["id"], row["what"]) for row in found) == [(at, f"w{at}") for at in range(4)]
    assert dead == [(1, 1, b"{")]
