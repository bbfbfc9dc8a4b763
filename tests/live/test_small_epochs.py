"""Which epochs the driver writes itself: of few rows, and of small ones, whatever columns they have."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from airflow_provider_sinks.core.errors import ExitCode
from airflow_provider_sinks.streaming import arrow_batches, driver_share, large_rows
from airflow_provider_sinks.streaming.arriving_rows import NUMBERED, as_tasks_end
from airflow_provider_sinks.streaming.measured_input import LARGE
from tests.live.stage import Sink, Stage

pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket.socket:ResourceWarning")
LONG = f"repeat('x', {driver_share.ROW_BYTES_MAX + 1})"


@pytest.mark.parametrize(
    ("column", "is_large"),
    [
        (LONG, True),
        (f"array('a', {LONG})", True),
        (f"map('a', {LONG})", True),
        (f"named_struct('a', {LONG})", True),
        ("array('a', 'b')", False),
        ("CAST(NULL AS ARRAY<STRING>)", False),
        ("1.5", False),
    ],
)
def test_a_row_is_large_by_all_that_it_holds(
    spark_session: SparkSession, column: str, is_large: bool
) -> None:
    rows = spark_session.sql(f"SELECT 1 AS __sinks_offset, 'k' AS key, {column} AS `a.b``c`")

    (found,) = large_rows.marked(rows, driver_share.ROW_BYTES_MAX).collect()

    assert found[LARGE] is is_large
    assert (found["key"], found["a.b`c"] is None) == ((None, True) if is_large else ("k", "NULL" in column))


def test_rows_of_a_task_that_are_too_many_do_not_come(spark_session: SparkSession) -> None:
    rows = spark_session.range(0, 20, 1, 2).selectExpr("id", "'v' AS value")

    found = large_rows.marked(rows, 100, rows_each=3).collect()

    assert [(row.id, row.value) for row in found if not row[LARGE]] == [
        (number, "v") for number in (0, 1, 2, 10, 11, 12)
    ]
    assert [row.id for row in found if row[LARGE]] == [3, 13]


_WAITS = "CAST(java_method('java.lang.Thread', 'sleep', 1500L) AS STRING)"


def test_rows_of_a_task_come_while_another_one_is_computed(spark_session: SparkSession) -> None:
    session = spark_session.newSession()
    session.conf.set(arrow_batches.ROWS, "1")
    waits = f"CASE WHEN id < 4 THEN {_WAITS} END AS waited"
    rows = session.range(0, 8, 1, 2).selectExpr("id", waits, "repeat('x', 100000) AS large", NUMBERED)

    coming = as_tasks_end(rows)
    first = next(coming)
    running = session.sparkContext.statusTracker().getActiveJobsIds()

    assert (first[0], first[1].column("id").to_pylist()) == (1, [4])
    assert running, "the other task had ended"
    assert [task for task, _ in coming] == [1, 1, 1, 0, 0, 0, 0]


def test_a_job_that_fails_gives_what_had_ended_and_its_error(spark_session: SparkSession) -> None:
    fails = f"CASE WHEN id = 1 THEN concat({_WAITS}, raise_error('a row that fails')) END AS failed"
    coming = as_tasks_end(spark_session.range(0, 4, 1, 2).selectExpr("id", fails, NUMBERED))

    assert next(coming)[0] == 1
    with pytest.raises(PySparkException, match="a row that fails"):
        next(coming)


_ROWS = 5_000
_NO_WORKERS = ("--conf", "spark.python.use.daemon=false")
"""Whoever needs a worker ends with an error that names the daemon."""


def _computed(stage: Stage, name: str, largest: str) -> Sink:
    """A sink with one epoch of rows that Spark computes, of which one has more bytes."""
    rows = [("k", f"v{number}") for number in range(_ROWS - 1)]
    source = stage.source(name, {0: rows, 1: [("k", largest)]})
    return stage.sink(name, source, from_={"format": "text"}, select=["upper(value) AS value"])


def test_a_driver_without_executors_needs_no_worker(stage: Stage) -> None:
    sink = _computed(stage, "alone", "v" * 2_000)

    assert sink.submit(*_NO_WORKERS).wait() == ExitCode.OK

    assert len(stage.read(sink.out)) == _ROWS


def test_a_row_that_its_driver_has_no_room_for_goes_to_workers(stage: Stage) -> None:
    sink = _computed(stage, "no-room", "v" * 200_000)

    ended = sink.submit(*_NO_WORKERS)

    assert ended.wait() != ExitCode.OK
    assert ended.status is not None
    assert ended.status.error is not None
    assert "airflow_provider_sinks.streaming.daemon" in ended.status.error.hint
    assert len(stage.read(sink.out)) == _ROWS - 1
    assert sink.run().rows_total == _ROWS
