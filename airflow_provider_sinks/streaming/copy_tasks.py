"""Epochs that copy whole records: their tasks read the source themselves, and no row passes through Spark.

Spark plans the offsets, gives each task to a process, and repeats one that failed, as ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from airflow_provider_sinks.connectors.base import SinkConnector
from airflow_provider_sinks.connectors.rows import RecordColumns
from airflow_provider_sinks.connectors.source import SinkSource
from airflow_provider_sinks.core.progress.record import (
    SINGLE_WRITER,
    ProgressRecord,
    WriterId,
    partition_writer,
)
from airflow_provider_sinks.core.spec.copies import SETTING, copies_without_spark
from airflow_provider_sinks.core.spec.parts import Format
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.streaming import small_epochs
from airflow_provider_sinks.streaming.copied_range import CopiedRange, CopiedRanges, Copying, numbered
from airflow_provider_sinks.streaming.driver_log import say
from airflow_provider_sinks.streaming.driver_share import DriverShare, has_no_executors
from airflow_provider_sinks.streaming.epoch_plan import EpochPlan
from airflow_provider_sinks.streaming.epoch_settings import EpochSettings
from airflow_provider_sinks.streaming.epoch_tasks import run_on_executors
from airflow_provider_sinks.streaming.task_report import TaskReport
from airflow_provider_sinks.streaming.writer import TaskInput

_AT_ONCE = 4
"""They wait for brokers most of the time, and more of them would hold more memory. Or as many as cores."""


def copying(spark: SparkSession, spec: SinkSpec, source: SinkSource, target: SinkConnector) -> Copying | None:
    """Return how the tasks of a sink copy records; ``None`` where it is no copy, or is not to be made so."""
    columns = _columns(spark, spec, target)
    if columns is None:
        return None
    who = "its driver reads and writes" if copies_here(spark, spec, target) else "tasks read and write"
    say(f'sink "{spec.name}" copies records without Spark: {who}')
    read = source.read_range(reads_on=has_no_executors(spark))
    return Copying(read, columns, is_text=spec.source.kafka.format is Format.TEXT)


def copies_here(spark: SparkSession, spec: SinkSpec, target: SinkConnector) -> bool:
    """Whether the driver itself copies all records of a sink: no Python worker has any part in it."""
    return _columns(spark, spec, target) is not None and DriverShare.of(spark, spec).is_alone


def _columns(spark: SparkSession, spec: SinkSpec, target: SinkConnector) -> RecordColumns | None:
    return target.record_columns() if copies_without_spark(spec, spark.conf.get(SETTING, None)) else None


class CopyTasks:
    """See :class:`.epoch_tasks.EpochTasks`."""

    def __init__(self, settings: EpochSettings, how: Copying) -> None:
        self._settings = settings
        self._how = how

    def rows(self, batch: DataFrame, record: ProgressRecord) -> DataFrame:
        """Return the numbers of the tasks that have records, each for a task of its own."""
        count = len(self._inputs(record))
        return batch.sparkSession.range(0, count, 1, max(1, count))

    def run(self, rows: DataFrame, plan: EpochPlan) -> list[TaskReport]:
        """Copy here where there are no executors, or so few records that tasks would cost more than they.

        Either way not where the user leaves every epoch to executors.
        """
        inputs = self._inputs(plan.record)
        if self._settings.driver.is_alone or self._has_few(plan.record):
            cores = rows.sparkSession.sparkContext.defaultParallelism
            return small_epochs.run_here(plan, inputs, max(self._at_once(plan.record), cores))
        return run_on_executors(rows, plan, partial(numbered, tuple(inputs.values())))

    def must_write_again(self, reports: list[TaskReport]) -> bool:
        """Return that nothing was left out: a batch is bounded by what a fetch brings."""
        del reports
        return False

    def _has_few(self, record: ProgressRecord) -> bool:
        return self._settings.driver.has_few(record.from_, record.to)

    def _at_once(self, record: ProgressRecord) -> int:
        return small_epochs.AT_ONCE if self._has_few(record) else _AT_ONCE

    def _inputs(self, record: ProgressRecord) -> Mapping[WriterId, TaskInput]:
        """Return what each writer reads, in their order."""
        ranges = self._ranges(record)
        if self._settings.single:
            return {SINGLE_WRITER: CopiedRanges(ranges, self._at_once(record))} if ranges else {}
        return {partition_writer(one.partition): one for one in ranges}

    def _ranges(self, record: ProgressRecord) -> tuple[CopiedRange, ...]:
        """Return those that have records, in the order of partitions."""
        begin = record.from_
        ranges = [
            (p, begin[p], end, record.leader_epochs.get(p))
            for p, end in sorted(record.to.items())
            if end > begin[p]
        ]
        return tuple(CopiedRange(self._how, *one) for one in ranges)
