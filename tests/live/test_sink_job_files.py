"""Sinks whose target is a package of its own, and whose driver commits what tasks have staged."""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.errors import ExitCode
from airflow_provider_sinks.core.lifecycle.new_generation import Output
from airflow_provider_sinks.streaming import driver_share
from tests.faults.parts import Part
from tests.installed_connector import Installed, visible_files, visible_rows
from tests.live.generations import reset
from tests.live.stage import WHO_WRITES, KeyValue, Sink, Stage

KILLS = int(os.environ.get("FAULT_ROUNDS", "1"))
SEED = int(os.environ.get("FAULT_SEED") or time.time())
_SCHEMA = "id int, name string, tags array<string>"
_SELECT = ["id", "name AS `a.name`", "tags"]
_WRITERS = ["per_partition", "single"]


@pytest.fixture(autouse=True)
def _found(installed_files: Installed) -> Iterator[None]:
    with installed_files.found():
        yield


def _rows(*ids: int) -> list[KeyValue]:
    return [("k", f'{{"id": {number}, "name": "n{number}", "tags": ["a", "b"]}}') for number in ids]


def _sink(stage: Stage, source: str, **parts: object) -> Sink:
    folder = stage.folder / "data"
    target = {"files": {"path": str(folder / "orders")}}
    dead = {"path": str(folder / "dead")}
    source_options = {"schema": _SCHEMA}
    made = {"target": target, "dead_letter": dead, "select": _SELECT, **parts}
    return stage.sink("files", source, from_=source_options, **made)


def _there(sink: Sink) -> set[Path]:
    """Return the files of the table's folder, whether they are visible or not."""
    return set(Path(sink.parsed.resources[Role.DATA]).glob("*.parquet"))


def _ids(sink: Sink) -> list[int]:
    return sorted(row["id"] for row in visible_rows(sink.parsed))


@pytest.mark.parametrize("writers", _WRITERS)
@pytest.mark.parametrize("stage", WHO_WRITES, indirect=True)
def test_rows_become_visible_once_over_starts(stage: Stage, writers: str) -> None:
    source = stage.source("files", {0: _rows(0, 1, 2), 1: [*_rows(3), ("k", "{")], 2: _rows(4)})
    sink = _sink(stage, source, writers=writers)

    first = sink.run()
    stage.produce(source, [(0, *_rows(5)[0]), (1, "k", "["), (2, *_rows(6)[0])])
    second, third = sink.run(), sink.run()

    assert [(s.rows_total, s.dead_total) for s in (first, second, third)] == [(5, 1), (7, 2), (7, 2)]
    assert [s.epoch for s in (first, second)] == [1, 2]
    assert (first.health, set(first.metrics)) == ("well", {"log_entries"})
    assert _ids(sink) == [0, 1, 2, 3, 4, 5, 6]
    assert {"id": 0, "a.name": "n0", "tags": ["a", "b"]} in visible_rows(sink.parsed)
    dead = visible_rows(sink.parsed, Role.DEAD_LETTER)
    assert sorted((row["source_partition"], row["source_offset"], row["value"]) for row in dead) == [
        (1, 1, b"{"),
        (1, 2, b"["),
    ]


@pytest.mark.parametrize(
    "query",
    [
        {"writers": "per_partition"},
        {"writers": "single"},
        {"query": "SELECT id, count(*) AS n FROM source GROUP BY id", "select": None},
    ],
    ids=["per_partition", "single", "stateful"],
)
def test_an_epoch_that_spark_repeats_is_not_committed_again(stage: Stage, query: dict[str, Any]) -> None:
    source = stage.source("replay", {0: _rows(0, 1), 1: _rows(2)})
    sink = _sink(stage, source, **query)
    sink.run()
    for _ in range(2):  # two starts that died behind our commit and before Spark's
        for folder in sink.checkpoints.glob("*/*/commits"):
            for written in (*folder.glob("0"), *folder.glob(".0.crc")):
                written.unlink()
        sink.run()
    stage.produce(source, [(1, *_rows(3)[0])])

    status = sink.run()

    assert (status.epoch, status.rows_total) == (2, 4)
    assert _ids(sink) == [0, 1, 2, 3]


def test_a_table_that_is_deleted_is_refused_and_a_way_on_makes_it_anew(stage: Stage) -> None:
    sink = _sink(stage, stage.source("deleted", {0: _rows(0, 1)}))
    sink.run()
    folder = Path(sink.parsed.resources[Role.DATA])
    folder.rename(folder.with_name("away"))

    refused = sink.fail(ExitCode.REFUSED)
    assert refused.error is not None
    assert refused.error.primary.startswith(f'data table "{folder}" is missing, but sink')
    sink.run(sink.code(refused, "start_over"))

    assert _ids(sink) == [0, 1]


@pytest.mark.parametrize("data", [Output.EMPTY, Output.RECREATE])
def test_after_a_reset_everything_comes_again_into_an_empty_table(stage: Stage, data: Output) -> None:
    sink = _sink(stage, stage.source("reset", {0: [*_rows(0, 1), ("k", "{")]}))
    sink.run()

    reset(sink, data=data)
    assert _ids(sink) == []
    status = sink.run()

    assert (status.generation, status.rows_total) == (2, 2)
    assert _ids(sink) == [0, 1]
    assert len(visible_rows(sink.parsed, Role.DEAD_LETTER)) == 2


def test_drivers_that_are_killed_leave_no_row_out_and_none_twice(
    stage: Stage, installed_files: Installed, tmp_path: Path
) -> None:
    """The first kill is aimed at what is staged and not committed, the others strike at random.

    The drivers have the connector from its wheel alone, as on a cluster.
    """
    wheel = shutil.copy(installed_files.wheel, tmp_path / "files.zip")
    chance, partitions = random.Random(SEED), range(3)  # noqa: S311  chance, no secret
    source = stage.source("kills", {partition: _rows(0) for partition in partitions})
    sink = _sink(stage, source, trigger={"every": "100ms"})
    written, torn, number = 1, 0, 0
    while number < KILLS or (not torn and number < KILLS + 5):
        is_aimed = not number or number >= KILLS  # and again, until one has hit what it is aimed at
        sink.conf = {driver_share.SETTING: str(0 if is_aimed else 1000 * (number % 2))}
        driver = sink.submit("--py-files", str(wheel))
        driver.wait_epochs(1)
        before = _there(sink)
        moment = time.monotonic() + (20 if is_aimed else chance.uniform(0, 2))
        while time.monotonic() < moment and (not is_aimed or _there(sink) == before):
            ids = range(written, written + 5)
            stage.produce(source, [(p, *_rows(i)[0]) for p in partitions for i in ids])
            written += 5
        driver.kill(Part.DRIVER)
        torn += _there(sink) != set(visible_files(sink.parsed))
        number += 1
    sink.spec = {**sink.spec, "trigger": "available_now"}

    status = sink.run()

    assert torn, f"FAULT_SEED={SEED}"
    assert status.rows_total == written * len(partitions)
    assert _ids(sink) == sorted([*range(written)] * len(partitions)), f"FAULT_SEED={SEED}"
    assert _there(sink) == set(visible_files(sink.parsed))  # what was staged and never committed is swept
