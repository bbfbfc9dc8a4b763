"""How the tasks of an epoch get their rows: what differs between the ways, and the way through Spark."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from pyspark.sql import DataFrame

from airflow_provider_sinks.core.progress.record import ProgressRecord
from airflow_provider_sinks.streaming import small_epochs
from airflow_provider_sinks.streaming.arrow_batches import ArrowBatches
from airflow_provider_sinks.streaming.epoch_plan import EpochPlan
from airflow_provider_sinks.streaming.epoch_settings import EpochSettings
from airflow_provider_sinks.streaming.measured_input import MeasuredInput
from airflow_provider_sinks.streaming.source import Offsets
from airflow_provider_sinks.streaming.task_report import REPORT_SCHEMA, TaskReport
from airflow_provider_sinks.streaming.writer import TaskInput, write_epoch


class EpochTasks(Protocol):
    """Runs the tasks of one epoch after another. Made for one run; kept by its driver."""

    def rows(self, batch: DataFrame, record: ProgressRecord) -> DataFrame:
        """Return what :meth:`run` is given, each time that the epoch is tried.

        :param batch: the micro-batch.
        :raises ConfigurationError: the SQL does not fit any more.
        """

    def run(self, rows: DataFrame, plan: EpochPlan) -> list[TaskReport]:
        """Run all tasks once, here or on executors."""

    def must_write_again(self, reports: list[TaskReport]) -> bool:
        """Return whether some rows did not get through to their tasks, and why is known by now."""


class RowTasks:
    """Tasks whose rows Spark reads, projects and hands to Python.

    :param to_rows: turns a micro-batch and its range into the columns of a writer.
    """

    def __init__(
        self, settings: EpochSettings, to_rows: Callable[[DataFrame, Offsets, Offsets], DataFrame]
    ) -> None:
        self._settings = settings
        self._to_rows = to_rows
        self._has_large_rows = False
        self._batches = ArrowBatches()

    def rows(self, batch: DataFrame, record: ProgressRecord) -> DataFrame:
        """Return the writer's columns, in as many tasks as there are writers."""
        rows = self._to_rows(batch, dict(record.from_), dict(record.to))
        if not self._settings.single:
            return rows
        return rows.repartition(1) if self._settings.stateful else rows.coalesce(1)

    def run(self, rows: DataFrame, plan: EpochPlan) -> list[TaskReport]:
        """Bring a small epoch here, unless its rows are large."""
        is_small = small_epochs.is_small(plan.record.from_, plan.record.to, self._settings.driver_rows_max)
        if is_small and not self._has_large_rows:
            written = small_epochs.write_here(plan, rows)
            if written is not None:
                return written
        crossing = self._batches.bounded(rows)
        reports = run_on_executors(_numbered(crossing), plan, partial(MeasuredInput, names=crossing.columns))
        self._has_large_rows = small_epochs.is_of_large_rows(reports)
        return reports

    def must_write_again(self, reports: list[TaskReport]) -> bool:
        """Learn how large rows are; larger ones than were allowed for do not cross."""
        return self._batches.learn(reports)


def run_on_executors(
    frame: DataFrame, plan: EpochPlan, to_input: Callable[..., TaskInput]
) -> list[TaskReport]:
    """Run a task of the writer over each partition of a frame.

    :param to_input: what makes the rows of a task of what Spark hands over.
    """
    tasks = frame.mapInArrow(write_epoch(plan, to_input), REPORT_SCHEMA)
    return [TaskReport.from_json(row.report) for row in tasks.collect()]


def _numbered(rows: DataFrame) -> DataFrame:
    """Return rows by names that ``mapInArrow`` takes: it takes none with a dot in it."""
    return rows.toDF(*(f"column{number}" for number in range(len(rows.columns))))
