"""How the tasks of an epoch get their rows: what differs between the ways, and the way through Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

from pyspark.sql import DataFrame

from airflow_provider_sinks.core.progress.record import ProgressRecord
from airflow_provider_sinks.streaming import small_epochs
from airflow_provider_sinks.streaming.arrow_batches import ArrowBatches
from airflow_provider_sinks.streaming.driver_share import Room
from airflow_provider_sinks.streaming.epoch_plan import EpochPlan
from airflow_provider_sinks.streaming.epoch_settings import EpochSettings
from airflow_provider_sinks.streaming.epoch_size import NOT_KNOWN, FirstEpoch
from airflow_provider_sinks.streaming.measured_input import MeasuredInput
from airflow_provider_sinks.streaming.source import Offsets
from airflow_provider_sinks.streaming.task_report import REPORT_SCHEMA, Outcome, TaskReport
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


_OF_RECORD = 2
"""How many bytes a row may have for each byte of its record, until the first rows tell."""


class RowTasks:
    """Tasks whose rows Spark reads, projects and hands to Python; ``begin_here``: at first to the driver.

    :param to_rows: turns a micro-batch and its range into the columns of a writer.
    :param first: what is known of the first epoch.
    """

    def __init__(
        self,
        settings: EpochSettings,
        to_rows: Callable[[DataFrame, Offsets, Offsets], DataFrame],
        first: FirstEpoch = NOT_KNOWN,
    ) -> None:
        self._settings = settings
        self._to_rows = to_rows
        row_bytes = int(_OF_RECORD * first.record_bytes)
        self._on_executors = [TaskReport("", Outcome.NOTHING, largest_row_bytes=row_bytes)]
        self.begin_here = self._room({}, {0: first.records}) is not None
        self._batches = ArrowBatches()
        self._is_first = True

    def rows(self, batch: DataFrame, record: ProgressRecord) -> DataFrame:
        """Return the writer's columns, in as many tasks as there are writers."""
        rows = self._to_rows(batch, dict(record.from_), dict(record.to))
        if not self._settings.single:
            return rows
        return rows.repartition(1) if self._settings.stateful else rows.coalesce(1)

    def run(self, rows: DataFrame, plan: EpochPlan) -> list[TaskReport]:
        """Bring a small epoch here, if there is room for it."""
        room = self._room(plan.record.from_, plan.record.to)
        if room is not None and (coming := self._batches.here(rows, room)) is not None:
            return self._written_here(plan, coming, room)
        crossing = self._batches.bounded(rows)
        reports = run_on_executors(_numbered(crossing), plan, partial(MeasuredInput, names=crossing.columns))
        self._on_executors = reports
        return reports

    def _written_here(self, plan: EpochPlan, rows: DataFrame, room: Room) -> list[TaskReport]:
        """Write a small epoch; where there is no room for some of its rows, the next try is on executors."""
        reports = small_epochs.write_here(plan, rows, is_first=self._is_first)
        self._is_first = False
        if any(report.outcome == Outcome.LARGE_ROWS for report in reports):
            self._on_executors = [TaskReport("", Outcome.LARGE_ROWS, largest_row_bytes=room.row_bytes + 1)]
        return reports

    def _room(self, begin: Mapping[int, int], end: Mapping[int, int]) -> Room | None:
        room = self._settings.driver.room(begin, end, single=self._settings.single)
        return room if room is not None and room.would_hold(self._on_executors) else None

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
