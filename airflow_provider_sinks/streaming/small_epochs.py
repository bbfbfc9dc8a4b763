"""Small epochs are written by the driver itself: tasks in Python would cost more than their rows.

A Python task costs tens of milliseconds before its first row, and Spark gives a source partition to any of
its worker processes, so a writer that was kept from the last epoch is often in the other process and must be
opened anew. The driver has one process: its writers are always at hand, and the rows come to it by a job
that runs in the JVM alone.

Which epochs are small says :mod:`.driver_share`.

Nothing about exactness changes. The driver runs the same tasks with the same writers' ids, holders and
records; when epochs grow, the executors' writers fence the driver's, and the other way round. A writer takes
the rows of its task while Spark computes those of others, and commits as soon as its own are whole, as it
does on an executor; when that is stands in :mod:`.arriving_rows`. Where the job fails, what is not whole
commits nothing; the epoch is written again, and its writers leave out what is committed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from airflow_provider_sinks.connectors import rows
from airflow_provider_sinks.core.errors import JobFailedError, SinkError
from airflow_provider_sinks.core.progress.record import WriterId, partition_writer
from airflow_provider_sinks.core.retries import RETRIES
from airflow_provider_sinks.streaming.arriving_rows import ArrivingRows, as_tasks_end
from airflow_provider_sinks.streaming.epoch_plan import EpochPlan
from airflow_provider_sinks.streaming.task_report import TaskReport
from airflow_provider_sinks.streaming.writer import run_task

AT_ONCE = 16
"""Tasks of few rows: they do nothing but wait."""
_NONE = -1


def write_here(plan: EpochPlan, frame: DataFrame, *, is_first: bool = False) -> list[TaskReport]:
    """Write an epoch from this process; does what :func:`.writer.write_epoch` does in tasks.

    :param frame: its rows as :meth:`.arrow_batches.ArrowBatches.here` returns them.
    :param is_first: of the run: writers connect before there are rows.
    :returns: of the writers that had rows; and all others, behind a first epoch.
    """
    with ThreadPoolExecutor(max(1, min(AT_ONCE, len(plan.expected)))) as pool:
        tasks = _ArrivingTasks(plan, pool)
        for writer in plan.expected if is_first else ():
            tasks.rows_of(writer)
        failure = _received(frame, tasks)
        tasks.end(is_whole=failure is None)
    if failure is not None:
        raise failure
    return tasks.reports()


def _received(frame: DataFrame, tasks: _ArrivingTasks) -> BaseException | None:
    """Give all rows to their tasks, and return why they did not all come."""
    failure: BaseException | None = None
    try:
        for task, batch in as_tasks_end(frame):
            try:
                if failure is None:
                    tasks.take(task, batch)
            except Exception as error:  # noqa: BLE001  what is left must be read
                failure = error
    except BaseException as error:  # noqa: BLE001  the tasks are waited for in any case
        failure = failure or error
    return failure


class _ArrivingTasks:
    """The writers' tasks of an epoch, each of which begins with its first rows.

    :param pool: that runs them.
    """

    def __init__(self, plan: EpochPlan, pool: ThreadPoolExecutor) -> None:
        self._plan = plan
        self._pool = pool
        self._rows: dict[WriterId, ArrivingRows] = {}
        self._reports: list[Future[TaskReport]] = []
        self._spark_task = _NONE
        self._incomplete: set[WriterId] = set()

    def rows_of(self, writer: WriterId) -> ArrivingRows:
        """Return where the rows of a writer come, whose task begins with that.

        :raises JobFailedError: it is none of this epoch.
        """
        if writer not in self._rows:
            if writer not in self._plan.expected:
                raise _stranger(self._plan, writer)
            self._rows[writer] = ArrivingRows()
            plan = replace(self._plan, expected=(writer,))
            self._reports.append(self._pool.submit(_run, plan, self._rows[writer]))
        return self._rows[writer]

    def take(self, spark_task: int, batch: pa.RecordBatch) -> None:
        """Give rows to their writers; those that came of another task of Spark's are whole.

        :raises JobFailedError: they are of no writer, or of one whose rows were whole.
        """
        if self._plan.single_writer is not None:
            self.rows_of(self._plan.single_writer).put(batch)
            return
        if spark_task != self._spark_task:
            self._complete()
            self._spark_task = spark_task
        for partition, part in _by_partition(batch):
            self._put(partition_writer(partition), part)

    def _put(self, writer: WriterId, part: pa.RecordBatch) -> None:
        found = self.rows_of(writer)
        if found.is_whole:
            raise _comes_back(self._plan, writer)
        found.put(part)
        self._incomplete.add(writer)

    def _complete(self) -> None:
        for writer in self._incomplete:
            self._rows[writer].end()
        self._incomplete.clear()

    def end(self, *, is_whole: bool) -> None:
        """Say whether all rows have come, and wait for the tasks."""
        for found in self._rows.values():
            found.end(is_whole=is_whole)
        wait(self._reports)

    def reports(self) -> list[TaskReport]:
        """Return what the tasks report, in the order in which they began; raises what one of them raised."""
        return [report.result() for report in self._reports]


def _stranger(plan: EpochPlan, writer: WriterId) -> JobFailedError:
    return JobFailedError(
        f'rows of sink "{plan.sink}" come from source partitions without a range',
        f"Writer {writer} has rows in epoch {plan.record.epoch}.",
    )


def _comes_back(plan: EpochPlan, writer: WriterId) -> JobFailedError:
    return JobFailedError(
        f'tasks of sink "{plan.sink}" do not read one source partition each',
        f"Rows of writer {writer} came of two tasks in epoch {plan.record.epoch}: something splits the "
        "source partitions.",
        "Use `writers: single` for this plan.",
    )


def run_here(
    plan: EpochPlan, tasks: Mapping[WriterId, Iterable[pa.RecordBatch]], at_once: int = AT_ONCE
) -> list[TaskReport]:
    """Run tasks in this process, side by side.

    :param tasks: by writer its rows; iterated anew for each try.
    :param at_once: how many of them.
    """
    plans = [replace(plan, expected=(writer,)) for writer in tasks]
    with ThreadPoolExecutor(max(1, min(at_once, len(plans)))) as pool:
        return list(pool.map(_run, plans, tasks.values()))


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


def _by_partition(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Split rows by source partition."""
    partitions = rows.integers(batch.column(rows.PARTITION))
    bounds = [0, *(np.flatnonzero(np.diff(partitions)) + 1).tolist(), len(partitions)]
    for first, end in itertools.pairwise(bounds):
        if end > first:
            yield int(partitions[first]), batch.slice(first, end - first)
