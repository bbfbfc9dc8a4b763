"""Small epochs are written by the driver itself: tasks in Python would cost more than their rows.

A Python task costs tens of milliseconds before its first row, and Spark gives a source partition to any of
its worker processes, so a writer that was kept from the last epoch is often in the other process and must be
opened anew. The driver has one process: its writers are always at hand, and the rows come to it by a job
that runs in the JVM alone.

Which epochs are small says :mod:`.driver_share`.

Nothing about exactness changes. The driver runs the same tasks with the same writers' ids, holders and
records; when epochs grow, the executors' writers fence the driver's, and the other way round. That the input
is complete needs no other proof here: a Spark job hands over its result as a whole or fails.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from airflow_provider_sinks.connectors import rows
from airflow_provider_sinks.core.errors import JobFailedError, SinkError
from airflow_provider_sinks.core.progress.record import WriterId, partition_writer
from airflow_provider_sinks.core.retries import RETRIES
from airflow_provider_sinks.streaming.epoch_plan import EpochPlan
from airflow_provider_sinks.streaming.measured_input import LARGE, LargeRowError
from airflow_provider_sinks.streaming.task_report import Outcome, TaskReport
from airflow_provider_sinks.streaming.writer import run_task

AT_ONCE = 16
"""Tasks of few rows: they do nothing but wait."""


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
    plan: EpochPlan, tasks: Mapping[WriterId, Iterable[pa.RecordBatch]], at_once: int = AT_ONCE
) -> list[TaskReport]:
    """Run tasks in this process, side by side.

    :param tasks: by writer its rows; iterated anew for each try.
    :param at_once: how many of them.
    """
    plans = [replace(plan, expected=(writer,)) for writer in tasks]
    with ThreadPoolExecutor(max(1, min(at_once, len(plans)))) as pool:
        return list(pool.map(_run, plans, tasks.values()))


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
