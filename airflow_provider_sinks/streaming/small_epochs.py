"""Small epochs are written by the driver itself: for a few rows, tasks in Python cost more than the rows.

A Python task costs tens of milliseconds before its first row, and Spark gives a source partition to any of
its worker processes, so a writer that was kept from the last epoch is often in the other process and must be
opened anew. The driver has one process: its writers are always at hand, and the rows come to it by a job
that runs in the JVM alone.

Few rows can still be many bytes, and only the rows tell. So a row of more than :data:`ROW_BYTES_MAX` is not
brought here: it comes as a mark, and an epoch with such a mark is left to the executors, which read their
rows one batch after another. Whether few records mean few rows, the plan says (:mod:`.sink_query`).

Nothing about exactness changes. The driver runs the same tasks with the same writers' ids, holders and
records; when epochs grow, the executors' writers fence the driver's, and the other way round. That the input
is complete needs no other proof here: a Spark job hands over its result as a whole or fails.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from airflow_provider_sinks.connectors import rows
from airflow_provider_sinks.core.errors import SinkError
from airflow_provider_sinks.core.progress.record import WriterId, partition_writer
from airflow_provider_sinks.core.retries import RETRIES
from airflow_provider_sinks.streaming import held_writers, large_rows
from airflow_provider_sinks.streaming.epoch_plan import EpochPlan
from airflow_provider_sinks.streaming.measured_input import LARGE
from airflow_provider_sinks.streaming.task_report import TaskReport
from airflow_provider_sinks.streaming.writer import run_task

ROWS_MAX = 2_000
"""An epoch of at most so many source records is small; records have a size limit of their own in Kafka."""
SETTING = "spark.sinks.driverEpochRows"
"""The Spark setting that changes :data:`ROWS_MAX`; 0 leaves every epoch to the executors."""
ROW_BYTES_MAX = 16 * 1024
"""What the texts and bytes of a row may have at most to be written by the driver."""


def rows_max(spark: SparkSession) -> int:
    """Return how many source records a small epoch may have; 0 where the user leaves all to executors."""
    return int(spark.conf.get(SETTING, str(ROWS_MAX)) or 0)


def is_small(begin: Mapping[int, int], end: Mapping[int, int], rows_max: int) -> bool:
    """Whether the range of an epoch is for the driver: few records, and of few enough source partitions."""
    sizes = [at - begin.get(partition, 0) for partition, at in end.items()]
    return sum(sizes) <= rows_max and sum(map(bool, sizes)) <= held_writers.HELD_MAX


def write_here(plan: EpochPlan, frame: DataFrame) -> list[TaskReport] | None:
    """Write an epoch from this process; does what :func:`.writer.write_epoch` does in tasks.

    :returns: ``None`` when rows are too large to be brought here; nothing is written then.
    """
    table = large_rows.marked(frame, ROW_BYTES_MAX).toArrow().combine_chunks()
    if pc.any(table.column(LARGE)).as_py():
        return None
    batches = table.drop_columns([LARGE]).to_batches()
    if plan.single_writer is not None:
        return [_run(plan, batches)]
    return run_here(plan, dict(_by_writer(batches)))


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


def is_of_large_rows(reports: Iterable[TaskReport]) -> bool:
    """Whether the rows of an epoch were so large that the driver need not ask for the next ones."""
    return any(report.size_bytes > ROW_BYTES_MAX * (report.rows + report.dead) for report in reports)


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
