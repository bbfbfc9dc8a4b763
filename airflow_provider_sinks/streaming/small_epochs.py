"""Small epochs are written by the driver itself: tasks in Python would cost more than their rows.

A Python task costs tens of milliseconds before its first row, and Spark gives a source partition to any of
its worker processes, so a writer that was kept from the last epoch is often in the other process and must be
opened anew. The driver has one process: its writers are always at hand, and the rows come to it by a job
that runs in the JVM alone.

An epoch is small if it has few records. Where the driver is all there is of Spark, its rows are in this
process tree anyway, and it is small as long as they fit into a part of the JVM's memory: such a driver needs
no Python worker at all.

Few records can still be many bytes, and only the rows tell. So a row of more bytes than there is room for is
not brought here: it comes as a mark, and an epoch with such a mark is left to the executors, which read
their rows one batch after another. So are those behind it, until one of them would have fitted. A record may
lead to many rows where lookups have a key in several rows; what goes beyond :attr:`Room.rows_each` does not
come here either.

Nothing about exactness changes. The driver runs the same tasks with the same writers' ids, holders and
records; when epochs grow, the executors' writers fence the driver's, and the other way round. That the input
is complete needs no other proof here: a Spark job hands over its result as a whole or fails.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from airflow_provider_sinks.connectors import rows
from airflow_provider_sinks.core.errors import JobFailedError, SinkError
from airflow_provider_sinks.core.progress.record import WriterId, partition_writer
from airflow_provider_sinks.core.retries import RETRIES
from airflow_provider_sinks.core.spec.sink import OutputMode, SinkSpec
from airflow_provider_sinks.streaming import held_writers
from airflow_provider_sinks.streaming.epoch_plan import EpochPlan
from airflow_provider_sinks.streaming.measured_input import LARGE, LargeRowError
from airflow_provider_sinks.streaming.task_report import Outcome, TaskReport
from airflow_provider_sinks.streaming.writer import run_task

ROWS_MAX = 2_000
"""An epoch of at most so many source records is small; records have a size limit of their own in Kafka."""
SETTING = "spark.sinks.driverEpochRows"
"""The Spark setting that says instead how many records a small epoch has, executors or not; 0: none is."""
ROW_BYTES_MAX = 16 * 1024
"""What the texts and bytes of a row may have at most in an epoch of few records."""
ROW_BYTES_MIN = 128
"""An epoch of so many records that a row could not even have so many bytes is not tried."""
BYTES_MAX = 128 * 1024 * 1024
_OF_MEMORY = 16
"""Where there are no executors, the rows of an epoch may have this part of the JVM's memory: it holds them up
to four times while they go, and this process once more."""
_MULTIPLIED = 2
"""How many rows a record may lead to, over all records of a task, where it may lead to several."""


@dataclass(frozen=True)
class Room:
    """What may come to the driver of one epoch.

    :param row_bytes: the texts and bytes of a row.
    :param rows_each: rows of a task; ``None`` where a record never leads to several.
    """

    row_bytes: int
    rows_each: int | None = None

    def would_hold(self, reports: Iterable[TaskReport]) -> bool:
        """Return whether there would have been room for an epoch that ran on executors."""
        return all(
            report.largest_row_bytes <= self.row_bytes
            and (self.rows_each is None or report.rows + report.dead <= self.rows_each)
            for report in reports
        )


@dataclass(frozen=True)
class DriverShare:
    """Which epochs the driver writes itself.

    :param records_max: those of at most so many source records; 0: none.
    :param bytes_max: and those whose rows have at most so many bytes, where there are no executors; else 0.
    :param may_multiply: a record may lead to several rows.
    """

    records_max: int
    bytes_max: int = 0
    may_multiply: bool = False

    @classmethod
    def of(cls, spark: SparkSession, spec: SinkSpec) -> DriverShare:
        """Return the share of a sink's driver: few records in must mean few rows out.

        That does not hold where windows close: an epoch without a record may give all that was ever counted.
        Nor where a query makes many rows of one: 2,000 records of 500 KB may be ten million rows.
        """
        closes_windows = not spec.shape.row_wise and spec.stream_mode is OutputMode.APPEND
        told = spark.conf.get(SETTING, None)
        records_max = ROWS_MAX if told is None else int(told or 0)
        if closes_windows or spec.shape.generates or not records_max:
            return cls(0)
        is_alone = told is None and spec.shape.row_wise and has_no_executors(spark)
        return cls(records_max, _room_bytes(spark) if is_alone else 0, spec.shape.may_multiply)

    def has_few(self, begin: Mapping[int, int], end: Mapping[int, int]) -> bool:
        """Whether a range has few records, and of few enough source partitions to keep their writers."""
        sizes = _sizes(begin, end)
        return sum(sizes) <= self.records_max and len(sizes) <= held_writers.HELD_MAX

    def room(self, begin: Mapping[int, int], end: Mapping[int, int], *, single: bool = False) -> Room | None:
        """Return the room for the rows of a range; ``None`` where executors write them.

        :param single: one task has all of them.
        """
        sizes = _sizes(begin, end)
        records = sum(sizes)
        row_bytes = ROW_BYTES_MAX
        if not self.has_few(begin, end):
            row_bytes = self.bytes_max // max(1, records)
        if not self.records_max or row_bytes < ROW_BYTES_MIN:
            return None
        tasks = 1 if single else max(1, len(sizes))
        rows_each = max(ROWS_MAX, _MULTIPLIED * records // tasks)
        return Room(row_bytes, rows_each if self.may_multiply else None)


def has_no_executors(spark: SparkSession) -> bool:
    """Whether this process is all there is of Spark."""
    return str(spark.sparkContext.master).partition("[")[0] == "local"


def write_here(plan: EpochPlan, frame: DataFrame, *, is_first: bool = False) -> list[TaskReport] | None:
    """Write an epoch from this process; does what :func:`.writer.write_epoch` does in tasks.

    :param frame: its rows, marked where there is no room for one (:mod:`.large_rows`).
    :param is_first: of the run: writers connect while Spark computes the rows.
    :returns: ``None`` when there is no room for some of them; nothing is written then.
    """
    if is_first:
        return _write_as_they_come(plan, frame)
    try:
        return run_here(plan, _brought(plan, frame))
    except LargeRowError:
        return None


def _write_as_they_come(plan: EpochPlan, frame: DataFrame) -> list[TaskReport] | None:
    """Begin the tasks before there are rows. One that gets none, or an error, gives up what it has opened."""
    arrival: Arrival = Future()
    tasks = {writer: _Arriving(arrival, writer) for writer in plan.expected}
    with ThreadPoolExecutor(1) as pool:
        written = pool.submit(run_here, plan, tasks)
        try:
            arrival.set_result(_brought(plan, frame))
        except BaseException as error:  # noqa: BLE001  the tasks raise it
            arrival.set_exception(error)
        reports = written.result()
    return None if any(report.outcome == Outcome.LARGE_ROWS for report in reports) else reports


def _brought(plan: EpochPlan, frame: DataFrame) -> Mapping[WriterId, list[pa.RecordBatch]]:
    """Return the rows of an epoch by writer.

    :raises LargeRowError: there is no room for some.
    """
    table = frame.toArrow()
    if pc.any(table.column(LARGE)).as_py():
        raise LargeRowError
    batches = table.drop_columns([LARGE]).to_batches()
    found = dict(_by_writer(batches)) if plan.single_writer is None else {plan.single_writer: batches}
    if strangers := found.keys() - set(plan.expected):
        raise JobFailedError(
            f'rows of sink "{plan.sink}" come from source partitions without a range',
            f"Writers {', '.join(sorted(strangers))} have rows in epoch {plan.record.epoch}.",
        )
    return found


def run_here(
    plan: EpochPlan, tasks: Mapping[WriterId, Iterable[pa.RecordBatch]], at_once: int = held_writers.HELD_MAX
) -> list[TaskReport]:
    """Run tasks of ``per_partition`` in this process, side by side.

    :param tasks: by writer its rows; iterated anew for each try.
    :param at_once: how many of them.
    """
    plans = [replace(plan, expected=(writer,)) for writer in tasks]
    with ThreadPoolExecutor(max(1, min(at_once, len(plans)))) as pool:
        return list(pool.map(_run, plans, tasks.values()))


def _sizes(begin: Mapping[int, int], end: Mapping[int, int]) -> list[int]:
    """Return how many records each partition of a range has that has some."""
    return [at - begin.get(partition, 0) for partition, at in end.items() if at > begin.get(partition, 0)]


def _room_bytes(spark: SparkSession) -> int:
    jvm: Any = spark._jvm  # noqa: SLF001  PySpark has no word for it
    conf: Any = spark.sparkContext._jsc.sc().conf()  # noqa: SLF001  likewise
    memory_bytes = int(jvm.java.lang.Runtime.getRuntime().maxMemory())
    result_bytes = int(conf.getSizeAsBytes("spark.driver.maxResultSize", "1g")) or memory_bytes
    return min(BYTES_MAX, memory_bytes // _OF_MEMORY, result_bytes // 2)


Arrival: TypeAlias = "Future[Mapping[WriterId, list[pa.RecordBatch]]]"


@dataclass(frozen=True)
class _Arriving:
    """The rows of a writer, which whoever iterates waits for."""

    arrival: Arrival
    writer: WriterId

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return iter(self.arrival.result().get(self.writer, ()))


def _run(plan: EpochPlan, batches: Iterable[pa.RecordBatch]) -> TaskReport:
    """Run a task, and again when that may help."""
    times = 1
    while True:
        try:
            return run_task(plan, batches)
        except SinkError as error:
            if not RETRIES[error.trouble].attempt.goes_on(times=times):
                raise
        times += 1


def _by_writer(batches: list[pa.RecordBatch]) -> Iterator[tuple[WriterId, list[pa.RecordBatch]]]:
    """Split rows by source partition; Spark hands them over partition by partition."""
    found: dict[int, list[pa.RecordBatch]] = {}
    for batch in batches:
        partitions = rows.integers(batch.column(rows.PARTITION))
        bounds = [0, *(np.flatnonzero(np.diff(partitions)) + 1).tolist(), len(partitions)]
        for first, end in itertools.pairwise(bounds):
            if end > first:
                found.setdefault(int(partitions[first]), []).append(batch.slice(first, end - first))
    for partition, parts in found.items():
        yield partition_writer(partition), parts
