"""Who writes: one transaction for each source partition, or one for the whole epoch."""

from __future__ import annotations

from functools import partial

import pytest

from airflow_provider_sinks.core.errors import ExitCode
from tests.live.segments import batches
from tests.live.stage import WHO_WRITES, KeyValue, Stage

_ROWS: dict[int, list[KeyValue]] = {p: [(f"k{p}", f"{p}-{number}") for number in range(20)] for p in range(3)}
_LIMITED = {"format": "text", "max_offsets_per_epoch": 30}


@pytest.mark.parametrize("stage", WHO_WRITES, indirect=True)
def test_each_source_partition_has_a_writer_of_its_own(stage: Stage) -> None:
    sink = stage.sink("each", stage.source("each", _ROWS), from_=_LIMITED, to={"partitions": 1})

    sink.run()

    assert _values(stage, sink.out) == {p: [value for _, value in rows] for p, rows in _ROWS.items()}
    assert len({batch.producer for batch in batches(stage.broker, sink.out)}) == 3
    writers = {writer for writer, _ in stage.progress(sink)}
    assert writers == {"driver", "p0", "p1", "p2"}


@pytest.mark.parametrize("stage", WHO_WRITES, indirect=True)
def test_single_writer_commits_each_epoch_as_a_whole(stage: Stage) -> None:
    sink = stage.sink(
        "whole", stage.source("whole", _ROWS), from_=_LIMITED, to={"partitions": 1}, writers="single"
    )

    sink.run()

    found = batches(stage.broker, sink.out)
    epochs = [record for writer, record in stage.progress(sink) if writer == "all"]
    assert _values(stage, sink.out) == {p: [value for _, value in rows] for p, rows in _ROWS.items()}
    assert len({batch.producer for batch in found}) == 1
    assert len(epochs) == sum(batch.is_marker for batch in found) == 2
    assert [record.rows for record in epochs] == [sum(r.to.values()) - sum(r.from_.values()) for r in epochs]


def test_change_of_writers_goes_on_exactly_where_it_was(stage: Stage) -> None:
    source = stage.source("change", _ROWS)
    sink = stage.sink("change", source, from_=_LIMITED, to={"partitions": 1})
    sink.run()
    stage.produce(source, [(p, f"k{p}", "then") for p in range(3)])
    sink.spec = {**sink.spec, "writers": "single"}
    sink.run()
    stage.produce(source, [(p, f"k{p}", "now") for p in range(3)])
    sink.spec = {**sink.spec, "writers": "per_partition"}

    status = sink.run()

    wanted = {p: [*(value for _, value in rows), "then", "now"] for p, rows in _ROWS.items()}
    assert _values(stage, sink.out) == wanted
    assert status.rows_total == 66


def test_change_of_writers_behind_an_epoch_that_is_committed_in_part_writes_no_row_twice(
    stage: Stage,
) -> None:
    rows: dict[int, list[KeyValue]] = {0: [("k", '{"id": 1}'), ("k", '{"id": 2}')], 1: [("k", "no JSON")]}
    source = stage.source("torn", rows)
    sink = stage.sink("torn", source, from_={"schema": "id int"}, to={"partitions": 1})
    sink.fail(ExitCode.CONFIGURATION)
    assert len(stage.read(sink.out)) == 2
    letters = stage.topic("torn-letters")

    sink.spec = {**sink.spec, "writers": "single", "dead_letter": {"topic": letters}}
    status = sink.run()

    assert (len(stage.read(sink.out)), len(stage.read(letters))) == (2, 1)
    assert (status.rows_total, status.dead_total) == (2, 1)


@pytest.mark.parametrize("writers", ["per_partition", "single"])
def test_driver_and_executors_take_turns_as_epochs_shrink_and_grow(writers: str, stage: Stage) -> None:
    source = stage.source("turns", {0: [], 1: []})
    sink = stage.sink(
        "turns",
        source,
        from_={"format": "text"},
        to={"partitions": 1},
        writers=writers,
        trigger={"every": "50ms"},
    )
    wanted: dict[int, list[str]] = {0: [], 1: []}
    stage.driver_rows = sink.driver_rows = 100

    launch = sink.launch()
    for size in (3, 500, 2, 1, 600):
        rows = [(p, f"k{p}", f"{p}-{size}-{number}") for number in range(size) for p in (0, 1)]
        stage.produce(source, rows)
        for partition, _, value in rows:
            wanted[partition].append(value)
        ends = {partition: len(values) for partition, values in wanted.items()}
        launch.wait_until(partial(launch.has_passed, ends))

    assert launch.stop() == 0
    assert _values(stage, sink.out) == wanted


def _values(stage: Stage, topic: str) -> dict[int, list[str]]:
    """Return the values by source partition, in the order in which they were written."""
    found: dict[int, list[str]] = {}
    for record in stage.read(topic):
        found.setdefault(int((record.key or b"k-1")[1:]), []).append((record.value or b"").decode())
    return found
