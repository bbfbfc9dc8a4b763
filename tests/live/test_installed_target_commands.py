"""``airflow sinks ...`` for a sink whose target another package brings; the files are read back."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from airflow_provider_sinks.core.decision.facts import Role
from tests.airflow.desk import Desk
from tests.installed_connector import Installed, visible_rows
from tests.live.sink_desk import airflow_db, airflow_url, connections, dag, desk
from tests.live.stage import KeyValue, Sink, Stage

__all__ = ["airflow_db", "airflow_url", "connections", "dag", "desk"]
pytestmark = [
    pytest.mark.filterwarnings("error:::airflow_provider_sinks"),
    pytest.mark.filterwarnings("default"),
]
_ROWS: list[KeyValue] = [("k", f'{{"id": {number}}}') for number in range(3)]


@pytest.fixture
def sink(stage: Stage, installed_files: Installed) -> Iterator[Sink]:
    """A sink that has written three rows in one epoch, and two in the next."""
    source = stage.source("files", {0: _ROWS})
    target = {"files": {"path": str(stage.folder / "data" / "orders")}}
    with installed_files.found():
        made = stage.sink("files", source, from_={"schema": "id int"}, target=target)
        made.run()
        stage.produce(source, [(0, *row) for row in _ROWS[:2]])
        made.run()
        yield made


def _ids(sink: Sink) -> list[int]:
    return sorted(row["id"] for row in visible_rows(sink.parsed))


def test_plan_progress_describe_and_check_know_it(desk: Desk, sink: Sink) -> None:
    plan = desk.run("plan", desk.sink)
    progress = desk.run("progress", desk.sink, "-o", "json")
    described = desk.run("describe", desk.sink, "-o", "json")
    checked = desk.run("check", desk.sink, "--ask-spark", "never")

    assert [done.code for done in (plan, progress, described)] == [0, 0, 0]
    assert "resumes after epoch 2 of generation 1" in plan.out
    assert [(w["writer"], w["epoch"], w["rows_total"]) for w in progress.data["writers"]] == [
        ("all", 2, 5),
        ("driver", 1, 0),
    ]
    folder = sink.parsed.resources[Role.DATA]
    assert (described.data["target"], described.data["connections"]) == (f"files/{folder}", ["kafka"])
    assert re.search(rf'pass +target files +data table "{re.escape(folder)}"', checked.out)


def test_a_rewind_to_an_epoch_and_a_reset_are_what_the_next_start_goes_on_from(
    desk: Desk, sink: Sink
) -> None:
    rewound = desk.run("rewind", desk.sink, "--epoch", "2", "--yes")
    sink.run()
    after_rewind = _ids(sink)
    reset = desk.run("reset", desk.sink, "--data", "recreate", "--yes")
    emptied = _ids(sink)
    sink.run()

    assert (rewound.code, reset.code) == (0, 0), rewound.err + reset.err
    assert after_rewind == [0, 0, 0, 1, 1, 1, 2]
    assert (emptied, _ids(sink)) == ([], [0, 0, 1, 1, 2])
