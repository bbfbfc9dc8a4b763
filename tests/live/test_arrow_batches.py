"""How many rows cross to Python at once: bounded with Spark's check or without, and nothing is lost."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from airflow_provider_sinks.streaming.arrow_batches import BATCH_BYTES, BYTES, CHECKED, ROWS, ArrowBatches
from airflow_provider_sinks.streaming.measured_input import LARGE
from airflow_provider_sinks.streaming.task_report import Outcome, TaskReport
from tests.live.stage import KeyValue, Stage

pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket.socket:ResourceWarning")
_UNCHECKED = str(2**31 - 1)


@pytest.fixture
def session(spark_session: SparkSession) -> SparkSession:
    """A session of its own, as a run begins with it."""
    fresh = spark_session.newSession()
    for name, value in CHECKED.items():
        fresh.conf.set(name, value)
    return fresh


def _rows(session: SparkSession, count: int, value: str = "repeat('x', 100)") -> DataFrame:
    return session.range(0, count, 1, 1).selectExpr(
        "id AS __sinks_offset", "CAST(NULL AS STRING) AS __sinks_error", f"{value} AS `a.b`"
    )


def _told(session: SparkSession) -> tuple[str | None, str | None]:
    return session.conf.get(ROWS), session.conf.get(BYTES)


def _reports(*largest: int, outcome: Outcome = Outcome.COMMITTED) -> list[TaskReport]:
    return [TaskReport("p0", outcome, largest_row_bytes=size) for size in largest]


def test_a_run_begins_with_sparks_check_and_keeps_it_until_there_are_rows(session: SparkSession) -> None:
    rows, batches = _rows(session, 10), ArrowBatches()

    assert batches.bounded(rows) is rows
    batches.learn(_reports(0, 0, outcome=Outcome.NOTHING))
    assert batches.bounded(rows) is rows
    assert _told(session) == ("20000", f"{BATCH_BYTES}b")


@pytest.mark.parametrize(("largest", "batch_rows"), [(1, 8192), (1024, 8192), (2048, 4096), (8192, 1024)])
def test_small_rows_cross_unchecked_in_batches_that_are_bounded_by_rows_alone(
    session: SparkSession, largest: int, batch_rows: int
) -> None:
    batches = ArrowBatches()

    assert batches.learn(_reports(largest, 0)) is False
    crossing = batches.bounded(_rows(session, 10))

    assert crossing.columns == ["__sinks_offset", "__sinks_error", "a.b", LARGE]
    assert _told(session) == (str(batch_rows), _UNCHECKED)


@pytest.mark.parametrize("largest", [8193, 10**6])
def test_larger_rows_keep_sparks_check(session: SparkSession, largest: int) -> None:
    batches = ArrowBatches()
    batches.learn(_reports(50))
    batches.bounded(_rows(session, 10))
    batches.learn(_reports(largest))
    rows = _rows(session, 10)

    assert batches.bounded(rows) is rows
    assert _told(session) == tuple(CHECKED.values())


def test_rows_that_turn_out_too_large_are_checked_once_and_allowed_for_then(session: SparkSession) -> None:
    batches = ArrowBatches()
    batches.learn(_reports(50))

    assert batches.learn(_reports(50, outcome=Outcome.LARGE_ROWS)) is True
    batches.bounded(_rows(session, 10))
    again = _told(session)
    assert batches.learn(_reports(3000)) is False
    batches.bounded(_rows(session, 10))

    assert again == tuple(CHECKED.values())
    assert _told(session) == ("2048", _UNCHECKED)


def test_columns_with_parts_keep_sparks_check(session: SparkSession) -> None:
    batches = ArrowBatches()
    batches.learn(_reports(50))
    rows = _rows(session, 10).selectExpr("*", "array(1, 2) AS parts")

    assert batches.bounded(rows) is rows
    assert _told(session) == tuple(CHECKED.values())


def test_what_the_user_has_set_stays(session: SparkSession) -> None:
    session.conf.set(ROWS, "10")
    batches = ArrowBatches()
    batches.learn(_reports(50))
    rows = _rows(session, 10)

    assert batches.bounded(rows) is rows
    assert _told(session) == ("10", f"{BATCH_BYTES}b")


def test_spark_does_as_it_is_told_and_a_large_row_leaves_its_contents_behind(
    session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session.sparkContext, "pythonExec", sys.executable)
    batches = ArrowBatches()
    batches.learn(_reports(4000))
    rows = _rows(session, 5_000, "repeat('x', IF(id = 4000, 100000, 100))")
    crossing = batches.bounded(rows).toDF("offset", "error", "value", "large")

    def measure(found: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        for batch in found:
            told = [batch.num_rows, batch.column("value").nbytes, batch.column("large").true_count]
            yield pa.RecordBatch.from_pydict({"told": [told]})

    seen = [row.told for row in crossing.mapInArrow(measure, "told array<long>").collect()]

    assert [rows for rows, _, _ in seen] == [2048, 2048, 904]
    assert [large for _, _, large in seen] == [0, 1, 0]
    assert max(size for _, size, _ in seen) < 2048 * 110


@pytest.mark.parametrize("stage", [0], indirect=True, ids=["executors"])
@pytest.mark.parametrize("writers", ["per_partition", "single"])
def test_rows_that_grow_in_the_middle_are_written_once_and_in_order(stage: Stage, writers: str) -> None:
    """The third epoch has rows of 60 KB behind two with rows of 10 B: it is written twice, and seen once."""
    sizes = [10] * 40 + [10 if number % 5 else 60_000 for number in range(20)] + [10] * 20
    rows: dict[int, list[KeyValue]] = {
        partition: [("k", f"{partition} {n} ".ljust(size, "x")) for n, size in enumerate(sizes)]
        for partition in range(2)
    }
    limited = {"format": "text", "max_offsets_per_epoch": 40}
    given = {"select": ["concat(value) AS value"], "to": {"partitions": 1}, "writers": writers}
    sink = stage.sink("grown", stage.source("grown", rows), from_=limited, **given)

    status = sink.run()

    found = [(record.value or b"").decode() for record in stage.read(sink.out)]
    for partition, wanted in rows.items():
        assert [value for value in found if value.startswith(f"{partition} ")] == [v for _, v in wanted]
    assert status.rows_total == 160
    told = "is written again: it has larger rows than there was room for"
    stage.host.process.wait_until(lambda: told in stage.host.process.log)
